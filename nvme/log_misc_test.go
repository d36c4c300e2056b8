package nvme

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// everyPrefix checks that no prefix of a well-formed log is taken for one, and
// that each fails with the right kind of error.
func everyPrefix(t *testing.T, b []byte, parse func([]byte) error) {
	t.Helper()
	if err := parse(b); err != nil {
		t.Fatal(err)
	}
	for n := range len(b) {
		err := parse(b[:n:n])
		if err == nil {
			t.Errorf("%d of %d bytes accepted", n, len(b))
			continue
		}
		wantDecodeError(t, err, "")
	}
}

// Offsets: Base Specification 2.1 figures 226 and 227; libnvme struct
// nvme_persistent_event_log and struct nvme_persistent_event_entry agree.
func TestPersistentEventsGolden(t *testing.T) {
	events := []PersistentEvent{
		{Type: PersistentFirmwareCommit, Revision: 1, PortType: 1, ControllerID: 0x0102, Timestamp: Timestamp{1, 2, 3, 4, 5, 6, 2}, PortID: 0x0304, Vendor: []byte{9}, Data: []byte{7, 8}},
		{Type: PersistentVendor, Revision: 2, PortType: 3, Vendor: []byte{}, Data: []byte{}},
	}
	h := &PersistentEventHeader{
		LID: LogPersistentEvent, TNEV: 2, TLL: 512 + 27 + 24, LREV: 3, LHL: 492, Timestamp: Timestamp{0xa, 0, 0, 0, 0, 0, 2},
		POH: [16]byte{1, 8: 2}, PWRCC: [8]byte{3}, VID: 0x1234, SSVID: 0x5678, GNUM: 0x0a0b, RCI: [4]byte{0, 0, 4, 0},
	}
	h.SN[0], h.MN[0], h.SUBNQN[0], h.SEB[0] = 's', 'm', 'n', 4
	header := newImage(512).put(t, 0, "0d 000000 02000000 3302000000000000 03 00 ec01 0a000000000002 00 01").put(t, 36, "02").put(t, 44, "03").
		put(t, 52, "3412 7856 73").put(t, 76, "6d").put(t, 116, "6e").put(t, 372, "0b0a 00000400").put(t, 480, "04")
	roundTrip(t, header, h, new(PersistentEventHeader))
	if h.PowerOnHours() != (Uint128{Lo: 1, Hi: 2}) || h.PowerCycles() != 3 || !h.ContextExists() || !h.Supports(PersistentFirmwareCommit) || h.Supports(PersistentVendor) {
		t.Error("header fields")
	}
	b := []byte(header)
	var err error
	for i := range events {
		if b, err = events[i].AppendBinary(b); err != nil {
			t.Fatal(err)
		}
	}
	wantImage(t, b[512:], hexBytes(t, "02 01 15 01 0201 0102030405060200 0403 00000000 0100 0300 09 0708"+
		"de 02 15 03 0000 0000000000000000 0000 00000000 0000 0000"))
	got, list, err := ParsePersistentEvents(append(slices.Clone(b), 1, 2, 3))
	if err != nil || *got != *h || !reflect.DeepEqual(list, events) {
		t.Errorf("%+v, %v", list, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, _, err := ParsePersistentEvents(b); return err })
}

func TestPersistentEventsHostile(t *testing.T) {
	event, err := (&PersistentEvent{Type: 1, Data: []byte{1, 2}}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	build := func(tnev uint32, tll uint64, lhl uint16, patch func(event []byte)) []byte {
		h := PersistentEventHeader{LID: LogPersistentEvent, TNEV: tnev, TLL: tll, LHL: lhl}
		b, err := h.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		e := slices.Clone(event)
		patch(e)
		return append(b, e...)
	}
	same := func([]byte) {}
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"more events than bytes", build(2, 538, 492, same)},
		{"2^32-1 events", build(0xffffffff, 538, 492, same)},
		{"longer than the data", build(1, 539, 492, same)},
		{"length 2^64-1", build(1, 1<<64-1, 492, same)},
		{"shorter than the header", build(0, 511, 492, same)},
		{"header past the end", build(1, 538, 0xffff, same)},
		{"event header too short", build(1, 538, 492, func(e []byte) { e[2] = 20 })},
		{"event header past the end", build(1, 538, 492, func(e []byte) { e[2] = 255 })},
		{"vendor data longer than the event", build(1, 538, 492, func(e []byte) { e[20] = 3 })},
		{"event past the end", build(1, 538, 492, func(e []byte) { e[22] = 3 })},
		{"another log page", append([]byte{1}, build(1, 538, 492, same)[1:]...)},
	} {
		if _, events, err := ParsePersistentEvents(c.b); err == nil {
			t.Errorf("%s: accepted as %+v", c.name, events)
		} else {
			wantDecodeError(t, err, "persistent event")
		}
	}
	_, err = (&PersistentEvent{Data: make([]byte, 1<<16)}).AppendBinary(nil)
	wantRangeError(t, err)
	if PersistentSMART.String() != "SMART / Health Log Snapshot" || PersistentEventType(0x50).String() != "reserved persistent event type 0x50" {
		t.Error("event names")
	}
}

