package nvme

import (
	"errors"
	"testing"
	"time"
)

// Offsets: Base Specification 2.1 figures 312 and 313; libnvme struct
// nvme_id_ctrl and struct nvme_id_psd agree.
func TestIdentifyControllerGolden(t *testing.T) {
	c := &IdentifyController{
		VID: 0x144d, SSVID: 0x144e, RAB: 2, IEEE: [3]byte{0x38, 0x25, 0x00},
		CMIC: CMICANAReporting | CMICMultipleControllers, MDTS: 9, CNTLID: 0x0102, VER: Version21,
		RTD3R: 0x11223344, RTD3E: 0x55667788, OAES: 0x80000900, CTRATT: CTRATTTrafficKeepAlive | CTRATTHostID128,
		RRLS: 0x8010, BPCAP: 5, NSSL: 7, PLSI: 3, CNTRLTYPE: ControllerTypeIO, CRDT: [3]uint16{1, 2, 3},
		CRCAP: 1, NVMSR: 1, VWCI: 0x81, MEC: 2, OACS: OACSDoorbellBufferConfig | OACSFormatNVM,
		ACL: 3, AERL: 7, FRMW: 0x17, LPA: LPAExtendedData, ELPE: 63, NPSS: 1, AVSCC: 1, APSTA: 1,
		WCTEMP: 0x157, CCTEMP: 0x163, MTFA: 0x32, HMPRE: 0x4000, HMMIN: 0x1000,
		TNVMCAP: Uint128{Lo: 0x1122334455667788, Hi: 1}, UNVMCAP: Uint128{Lo: 0x99},
		RPMBS: 0x01020008, EDSTT: 0x23, DSTO: 1, FWUG: 0xff, KAS: 10, HCTMA: 1, MNTMT: 0x111, MXTMT: 0x161,
		SANICAP: 0xa0000006, HMMINDS: 4, HMMAXD: 8, NSETIDMAX: 9, ENDGIDMAX: 10,
		ANATT: 20, ANACAP: 0x5f, ANAGRPMAX: 0x20, NANAGRPID: 0x10, PELS: 0x31, DID: 2, KPIOC: 3, MPTFAWR: 0x64,
		MEGCAP: Uint128{Lo: 5}, TMPTHHA: 6, CQT: 0x1388, SQES: 0x66, CQES: 0x44, MAXCMD: 0x400, NN: 0x80,
		ONCS: 0x15f, FUSES: 1, FNA: 4, VWC: 7, AWUN: 0x3ff, AWUPF: 0x7, ICSVSCC: 1, NWPC: 7, ACWU: 2, CDFS: 0x1f,
		SGLS: SGLSByteAligned | SGLSOffset | SGLSTransport, MNAN: 0x40, MAXDNA: Uint128{Lo: 6}, MAXCNA: 7, OAQD: 8,
		RHIRI: 9, HIRT: 10, CMMRTD: 11, NMMRTD: 12, MINMRTG: 13, MAXMRTG: 14, TRATTR: 15, MCUDMQ: 16, MNSUDMQ: 17,
		MCMR: 18, NMCMR: 19, MCDQPC: 20, IOCCSZ: 0x104, IORCSZ: 1, ICDOFF: 2, FCATT: 1, MSDBD: 1, OFCS: 1, DCTYPE: 2,
	}
	c.SetSerialNumber("S4")
	c.SetModelNumber("M")
	c.SetFirmwareRevision("F1")
	if err := c.SetSubsystemNQN("nqn.x"); err != nil {
		t.Fatal(err)
	}
	c.FGUID[0], c.FGUID[15] = 0xf0, 0xf1
	c.PSD[0] = PowerState{
		MP: 0x348, Flags: 2, ENLAT: 0x10, EXLAT: 0x20, RRT: 1, RRL: 2, RWT: 3, RWL: 4, IDLP: 5, IPS: 0x40,
		ACTP: 6, APWS: 0x81, EPFRT: 7, FQVT: 8, EPFVT: 9, EPFRTSFQVTS: 0x21, EPFVTS: 3,
	}
	c.PSD[31].MP = 1
	c.VendorBytes[0], c.VendorBytes[1023] = 0xaa, 0xbb

	golden := newImage(4096).put(t, 0, "4d14 4e14").
		put(t, 4, "5334"+"202020202020202020202020202020202020").
		put(t, 24, "4d"+"20202020202020202020202020 20202020202020202020202020 20202020202020202020202020").
		put(t, 64, "4631 202020202020 02 382500 0a 09 0201 00010200 44332211 88776655 00090080 41000000 1080 05").
		put(t, 104, "07000000").put(t, 110, "03 01 f0").put(t, 127, "f1 0100 0200 0300 01").
		put(t, 253, "01 81 02 0201 03 07 17 04 3f 01 01 01 5701 6301 3200 00400000 00100000").
		put(t, 280, "8877665544332211 0100000000000000 9900").
		put(t, 312, "08000201 2300 01 ff 0a00 0100 1101 6101 060000a0 04000000 0800 0900 0a00 14 5f 20000000 10000000 31000000 0200 03").
		put(t, 360, "6400").put(t, 368, "05").put(t, 384, "06").put(t, 386, "8813").
		put(t, 512, "66 44 0004 80000000 5f01 0100 04 07 ff03 0700 01 07 0200 1f00 01003000 40000000 06").
		put(t, 560, "07000000 08000000 09 0a 0b00 0c00 0d 0e 0f").put(t, 578, "1000 1100 1200 1300 1400").
		put(t, 768, "6e716e2e78").
		put(t, 1792, "04010000 01000000 0200 01 01 0100 02").
		put(t, 2048, "4803 00 02 10000000 20000000 01 02 03 04 0500 40 00 0600 81 07 08 09 21 03").
		put(t, 3040, "0100").put(t, 3072, "aa").put(t, 4095, "bb")
	roundTrip(t, golden, c, new(IdentifyController))
}

