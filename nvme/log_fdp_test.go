package nvme

import (
	"reflect"
	"slices"
	"testing"
)

// Layout: Base Specification 2.1 figures 279 to 281; libnvme struct
// nvme_fdp_config_log and struct nvme_fdp_config_desc agree.
func TestFDPConfigurationsGolden(t *testing.T) {
	list := []FDPConfiguration{
		{
			Attributes: 0x91, ReclaimGroups: 1, MaxPlacementIDs: 2, MaxNamespaces: 3, UnitSize: 4, UnitTimeLimit: 5,
			Handles: []uint8{FDPInitiallyIsolated, FDPPersistentlyIsolated}, Vendor: []byte{0xaa},
		},
		{Attributes: 1},
	}
	b, err := AppendFDPConfigurations(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	golden := newImage(16+80+64).put(t, 0, "0100 00 00 a0000000").
		put(t, 16, "5000 91 01 01000000 0200 0200 03000000 0400000000000000 05000000").put(t, 80, "01000000 02000000 aa").
		put(t, 96, "4000 01 00")
	wantImage(t, b, golden)
	got, err := ParseFDPConfigurations(append(slices.Clone(b), 1))
	if err != nil || !reflect.DeepEqual(got, list) || !got[0].Valid() || got[1].Valid() {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseFDPConfigurations(b); return err })
	for _, c := range []struct {
		offset int
		v      byte
	}{{0, 2}, {1, 0xff}, {4, 15}, {5, 1}, {16, 0}, {16, 63}, {16, 72}, {17, 1}, {19, 9}, {24, 5}, {25, 1}} {
		bad := slices.Clone(b)
		bad[c.offset] = c.v
		_, err := ParseFDPConfigurations(bad)
		wantDecodeError(t, err, "FDP configurations log")
	}
	for _, bad := range [][]FDPConfiguration{nil, {{Vendor: make([]byte, 256)}}, {{Handles: make([]uint8, 20000)}}} {
		_, err := AppendFDPConfigurations(nil, bad)
		wantRangeError(t, err)
	}
}

// Layout: Base Specification 2.1 figures 284 to 289.
func TestFDPLogsGolden(t *testing.T) {
	b, err := AppendFDPHandleUsage(nil, []uint8{FDPHandleHost, FDPHandleController})
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, hexBytes(t, "0200 000000000000 0100000000000000 0200000000000000"))
	use, err := ParseFDPHandleUsage(b)
	if !slices.Equal(use, []uint8{1, 2}) || err != nil {
		t.Errorf("%v, %v", use, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseFDPHandleUsage(b); return err })
	_, err = AppendFDPHandleUsage(nil, make([]uint8, 1<<16))
	wantRangeError(t, err)

	roundTrip(t, newImage(64).put(t, 0, "01").put(t, 16, "02").put(t, 40, "03"),
		&FDPStatisticsLog{HBMW: Uint128{Lo: 1}, MBMW: Uint128{Lo: 2}, MBE: Uint128{Hi: 3}}, new(FDPStatisticsLog))

	e := FDPEvent{
		ETYP: FDPEventReallocated, Flags: FDPEventValidNSID, PID: 0x0102, Timestamp: Timestamp{1, 6: 2}, NSID: 0x03040506,
		Specific: [16]byte{7, 15: 8}, RGID: 0x090a, RUHID: 0x0b0c, VendorBytes: [24]byte{0xd, 23: 0xe},
	}
	event := newImage(64).put(t, 0, "80 02 0201 0100000000000200 06050403 07").put(t, 31, "08 0a09 0c0b").put(t, 40, "0d").put(t, 63, "0e")
	roundTrip(t, event, &e, new(FDPEvent))
	b, err = AppendFDPEvents(nil, []FDPEvent{e})
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b[:64], newImage(64).put(t, 0, "01"))
	wantImage(t, b[64:], event)
	events, err := ParseFDPEvents(b)
	if err != nil || len(events) != 1 || events[0] != e {
		t.Errorf("%+v, %v", events, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseFDPEvents(b); return err })
}
