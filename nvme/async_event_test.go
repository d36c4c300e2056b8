package nvme

import "testing"

// Layout: Base Specification 2.1 figures 147 and 148; SPDK union
// spdk_nvme_async_event_completion agrees on dword 0.
func TestAsyncEventGolden(t *testing.T) {
	e := MakeAsyncEvent(AsyncNotice, NoticeANAChange, LogANA, 0x11223344)
	if e.Result() != 0x11223344_000c0302 {
		t.Errorf("%#x", e.Result())
	}
	if e.Type() != AsyncNotice || e.Info() != NoticeANAChange || e.LogPage() != LogANA || e.Parameter() != 0x11223344 {
		t.Errorf("type %d information %d page %v parameter %#x", e.Type(), e.Info(), e.LogPage(), e.Parameter())
	}
	c := Completion{Result: 0x00000000_ff70f0fa}
	if e := AsyncEvent(c.Result); e.Type() != AsyncNotice || e.Info() != NoticeDiscoveryLogChange || e.LogPage() != LogDiscovery {
		t.Errorf("reserved bits disturb: %v", e)
	}
}

// The numbers are those of Base Specification 2.1 figures 149 to 154.
func TestAsyncEventNames(t *testing.T) {
	for _, c := range []struct {
		e    AsyncEvent
		want string
	}{
		{0x010000, "Write to Invalid Doorbell Register"},
		{0x010300, "Persistent Internal Error"},
		{0x020101, "Temperature Threshold"},
		{0x040002, "Attached Namespace Attribute Changed"},
		{0x030102, "Firmware Activation Starting"},
		{0x0c0302, "Asymmetric Namespace Access Change"},
		{0x1c0902, "Allocated Namespace Attribute Changed"},
		{0x70f002, "Discovery Log Page Change"},
		{0x000003, "NVM Subsystem Normal Shutdown"},
		{0x000104, "Controller Data Queue Full Error"},
		{0x800006, "Reservation Log Page Available"},
		{0x810106, "Sanitize Operation Completed"},
		{0x120a02, "reserved event (type 2, information 0x0a, log page 0x12)"},
		{0x000005, "reserved event (type 5, information 0x00, log page 0x00)"},
		{0xc01207, "vendor specific event (type 7, information 0x12, log page 0xc0)"},
	} {
		if c.e.String() != c.want {
			t.Errorf("%#x is %q, want %q", c.e.Result(), c.e, c.want)
		}
	}
}

// The bits of Base Specification 2.1 figure 391, against those of the notices
// that Identify Controller offers: a host masks one with the other.
func TestAsyncConfigBits(t *testing.T) {
	for _, c := range []struct{ config, want uint32 }{
		{AsyncConfigNamespaceAttribute, 0x100}, {AsyncConfigFirmwareActivation, 0x200}, {AsyncConfigTelemetry, 0x400},
		{AsyncConfigANAChange, 0x800}, {AsyncConfigPredictableLatency, 0x1000}, {AsyncConfigLBAStatus, 0x2000},
		{AsyncConfigEnduranceGroup, 0x4000}, {AsyncConfigSubsystemShutdown, 0x8000}, {AsyncConfigTemperatureBack, 0x10000},
		{AsyncConfigReachabilityAssociation, 0x20000}, {AsyncConfigReachabilityGroup, 0x40000}, {AsyncConfigAllocatedNamespace, 0x80000},
		{AsyncConfigZoneDescriptor, 0x08000000}, {AsyncConfigPullModelRequest, 0x10000000}, {AsyncConfigAVEDiscovery, 0x20000000},
		{AsyncConfigHostDiscovery, 0x40000000}, {AsyncConfigDiscovery, 0x80000000},
	} {
		if c.config != c.want {
			t.Errorf("%#x, want %#x", c.config, c.want)
		}
	}
}