func TestTimestamp(t *testing.T) {
	at := time.UnixMilli(0x0123456789ab)
	ts := MakeTimestamp(at)
	if ts != (Timestamp{0xab, 0x89, 0x67, 0x45, 0x23, 0x01}) || !ts.Time().Equal(at) || ts.Milliseconds() != 0x0123456789ab {
		t.Errorf("%x, %v", ts, ts.Time())
	}
	ts[6] = TimestampOriginHost | TimestampStopped
	if !ts.FromHost() || ts.Attributes() != 3 || (Timestamp{}).FromHost() || MakeTimestamp(time.UnixMilli(-5)) != (Timestamp{}) {
		t.Error("attributes")
	}
}

// Layout: NVM Command Set Specification 1.1 figures 109 to 111; libnvme struct
// nvme_lba_status_log, struct nvme_lbas_ns_element, struct nvme_lba_rd agree.
func TestLBAStatusLogGolden(t *testing.T) {
	log := &LBAStatusLog{Length: 80, Estimate: 5, Generation: 0x0102, Namespaces: []LBAStatusNamespace{
		{NSID: 3, Action: 0x10, Ranges: []LBARange{{SLBA: 0x1122334455667788, Blocks: 1}, {SLBA: 2, Blocks: 1 << 32}}},
		{NSID: 4, Action: 0x11, Whole: true},
	}}
	b, err := log.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, hexBytes(t, "50000000 02000000 05000000 0000 0201"+
		"03000000 02000000 10 00000000000000 8877665544332211 00000000 00000000 0200000000000000 ffffffff 00000000"+
		"04000000 ffffffff 11 00000000000000"))
	var got LBAStatusLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, new(LBAStatusLog).UnmarshalBinary)
	for _, bad := range []string{
		"50000000 ffffffff 05000000 0000 0201",
		"50000000 01000000 05000000 0000 0201 03000000 feffffff 10 00000000000000",
	} {
		wantDecodeError(t, new(LBAStatusLog).UnmarshalBinary(hexBytes(t, bad)), "LBA status log")
	}
	for _, blocks := range []uint64{0, 1<<32 + 1} {
		_, err := (&LBAStatusLog{Namespaces: []LBAStatusNamespace{{Ranges: []LBARange{{Blocks: blocks}}}}}).AppendBinary(nil)
		wantRangeError(t, err)
	}
}

// Layout: Base Specification 2.1 figures 254 and 255.
func TestMediaUnitStatusGolden(t *testing.T) {
	log := &MediaUnitStatusLog{Channels: 2, Selected: 3, Units: []MediaUnitStatus{
		{MUID: 1, DID: 2, ENDGID: 3, NVMSETID: 4, CapacityAdjust: 5, AvailableSpare: 6, PercentageUsed: 7, Channels: []uint16{8, 9}},
		{MUID: 2},
	}}
	b, err := log.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, hexBytes(t, "0200 0200 0300 00000000000000000000"+
		"0100 0200 0300 0400 0500 06 07 02 10 0000 0800 0900"+
		"0200 0000 0000 0000 0000 00 00 00 10 0000"))
	var got MediaUnitStatusLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, new(MediaUnitStatusLog).UnmarshalBinary)
	for _, offset := range []byte{0, 13, 255} {
		bad := slices.Clone(b)
		bad[29] = offset // offset of the first unit's channels
		wantDecodeError(t, new(MediaUnitStatusLog).UnmarshalBinary(bad), "media unit status log")
	}
	_, err = (&MediaUnitStatusLog{Units: make([]MediaUnitStatus, 1<<16)}).AppendBinary(nil)
	wantRangeError(t, err)
	_, err = (&MediaUnitStatusLog{Units: []MediaUnitStatus{{Channels: make([]uint16, 256)}}}).AppendBinary(nil)
	wantRangeError(t, err)
}

// Layout: Base Specification 2.1 figures 256 to 260.
func TestCapacityConfigurationsGolden(t *testing.T) {
	list := []CapacityConfiguration{
		{ID: 1, DID: 2, Groups: []EnduranceGroupConfiguration{{
			ENDGID: 3, CapacityAdjust: 4, TotalCapacity: Uint128{Lo: 5}, SpareCapacity: Uint128{Lo: 6}, EnduranceEstimate: Uint128{Lo: 7},
			NVMSets: []uint16{8}, Channels: []ChannelConfiguration{{ID: 9, MediaUnits: []uint16{10, 11}}},
		}}},
		{ID: 2},
	}
	b, err := AppendCapacityConfigurations(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	const zero16 = "00000000000000000000000000000000"
	wantImage(t, b, hexBytes(t, "02 000000000000000000000000000000"+
		"0100 0200 0100 0000000000000000000000000000000000000000000000000000"+
		"0300 0400 000000000000000000000000 05000000000000000000000000000000 06000000000000000000000000000000 07000000000000000000000000000000"+zero16+
		"0100 0800 0100 0900 0200 0a00 00000000 0000 0b00 00000000 0000"+
		"0200 0000 0000 0000000000000000000000000000000000000000000000000000"))
	got, err := ParseCapacityConfigurations(b)
	if err != nil || !reflect.DeepEqual(got, list) {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseCapacityConfigurations(b); return err })
	for _, offset := range []int{0, 20, 128, 132, 136, 144} { // each count and length
		bad := slices.Clone(b)
		bad[offset] = 0xff
		_, err := ParseCapacityConfigurations(bad)
		wantDecodeError(t, err, "capacity configuration list")
	}
	_, err = AppendCapacityConfigurations(nil, make([]CapacityConfiguration, 256))
	wantRangeError(t, err)
}

