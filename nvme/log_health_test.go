package nvme

import (
	"slices"
	"testing"
	"time"
)

// Offsets: Base Specification 2.1 figures 205, 206, 208; libnvme struct
// nvme_error_log_page, struct nvme_smart_log, struct nvme_firmware_slot agree.
func TestErrorLogGolden(t *testing.T) {
	e := &ErrorLogEntry{
		ECNT: 0x0102030405060708, SQID: 0x1112, CID: 0x1314, StatusPhase: uint16(StatusLBAOutOfRange|StatusDNR)<<1 | 1,
		PEL: 0x0728, LBA: 0x2122232425262728, NSID: 0x31323334, VSIA: 0xc0, TRTYPE: TRTypeTCP, CSI: 2, OPC: OpRead,
		CSINFO: 0x4142434445464748, TTSI: 0x5152, LPVER: 1,
	}
	golden := newImage(64).put(t, 0, "0807060504030201 1211 1413 0181 2807 2827262524232221 34333231 c0 03 02 02 4847464544434241 5251").put(t, 63, "01")
	roundTrip(t, golden, e, new(ErrorLogEntry))
	if e.Status() != StatusLBAOutOfRange|StatusDNR {
		t.Errorf("status %v", e.Status())
	}
	if by, bi, ok := e.Location(); by != 0x28 || bi != 7 || !ok {
		t.Errorf("location %d.%d %v", by, bi, ok)
	}
	if _, _, ok := (&ErrorLogEntry{PEL: 0xffff}).Location(); ok {
		t.Error("location without a command")
	}
	log := append(append(slices.Clone([]byte(golden)), make([]byte, 64)...), golden[:50]...)
	entries, err := ParseErrorLog(log)
	if err != nil || len(entries) != 1 || entries[0] != *e {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestSMARTLogGolden(t *testing.T) {
	s := &SMARTLog{
		CriticalWarning: 0x21, AvailableSpare: 100, SpareThreshold: 10, PercentageUsed: 3, EnduranceWarning: 5,
		DataUnitsRead: Uint128{Lo: 1}, DataUnitsWritten: Uint128{Lo: 2}, HostReads: Uint128{Lo: 3}, HostWrites: Uint128{Lo: 4},
		BusyTime: Uint128{Lo: 5}, PowerCycles: Uint128{Lo: 6}, PowerOnHours: Uint128{Lo: 7}, UnsafeShutdowns: Uint128{Lo: 8},
		MediaErrors: Uint128{Lo: 9}, ErrorLogEntries: Uint128{Lo: 10, Hi: 11}, WarningTempTime: 12, CriticalTempTime: 13,
		TemperatureSensors: [8]uint16{14, 15, 16, 17, 18, 19, 20, 21}, ThermalTransitions: [2]uint32{22, 23}, ThermalTime: [2]uint32{24, 25},
	}
	s.SetTemperature(0x0134)
	golden := newImage(512).put(t, 0, "21 3401 64 0a 03 05")
	for i := range 10 {
		golden[32+16*i] = byte(i + 1)
	}
	golden[184] = 11
	golden.put(t, 192, "0c000000 0d000000 0e00 0f00 1000 1100 1200 1300 1400 1500 16000000 17000000 18000000 19000000")
	roundTrip(t, golden, s, new(SMARTLog))
	if s.Temperature() != 308 {
		t.Errorf("%d K", s.Temperature())
	}
}

func TestFirmwareSlotLogGolden(t *testing.T) {
	f := &FirmwareSlotLog{AFI: 0x21}
	copy(f.FRS[0][:], "1.0     ")
	copy(f.FRS[6][:], "VERSION7")
	roundTrip(t, newImage(512).put(t, 0, "21").put(t, 8, "312e302020202020").put(t, 56, "56455253494f4e37"), f, new(FirmwareSlotLog))
	if active, next := f.Slots(); active != 1 || next != 2 {
		t.Errorf("slots %d, %d", active, next)
	}
	if f.Revision(1) != "1.0" || f.Revision(7) != "VERSION7" || f.Revision(2) != "" || f.Revision(0) != "" || f.Revision(8) != "" {
		t.Error("revisions")
	}
}

func TestChangedNamespaces(t *testing.T) {
	for _, n := range []int{0, 1, 1024} {
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = uint32(i + 1)
		}
		b, err := AppendChangedNamespaces(nil, ids)
		if err != nil {
			t.Fatal(err)
		}
		got, overflow, err := ParseChangedNamespaces(b)
		if err != nil || overflow || !slices.Equal(got, ids) {
			t.Errorf("%d: %d, %v, %v", n, len(got), overflow, err)
		}
	}
	b, err := AppendChangedNamespaces(nil, make([]uint32, 1025))
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, newImage(4096).put(t, 0, "ffffffff"))
	if ids, overflow, err := ParseChangedNamespaces(b); len(ids) != 0 || !overflow || err != nil {
		t.Errorf("%v, %v, %v", ids, overflow, err)
	}
	_, _, err = ParseChangedNamespaces(b[4:])
	wantDecodeError(t, err, "namespace list")
}