func TestIdentifyControllerStrings(t *testing.T) {
	var c IdentifyController
	copy(c.SN[:], "  ab\x1b[31m\xff\x00")
	copy(c.MN[:], "MODEL ONE              ")
	if c.SerialNumber() != "ab?[31m?" || c.ModelNumber() != "MODEL ONE" || c.FirmwareRevision() != "" {
		t.Errorf("%q, %q, %q", c.SerialNumber(), c.ModelNumber(), c.FirmwareRevision())
	}
	c.SetFirmwareRevision("longer than eight")
	if c.FirmwareRevision() != "longer t" {
		t.Errorf("%q", c.FirmwareRevision())
	}
	_, err := c.SubsystemNQN()
	wantDecodeError(t, err, "empty")
	wantRangeError(t, c.SetSubsystemNQN(""))
	if err := c.SetSubsystemNQN(DiscoveryNQN); err != nil {
		t.Error(err)
	}
	if nqn, err := c.SubsystemNQN(); nqn != DiscoveryNQN || err != nil {
		t.Errorf("%q, %v", nqn, err)
	}
}

func TestIdentifyControllerLimits(t *testing.T) {
	for _, c := range []struct {
		mdts uint8
		want uint64
	}{{0, 0}, {1, 8192}, {5, 128 << 10}, {19, 2 << 30}, {20, 0}, {255, 0}} {
		if got := (&IdentifyController{MDTS: c.mdts}).MaxTransferSize(4096); got != c.want {
			t.Errorf("MDTS %d: %d, want %d", c.mdts, got, c.want)
		}
	}
	c := &IdentifyController{
		CQT: 5000, KAS: 10, ANATT: 20, RTD3E: 8000000, CRDT: [3]uint16{1, 20, 300}, CMIC: CMICANAReporting,
		CNTRLTYPE: ControllerTypeDiscovery, ACL: 3, AERL: 255, ELPE: 0, NN: 100, FRMW: 0x17, NPSS: 200,
	}
	if c.CommandQuiesceTime() != 5*time.Second || c.KeepAliveGranularity() != time.Second ||
		c.ANATransitionTime() != 20*time.Second || c.ShutdownTime() != 8*time.Second {
		t.Errorf("times %v %v %v %v", c.CommandQuiesceTime(), c.KeepAliveGranularity(), c.ANATransitionTime(), c.ShutdownTime())
	}
	for crd, want := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second, 30 * time.Second, 0} {
		if got := c.RetryDelay(uint8(crd)); got != want {
			t.Errorf("retry delay %d: %v, want %v", crd, got, want)
		}
	}
	if !c.ReportsANA() || !c.IsDiscovery() || c.AbortLimit() != 4 || c.AsyncEventLimit() != 256 || c.ErrorLogEntries() != 1 {
		t.Error("limits")
	}
	if c.MaxNamespaces() != 100 {
		t.Errorf("%d namespaces without MNAN", c.MaxNamespaces())
	}
	if c.MNAN = 10; c.MaxNamespaces() != 10 {
		t.Errorf("%d namespaces", c.MaxNamespaces())
	}
	if c.MNAN = 1000; c.MaxNamespaces() != 100 {
		t.Errorf("%d namespaces with MNAN above NN", c.MaxNamespaces())
	}
	if n, ro := c.FirmwareSlots(); n != 3 || !ro || !c.FirmwareWithoutReset() {
		t.Errorf("firmware slots %d, %v", n, ro)
	}
	if len(c.PowerStates()) != 32 || len((&IdentifyController{}).PowerStates()) != 1 {
		t.Error("power states")
	}
}