// Offsets: Base Specification 2.1 figures 266, 268 to 272.
func TestMiscLogsGolden(t *testing.T) {
	l := &LockdownLog{CFILA: 0x12, Length: 2, CFIL: [508]uint8{1, 2, 507: 9}}
	roundTrip(t, newImage(512).put(t, 0, "12 0000 02 0102").put(t, 511, "09"), l, new(LockdownLog))
	if !slices.Equal(l.List(), []uint8{1, 2}) || LockdownLSP(LockdownScopeFeatures, LockdownProhibitedAdmin) != 0x12 {
		t.Error("lockdown list")
	}
	bp := &BootPartitionHeader{LID: LogBootPartition, BPINFO: 0x80000008}
	golden := newImage(16).put(t, 0, "15 000000 08000080")
	roundTrip(t, golden, bp, new(BootPartitionHeader))
	golden[0] = 1
	wantDecodeError(t, bp.UnmarshalBinary(golden), "identifier 0x01")
	roundTrip(t, newImage(512).put(t, 0, "0100 0200 201c 0000 03000000 04000000 05000000 06000000"),
		&RotationalMediaLog{ENDGID: 1, NUMA: 2, NRS: 7200, SPINC: 3, FSPINC: 4, LDC: 5, FLDC: 6}, new(RotationalMediaLog))
	m := &ManagementAddressLog{}
	m.Items[0].MAT = ManagementAddressAgent
	copy(m.Items[0].MADRS[:], "https://a")
	m.Items[1].MAT = ManagementAddressEnd
	m.Items[7].MAT = 3
	roundTrip(t, newImage(4096).put(t, 0, "01 000000 68747470733a2f2f61").put(t, 512, "ff").put(t, 3584, "03"), m, new(ManagementAddressLog))
	if e := m.Entries(); len(e) != 1 || e[0].URI() != "https://a" || len(new(ManagementAddressLog).Entries()) != 8 {
		t.Errorf("%d entries", len(e))
	}
	full := ManagementAddress{}
	for i := range full.MADRS {
		full.MADRS[i] = 'u'
	}
	if len(full.URI()) != 508 {
		t.Error("URI without an end")
	}
}

// Layout: Base Specification 2.1 figure 270.
func TestDispersedNamespace(t *testing.T) {
	b, err := AppendDispersedNamespace(nil, 5, []string{"nqn.a", "nqn.b"})
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, newImage(768).put(t, 0, "0500000000000000 0200000000000000").put(t, 256, "6e716e2e61").put(t, 512, "6e716e2e62"))
	gen, nqns, err := ParseDispersedNamespace(b)
	if gen != 5 || !slices.Equal(nqns, []string{"nqn.a", "nqn.b"}) || err != nil {
		t.Errorf("%d, %v, %v", gen, nqns, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, _, err := ParseDispersedNamespace(b); return err })
	b[256] = 0
	_, _, err = ParseDispersedNamespace(b)
	wantDecodeError(t, err, "empty")
	_, err = AppendDispersedNamespace(nil, 0, []string{""})
	wantRangeError(t, err)
}

// Layout: Base Specification 2.1 figures 274, 275, 277, 278.
func TestReachabilityGolden(t *testing.T) {
	log := &ReachabilityLog{ChangeCount: 4, Items: []Reachability{
		{ID: 1, ChangeCount: 2, Characteristics: ReachableFastCopy, Members: []uint32{5, 6}}, {ID: 7},
	}}
	b, err := log.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, hexBytes(t, "0400000000000000 0200 000000000000"+
		"01000000 02000000 0200000000000000 02 000000000000000000000000000000 05000000 06000000"+
		"07000000 00000000 0000000000000000 00 000000000000000000000000000000"))
	var got ReachabilityLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, new(ReachabilityLog).UnmarshalBinary)
	copy(b[20:], "\xff\xff\xff\xff")
	wantDecodeError(t, new(ReachabilityLog).UnmarshalBinary(b), "reachability log")
	_, err = (&ReachabilityLog{Items: make([]Reachability, 1<<16)}).AppendBinary(nil)
	wantRangeError(t, err)
}