// Offsets: Base Specification 2.1 figures 203, 204, 209, 210, 261, 263.
func TestEffectsGolden(t *testing.T) {
	l := &CommandEffectsLog{}
	l.Admin[AdminFormatNVM] = EffectSupported | EffectDataChange | 2<<16 | 1<<14 | EffectScopeSubsystem
	l.IO[OpWrite] = EffectSupported | EffectDataChange
	l.IO[255] = 1
	roundTrip(t, newImage(4096).put(t, 512, "03400202").put(t, 1028, "03000000").put(t, 2044, "01"), l, new(CommandEffectsLog))
	e := l.Admin[AdminFormatNVM]
	if !e.Supported() || e.Submission() != SubmissionNoNamespace || !e.Relaxed() || l.IO[OpWrite].Submission() != SubmissionAny || l.IO[OpRead].Supported() {
		t.Errorf("effects %#x", uint32(e))
	}
	f := &FeatureEffectsLog{}
	f.Features[255] = EffectSupported | EffectScopeDataQueue
	roundTrip(t, newImage(1024).put(t, 1020, "01000004"), f, new(FeatureEffectsLog))
	m := &MIEffectsLog{}
	m.Commands[1] = EffectSupported
	roundTrip(t, newImage(4096).put(t, 4, "01"), m, new(MIEffectsLog))
	p := &SupportedLogPages{}
	p.Pages[LogANA] = LIDSupported | LIDIndexOffset | 0x1234<<16
	roundTrip(t, newImage(1024).put(t, 48, "03003412"), p, new(SupportedLogPages))
	if a := p.Pages[LogANA]; !a.Supported() || !a.IndexOffset() || a.Parameter() != 0x1234 || p.Pages[LogSMART].Supported() {
		t.Errorf("log page attributes %#x", uint32(a))
	}
}

// Offsets: Base Specification 2.1 figures 211, 212; libnvme struct
// nvme_self_test_log and struct nvme_st_result agree.
func TestSelfTestLogGolden(t *testing.T) {
	l := &SelfTestLog{Operation: 2, Completion: 25}
	l.Results[0] = SelfTestResult{
		DSTS: 0x17, Segment: 3, VDINFO: 0xf, POH: [8]byte{1, 2}, NSID: 0x01020304, FLBA: [8]byte{5, 6}, STCT: SCTMedia, STC: 0x81, VendorBytes: [2]uint8{7, 8},
	}
	l.Results[19].DSTS = 0x0f
	golden := newImage(564).put(t, 0, "02 19").put(t, 4, "17 03 0f 00 0102000000000000 04030201 0506000000000000 02 81 0708").put(t, 536, "0f")
	roundTrip(t, golden, l, new(SelfTestLog))
	r := &l.Results[0]
	if r.Code() != SelfTestShort || r.Result() != SelfTestSegmentFailed || r.PowerOnHours() != 0x201 || r.FailingLBA() != 0x605 {
		t.Errorf("%+v", r)
	}
	if l.Results[19].Code() != SelfTestNone || l.Results[19].Result() != SelfTestUnused {
		t.Error("unused entry")
	}
	if code, percent := l.Running(); code != SelfTestExtended || percent != 25 {
		t.Errorf("running %d, %d %%", code, percent)
	}
}

