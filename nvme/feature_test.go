package nvme

import (
	"testing"
	"time"
)

const zero16 = "00000000000000000000000000000000"

// Layout: Base Specification 2.1 figures 192, 193, 383 and 384; SPDK union
// spdk_nvme_feat_... and the Linux nvme_features builder agree on CDW10, CDW11.
func TestFeatureCommandsGolden(t *testing.T) {
	get := GetFeaturesCommand{FeatureID: FeatTemperatureThreshold, Select: SelectCapabilities, NSID: 5, UUIDIndex: 0x7f, Value: 0x00110000}
	cmd := get.Command()
	wantCommand(t, cmd, "0a000000 05000000"+zero16+zero16+"04030000 00001100 00000000 00000000 7f000000 00000000")
	if got, err := ParseGetFeatures(&cmd); err != nil || got != get {
		t.Errorf("parsed %+v, %v", got, err)
	}
	set := SetFeaturesCommand{FeatureID: FeatNumberOfQueues, Save: true, NSID: 6, Value: 0x00030007, More: [4]uint32{1, 2, 3, 4}}
	cmd = set.Command()
	wantCommand(t, cmd, "09000000 06000000"+zero16+zero16+"07000080 07000300 01000000 02000000 03000000 04000000")
	if got, err := ParseSetFeatures(&cmd); err != nil || got != set {
		t.Errorf("parsed %+v, %v", got, err)
	}
	cmd = SetFeaturesCommand{FeatureID: FeatVendorStart, UUIDIndex: 0xff}.Command()
	if cmd.CDW14 != 0x7f {
		t.Errorf("UUID index %#x", cmd.CDW14)
	}
	_, err := ParseGetFeatures(&cmd)
	wantDecodeError(t, err, "Get Features command")
	_, err = ParseSetFeatures(&Command{Opcode: AdminGetFeatures})
	wantDecodeError(t, err, "Set Features command")
}

// Bits: Base Specification 2.1 figures 386, 387, 389, 397, 416, 443 to 446, and
// NVM Command Set Specification 1.1 figures of dword 11; SPDK unions
// spdk_nvme_feat_arbitration, ..._power_management, ..._temperature_threshold,
// ..._error_recovery, ..._number_of_queues, ..._interrupt_coalescing agree.
func TestFeatureValues(t *testing.T) {
	check := func(name string, got, want uint32, parsed, value any) {
		t.Helper()
		if got != want || parsed != value {
			t.Errorf("%s: %#x, want %#x; parsed %+v, want %+v", name, got, want, parsed, value)
		}
	}
	a := Arbitration{Burst: 7, Low: 1, Medium: 2, High: 3}
	check("arbitration", a.Value(), 0x03020107, ParseArbitration(0x03020107), a)
	p := PowerManagement{State: 31, Workload: 2}
	check("power management", p.Value(), 0x5f, ParsePowerManagement(0x5f), p)
	th := TemperatureThreshold{Kelvin: 343, Sensor: SensorAll, Under: true, Hysteresis: 5}
	check("temperature threshold", th.Value(), 0x015f0157, ParseTemperatureThreshold(0x015f0157), th)
	if ParseTemperatureThreshold(2 << 20).Under {
		t.Error("a reserved threshold type counts as under temperature")
	}
	e := ErrorRecovery{TimeLimit: 300 * time.Millisecond, DeallocError: true}
	check("error recovery", e.Value(), 0x10003, ParseErrorRecovery(0x10003), e)
	ic := InterruptCoalescing{Threshold: 9, Time: 25500 * time.Microsecond}
	check("interrupt coalescing", ic.Value(), 0xff09, ParseInterruptCoalescing(0xff09), ic)
	iv := InterruptVector{Vector: 0x1234, CoalescingOff: true}
	check("interrupt vector", iv.Value(), 0x11234, ParseInterruptVector(0x11234), iv)
	tm := ThermalManagement{Light: 0x0150, Heavy: 0x0160}
	check("thermal management", tm.Value(), 0x01500160, ParseThermalManagement(0x01500160), tm)
	l := LBAStatusAttributes{ReportInterval: time.Second, PollInterval: 2 * time.Second}
	check("LBA status attributes", l.Value(), 0x0014000a, ParseLBAStatusAttributes(0x0014000a), l)
	f := FDPConfig{Enable: true, Index: 0xfe}
	check("FDP", f.Value(), 0xfe01, ParseFDPConfig(0xfe01), f)
	check("keep alive", KeepAliveValue(15*time.Second), 15000, ParseKeepAlive(15000), 15*time.Second)
}

