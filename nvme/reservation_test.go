package nvme

import (
	"reflect"
	"testing"
)

// Layout: Base Specification 2.1 figures 569, 573, 576, 579, 580; the Linux
// enum nvme_pr_..._action and libnvme's enum nvme_reservation_... agree.
func TestReservationCommandsGolden(t *testing.T) {
	wantBuilt(t, ReservationRegisterCommand{NSID: 1, Action: ReservationReplace, IgnoreKey: true, Dispersed: true, Persistence: ReservationPersistSet},
		ParseReservationRegister, "0d", "01", "", "", "1a0000c0")
	wantBuilt(t, ReservationAcquireCommand{NSID: 1, Action: ReservationPreemptAbort, Type: ReservationWriteExclusiveAllRegistrants},
		ParseReservationAcquire, "11", "01", "", "", "02050000")
	wantBuilt(t, ReservationReleaseCommand{NSID: 1, Action: ReservationClear, Type: ReservationExclusiveAccess, IgnoreKey: true},
		ParseReservationRelease, "15", "01", "", "", "09020000")
	wantBuilt(t, ReservationReportCommand{NSID: 1, Length: 0x1000, Extended: true, Dispersed: true},
		ParseReservationReport, "0e", "01", "", "", "ff030000 03000000")
	for _, n := range []uint64{0, 2, 1<<34 + 4} {
		_, err := ReservationReportCommand{Length: n}.Command()
		wantRangeError(t, err)
	}
}

func TestReservationTypeNames(t *testing.T) {
	for r, want := range map[ReservationType]string{
		0: "none", 1: "Write Exclusive", 2: "Exclusive Access", 3: "Write Exclusive - Registrants Only",
		4: "Exclusive Access - Registrants Only", 5: "Write Exclusive - All Registrants", 6: "Exclusive Access - All Registrants",
		7: "reserved reservation type 0x07",
	} {
		if r.String() != want {
			t.Errorf("%d is %q, want %q", uint8(r), r, want)
		}
	}
}

// Layout: Base Specification 2.1 figures 570, 574, 581 to 584; libnvme struct
// nvme_resv_status, nvme_registered_ctrl and nvme_registered_ctrl_ext agree.
func TestReservationDataGolden(t *testing.T) {
	roundTrip(t, newImage(16).put(t, 0, "0807060504030201 1817161514131211"),
		&ReservationKeys{Current: 0x0102030405060708, Other: 0x1112131415161718}, new(ReservationKeys))

	s := &ReservationStatus{
		Generation: 0x01020304, Type: ReservationExclusiveAccess, Persist: true, Count: 2,
		Registrants: []Registrant{
			{ControllerID: 0x0506, Holder: true, Key: 0x1112131415161718, HostID: [16]byte{0x21, 7: 0x28}},
			{ControllerID: RegistrantNoController},
		},
	}
	const header = "04030201 02 0200 0000 01 0000000000000000000000000000"
	short := newImage(72).put(t, 0, header).put(t, 24, "0605 01 0000000000 2100000000000028 1817161514131211").put(t, 48, "ffff")
	long := newImage(192).put(t, 0, header).put(t, 64, "0605 01 0000000000 1817161514131211 2100000000000028").put(t, 128, "ffff")
	for _, c := range []struct {
		golden   image
		extended bool
		header   int
		size     int
	}{{short, false, 24, 24}, {long, true, 64, 64}} {
		b, err := s.Append(nil, c.extended)
		if err != nil {
			t.Fatal(err)
		}
		wantImage(t, b, c.golden)
		if s.Size(c.extended) != len(b) {
			t.Errorf("size %d, want %d", s.Size(c.extended), len(b))
		}
		got, err := ParseReservationStatus(b, c.extended)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v", got, err)
		}
		for n := range len(b) {
			got, err := ParseReservationStatus(b[:n:n], c.extended)
			if n < c.header {
				wantDecodeError(t, err, "reservation status")
			} else if whole := (n - c.header) / c.size; err != nil || got.Count != 2 || len(got.Registrants) != whole {
				t.Errorf("%d bytes: %+v, %v", n, got, err)
			}
		}
	}
	_, err := (&ReservationStatus{Registrants: make([]Registrant, 1<<16)}).Append(nil, false)
	wantRangeError(t, err)
}

// 128 bits of host identifier survive only in the extended form.
func TestReservationHostID(t *testing.T) {
	s := &ReservationStatus{Count: 1, Registrants: []Registrant{{HostID: [16]byte{1, 15: 2}}}}
	for _, extended := range []bool{true, false} {
		b, err := s.Append(nil, extended)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseReservationStatus(b, extended)
		if err != nil || (got.Registrants[0].HostID[15] == 2) != extended {
			t.Errorf("extended %v: %+v, %v", extended, got, err)
		}
	}
}