func TestCapsuleDataSize(t *testing.T) {
	for _, c := range []struct {
		ioccsz uint32
		icdoff uint16
		want   uint64
	}{{0, 0, 0}, {3, 0, 0}, {4, 0, 0}, {0x104, 0, 4096}, {0x104, 2, 4064}, {0x104, 0xffff, 0}, {0xffffffff, 0, 0xffffffff*16 - 64}} {
		if got := (&IdentifyController{IOCCSZ: c.ioccsz, ICDOFF: c.icdoff}).CapsuleDataSize(); got != c.want {
			t.Errorf("IOCCSZ %d, ICDOFF %d: %d, want %d", c.ioccsz, c.icdoff, got, c.want)
		}
	}
}

func TestPowerState(t *testing.T) {
	p := PowerState{MP: 850, Flags: 2, ENLAT: 200, EXLAT: 1500000, IDLP: 5, IPS: 2 << 6, ACTP: 70, APWS: 1<<6 | 2}
	if p.MaxPower() != 8500000 || !p.NonOperational() || p.EntryLatency() != 200*time.Microsecond || p.ExitLatency() != 1500*time.Millisecond {
		t.Errorf("%d uW, %v, %v", p.MaxPower(), p.EntryLatency(), p.ExitLatency())
	}
	if w, load := p.ActivePower(); w != 7000 || load != 2 || p.IdlePower() != 50000 {
		t.Errorf("active %d load %d, idle %d", w, load, p.IdlePower())
	}
	p = PowerState{MP: 850, Flags: 1, ACTP: 70}
	if w, _ := p.ActivePower(); w != 0 || p.MaxPower() != 85000 {
		t.Errorf("%d uW active, %d uW most", w, p.MaxPower())
	}
}

func TestIdentifyCommand(t *testing.T) {
	const zero16 = "00000000000000000000000000000000"
	i := IdentifyCommand{CNS: CNSNamespaceCS, CSI: CSIZoned, NSID: 0x01020304, ControllerID: 0x0506, SpecificID: 0x0708, UUIDIndex: 9}
	wantCommand(t, i.Command(), "06000000 04030201"+zero16+zero16+"05000605 08070002 00000000 00000000 09000000 00000000")
	if got, err := ParseIdentify(new(i.Command())); err != nil || got != i {
		t.Errorf("parsed %+v, %v", got, err)
	}
	_, err := ParseIdentify(&Command{Opcode: AdminAbort})
	wantDecodeError(t, err, "Identify command")
	var d *DecodeError
	if !errors.As(err, &d) || d.Reason != "opcode is that of Abort" {
		t.Errorf("%v", err)
	}
}

func TestIdentifyNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{CNSController.String(), "Identify Controller"},
		{CNS(0x0b).String(), "reserved CNS 0x0b"},
		{CNS(0xff).String(), "reserved CNS 0xff"},
		{CSINVM.String(), "NVM"},
		{CSIComputational.String(), "Computational Programs"},
		{CSI(0x30).String(), "vendor specific command set 0x30"},
		{CSI(0x40).String(), "reserved command set 0x40"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestUint128(t *testing.T) {
	for _, c := range []struct {
		u    Uint128
		want string
		f    float64
	}{
		{Uint128{}, "0", 0},
		{Uint128{Lo: 42}, "42", 42},
		{Uint128{Hi: 1}, "18446744073709551616", 18446744073709551616},
		{Uint128{1<<64 - 1, 1<<64 - 1}, "340282366920938463463374607431768211455", 340282366920938463463374607431768211455},
	} {
		if c.u.String() != c.want || c.u.Float64() != c.f {
			t.Errorf("%v is %g, want %s", c.u, c.u.Float64(), c.want)
		}
	}
	if v, ok := (Uint128{Hi: 1, Lo: 5}).Uint64(); v != 1<<64-1 || ok {
		t.Errorf("%d, %v", v, ok)
	}
	if v, ok := (Uint128{Lo: 5}).Uint64(); v != 5 || !ok || (Uint128{Lo: 5}).IsZero() || !(Uint128{}).IsZero() {
		t.Errorf("%d, %v", v, ok)
	}
}