// A timer must never come out shorter than asked for, nor wrap around.
func TestFeatureValueLimits(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uint32
	}{
		{"negative", KeepAliveValue(-1), 0},
		{"a nanosecond", KeepAliveValue(1), 1},
		{"just above a second", KeepAliveValue(time.Second + 1), 1001},
		{"50 days", KeepAliveValue(50 * 24 * time.Hour), maxUint32},
		{"error recovery", ErrorRecovery{TimeLimit: 3 * time.Hour}.Value(), 0xffff},
		{"coalescing", InterruptCoalescing{Time: time.Second}.Value(), 0xff00},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

func TestNumberOfQueues(t *testing.T) {
	for _, c := range []struct {
		sq, cq int
		want   NumberOfQueues
	}{{1, 1, 0}, {8, 4, 0x00030007}, {0, -5, 0}, {1 << 20, 65535, 0xfffefffe}} {
		if got := MakeNumberOfQueues(c.sq, c.cq); got != c.want {
			t.Errorf("%d and %d give %#x, want %#x", c.sq, c.cq, uint32(got), uint32(c.want))
		}
	}
	if n := NumberOfQueues(0xffff0000); n.SQ() != 1 || n.CQ() != 65536 {
		t.Errorf("%d and %d queues", n.SQ(), n.CQ())
	}
}

func TestFeatureNames(t *testing.T) {
	for _, c := range []struct {
		id   FeatureID
		want string
	}{
		{0x01, "Arbitration"}, {0x07, "Number of Queues"}, {0x0b, "Asynchronous Event Configuration"}, {0x0f, "Keep Alive Timer"},
		{0x16, "Host Behavior Support"}, {0x1d, "Flexible Data Placement"}, {0x81, "Host Identifier"},
		{0x84, "Namespace Write Protection Config"}, {0x00, "reserved feature 0x00"}, {0xff, "vendor specific feature 0xff"},
	} {
		if c.id.String() != c.want {
			t.Errorf("%#x is %q, want %q", uint8(c.id), c.id, c.want)
		}
	}
}

// Offsets: Base Specification 2.1 figures 393, 404, 407, 453, 455, NVM Command
// Set Specification 1.1 figure "LBA Range Type"; libnvme struct nvme_plm_config,
// nvme_feat_host_behavior, nvme_host_mem_buf_attrs and
// nvme_lba_range_type_entry agree.
func TestFeatureDataGolden(t *testing.T) {
	apst := &PowerStateTransitions{}
	apst.Entries[0] = MakePowerStateTransition(3, 100*time.Millisecond)
	apst.Entries[31] = MakePowerStateTransition(31, 5*time.Hour)
	roundTrip(t, newImage(256).put(t, 0, "18 640000 00000000").put(t, 248, "f8 ffffff 00000000"), apst, new(PowerStateTransitions))
	if e := apst.Entries[0]; e.State() != 3 || e.Idle() != 100*time.Millisecond || MakePowerStateTransition(3, 0) != 0 {
		t.Errorf("state %d after %v", e.State(), e.Idle())
	}
	roundTrip(t, newImage(512).put(t, 0, "01 02 03 04 1c00"), &HostBehavior{ACRE: 1, ETDAS: 2, LBAFEE: 3, HDISNS: 4, CDFE: 0x1c}, new(HostBehavior))
	roundTrip(t, newImage(512).put(t, 0, "0780").put(t, 32, "0100000000000000 0200000000000000 0300000000000000"),
		&PredictableLatencyConfig{Events: 0x8007, ReadsThreshold: 1, WritesThreshold: 2, TimeThreshold: 3}, new(PredictableLatencyConfig))
	roundTrip(t, newImage(16).put(t, 0, "0010000000000000 02000000"), &HostMemoryDescriptor{BADD: 0x1000, BSIZE: 2}, new(HostMemoryDescriptor))
	roundTrip(t, newImage(4096).put(t, 0, "01000000 02000000 03000000 04000000"),
		&HostMemoryBufferAttributes{HSIZE: 1, HMDLAL: 2, HMDLAU: 3, HMDLEC: 4}, new(HostMemoryBufferAttributes))
	roundTrip(t, newImage(64).put(t, 0, "01 02").put(t, 16, "0300000000000000 0400000000000000 05").put(t, 47, "06"),
		&LBARangeType{Type: 1, Attributes: 2, SLBA: 3, NLB: 4, GUID: [16]byte{5, 15: 6}}, new(LBARangeType))
}

// Layout: Base Specification 2.1 figures 447 to 451.
func TestHostMemoryBufferGolden(t *testing.T) {
	h := HostMemoryBuffer{Enable: true, Return: true, RestrictAccess: true, Pages: 0x100, DescriptorList: 0x1122334455667780, DescriptorsCount: 3}
	set := h.SetFeatures()
	wantCommand(t, set.Command(), "09000000 00000000"+zero16+zero16+"0d000000 07000000 00010000 80776655 44332211 03000000")
	if got := ParseHostMemoryBuffer(&set); got != h {
		t.Errorf("parsed %+v", got)
	}
}