// Offsets: Base Specification 2.1 figures 214 and 216; libnvme struct
// nvme_telemetry_log agrees.
func TestTelemetryHeaderGolden(t *testing.T) {
	h := &TelemetryHeader{
		LID: LogTelemetryHost, IEEE: [3]byte{1, 2, 3}, DataArea1Last: 10, DataArea2Last: 20, DataArea3Last: 30, DataArea4Last: 0x00010000,
		HostScope: 1, HostGeneration: 2, ControllerAvailable: 1, ControllerGeneration: 4,
	}
	h.ReasonID[0], h.ReasonID[127] = 0xaa, 0xbb
	golden := newImage(512).put(t, 0, "07 00000000 010203 0a00 1400 1e00 0000 00000100").put(t, 380, "01 02 01 04 aa").put(t, 511, "bb")
	roundTrip(t, golden, h, new(TelemetryHeader))
	for area, want := range map[int]uint64{1: 11 * 512, 2: 21 * 512, 3: 31 * 512, 4: 65537 * 512} {
		if h.Size(area) != want {
			t.Errorf("area %d: %d, want %d", area, h.Size(area), want)
		}
	}
	if (&TelemetryHeader{DataArea1Last: 5, DataArea2Last: 3}).Size(3) != 6*512 {
		t.Error("areas out of order")
	}
	golden[0] = 6
	wantDecodeError(t, h.UnmarshalBinary(golden), "identifier 0x06")
}

// Offsets: Base Specification 2.1 figures 218, 220, 221, 252.
func TestEnduranceGolden(t *testing.T) {
	e := &EnduranceGroupLog{
		CriticalWarning: 5, Features: 1, AvailableSpare: 90, SpareThreshold: 10, PercentageUsed: 1, DID: 0x0102,
		EnduranceEstimate: Uint128{Lo: 1}, DataUnitsRead: Uint128{Lo: 2}, DataUnitsWritten: Uint128{Lo: 3}, MediaUnitsWritten: Uint128{Lo: 4},
		HostReads: Uint128{Lo: 5}, HostWrites: Uint128{Lo: 6}, MediaErrors: Uint128{Lo: 7}, ErrorLogEntries: Uint128{Lo: 8},
		TotalCapacity: Uint128{Lo: 9}, UnallocCapacity: Uint128{Lo: 10},
	}
	golden := newImage(512).put(t, 0, "05 01 00 5a 0a 01 0201")
	for i := range 10 {
		golden[32+16*i] = byte(i + 1)
	}
	roundTrip(t, golden, e, new(EnduranceGroupLog))

	p := &PredictableLatencyLog{
		Window: 1, Events: PredictableLatencyDeterministic | PredictableLatencyReads, ReadsTypical: 1, WritesTypical: 2, TimeMaximum: 3,
		NDWINTimeMinHigh: 4, NDWINTimeMinLow: 5, ReadsEstimate: 6, WritesEstimate: 7, TimeEstimate: 8,
	}
	golden = newImage(512).put(t, 0, "01 00 0180")
	for i := range 5 {
		golden[32+8*i] = byte(i + 1)
	}
	for i := range 3 {
		golden[128+8*i] = byte(i + 6)
	}
	roundTrip(t, golden, p, new(PredictableLatencyLog))

	b := AppendEventAggregate(nil, []uint16{0x0102, 0x0304})
	wantImage(t, b, hexBytes(t, "0200000000000000 0201 0403"))
	ids, err := ParseEventAggregate(append(b, 0xff))
	if err != nil || !slices.Equal(ids, []uint16{0x0102, 0x0304}) {
		t.Errorf("%v, %v", ids, err)
	}
	for _, bad := range []string{"", "01000000000000", "0100000000000000 02", "ffffffffffffffff 0102"} {
		_, err := ParseEventAggregate(hexBytes(t, bad))
		wantDecodeError(t, err, "event aggregate log")
	}
}

// Offsets: Base Specification 2.1 figures 290, 291.
func TestStatusLogsGolden(t *testing.T) {
	roundTrip(t, newImage(64).put(t, 0, "0807060504030201 03 02 0000 44332211"),
		&ReservationLog{LPC: 0x0102030405060708, RNLPT: ReservationNoticePreempted, NALP: 2, NSID: 0x11223344}, new(ReservationLog))
	s := &SanitizeLog{
		SPROG: 0x8000, SSTAT: 0x011a, SCDW10: 2, ETO: 3, ETBE: 4, ETCE: 5, ETODMM: 6, ETBENMM: 7, ETCENMM: 8, ETPVDS: 9, SSI: 0x21,
	}
	roundTrip(t, newImage(512).put(t, 0, "0080 1a01 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 21"), s, new(SanitizeLog))
	if s.State() != SanitizeRunning || s.OverwritePasses() != 3 || !s.GlobalDataErased() {
		t.Errorf("state %d, passes %d", s.State(), s.OverwritePasses())
	}
	if d, ok := SanitizeTime(90); d != 90*time.Second || !ok {
		t.Errorf("%v, %v", d, ok)
	}
	if _, ok := SanitizeTime(0xffffffff); ok {
		t.Error("estimate that is not told")
	}
}
