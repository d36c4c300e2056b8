package nvme

import (
	"testing"
	"time"
)

// A QEMU-like CAP: bit positions of Base Specification 2.1 figure 36; libnvme
// enum nvme_cap agrees.
func TestCAP(t *testing.T) {
	c := CAP(0x38_3c_e0_33_0f_05_07ff) // built by hand, field by field, below
	want := CAPFields{
		MQES: 0x07ff, CQR: true, AMS: 2, TO: 7500 * time.Millisecond, DSTRD: 3, NSSRS: true,
		CSS: 0x01, BPS: true, CPS: 3, MPSMIN: 12, MPSMAX: 3,
		CRWMS: true, CRIMS: true, NSSES: true,
	}
	if got := c.Fields(); got != want {
		t.Errorf("fields\n got %+v\nwant %+v", got, want)
	}
	if got := want.CAP(); got != c {
		t.Errorf("composed %#x, want %#x", uint64(got), uint64(c))
	}
	if c.MaxQueueEntries() != 2048 || c.DoorbellStride() != 32 || c.MinPageSize() != 16<<20 || c.MaxPageSize() != 32768 {
		t.Errorf("entries %d, stride %d, pages %d to %d", c.MaxQueueEntries(), c.DoorbellStride(), c.MinPageSize(), c.MaxPageSize())
	}
	if CAP(0xffff).MaxQueueEntries() != 65536 || CAP(1).MaxQueueEntries() != 2 {
		t.Error("MQES at its ends")
	}
	if got := CAP(0xff << 24).TO(); got != 127500*time.Millisecond {
		t.Errorf("longest timeout %v", got)
	}
}

// Every single bit of CAP survives the way through Fields, except reserved
// ones, which are dropped.
func TestCAPBits(t *testing.T) {
	const reserved = uint64(0xc0000000_00f80000)
	for n := range 64 {
		c := CAP(1) << n
		got, want := c.Fields().CAP(), c
		if uint64(c)&reserved != 0 {
			want = 0
		}
		if got != want {
			t.Errorf("bit %d: %#x, want %#x", n, uint64(got), uint64(want))
		}
	}
	const reservedCC = uint32(0xfe00000e)
	const reservedCSTS = ^uint32(0x7f)
	for n := range 32 {
		v := uint32(1) << n
		if got, want := uint32(CC(v).Fields().CC()), v&^reservedCC; got != want {
			t.Errorf("CC bit %d: %#x, want %#x", n, got, want)
		}
		if got, want := uint32(CSTS(v).Fields().CSTS()), v&^reservedCSTS; got != want {
			t.Errorf("CSTS bit %d: %#x, want %#x", n, got, want)
		}
	}
}

func TestCC(t *testing.T) {
	f := CCFields{EN: true, IOSQES: 6, IOCQES: 4}
	if f.CC() != 0x00460001 {
		t.Errorf("usual CC is %#x", uint32(f.CC()))
	}
	c := f.CC().WithSHN(CCSHNAbrupt).WithEN(false)
	if c != 0x00468000 || c.EN() || c.SHN() != CCSHNAbrupt {
		t.Errorf("shutdown CC is %#x", uint32(c))
	}
	if c := c.WithSHN(CCSHNNormal); c.SHN() != CCSHNNormal || c.WithEN(true).SHN() != CCSHNNormal {
		t.Errorf("normal shutdown CC is %#x", uint32(c))
	}
	all := CCFields{EN: true, CSS: CCCSSAll, MPS: 2, AMS: CCAMSVendor, CRIME: true}.CC()
	if all != 0x01003961 || all.PageSize() != 16384 {
		t.Errorf("CC %#x, page %d", uint32(all), all.PageSize())
	}
}

func TestCSTS(t *testing.T) {
	c := CSTS(0x2b)
	want := CSTSFields{RDY: true, CFS: true, SHST: CSTSSHSTComplete, PP: true}
	if got := c.Fields(); got != want {
		t.Errorf("fields %+v", got)
	}
	if c.String() != "0x2b (ready true, fatal true, shutdown 2, paused true)" {
		t.Errorf("%q", c)
	}
	if CSTSGone.String() != "0xffffffff (device gone)" || !CSTS(0xffffffff).Gone() || c.Gone() {
		t.Error("absence of the device")
	}
}

func TestAQA(t *testing.T) {
	for _, c := range []struct {
		sq, cq int
		want   AQA
	}{
		{32, 64, 0x003f001f}, {2, 4096, 0x0fff0001}, {1, 5000, 0x0fff0001},
	} {
		got := MakeAQA(c.sq, c.cq)
		if got != c.want {
			t.Errorf("%d, %d: %#x, want %#x", c.sq, c.cq, uint32(got), uint32(c.want))
		}
	}
	if a := AQA(0x003f001f); a.SQEntries() != 32 || a.CQEntries() != 64 {
		t.Errorf("entries %d, %d", a.SQEntries(), a.CQEntries())
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		v    VS
		want string
	}{
		{Version14, "1.4"}, {MakeVS(1, 2, 1), "1.2.1"}, {Version21, "2.1"}, {0, "0.0"},
	} {
		if c.v.String() != c.want {
			t.Errorf("%#x is %q, want %q", uint32(c.v), c.v, c.want)
		}
	}
	if !Version20.AtLeast(Version14) || Version12.AtLeast(MakeVS(1, 2, 1)) || !Version13.AtLeast(Version13) {
		t.Error("order of versions")
	}
}

func TestCRTO(t *testing.T) {
	c := MakeCRTO(time.Minute, 1200*time.Millisecond)
	if c != 0x00030078 || c.CRWMT() != time.Minute || c.CRIMT() != 1500*time.Millisecond {
		t.Errorf("%#x: %v, %v", uint32(c), c.CRWMT(), c.CRIMT())
	}
}

func TestMemoryProperties(t *testing.T) {
	loc, sz := CMBLOC(0x00010_1fc), CMBSZ(0x00040_21f)
	if loc.BIR() != 4 || !loc.CQMMS() || !loc.CQPDS() || !loc.CDPMLS() || !loc.CDPCILS() || !loc.CDMMMS() || !loc.CQDA() {
		t.Errorf("CMBLOC %#x", uint32(loc))
	}
	if !sz.SQS() || !sz.CQS() || !sz.LISTS() || !sz.RDS() || !sz.WDS() {
		t.Errorf("CMBSZ %#x", uint32(sz))
	}
	if off, size, ok := sz.Range(loc); off != 16<<20 || size != 64<<20 || !ok {
		t.Errorf("range %#x, %#x, %v", off, size, ok)
	}
	if off, size, ok := CMBSZ(0xfffff_600).Range(0xfffff_000); off != 0xfffff<<36 || size != 0xfffff<<36 || !ok {
		t.Errorf("largest range %#x, %#x, %v", off, size, ok)
	}
	if _, _, ok := CMBSZ(0x00001_700).Range(loc); ok {
		t.Error("reserved size unit accepted")
	}
	if m := MakeCMBMSC(0x123456789abc, true, true); m != 0x123456789003 || !m.CRE() || !m.CMSE() || m.CBA() != 0x123456789000 {
		t.Errorf("CMBMSC %#x", uint64(m))
	}
	if e := ElasticityBuffer(0x000003_12); e.Size() != 3<<20 || !e.ReadBypass() {
		t.Errorf("elasticity buffer %d", e.Size())
	}
	if ElasticityBuffer(0x000003_04).Size() != 0 || WriteThroughput(0x000005_01).BytesPerSecond() != 5<<10 {
		t.Error("units")
	}
	if !CMBSTS(1).CBAI() {
		t.Error("CMBSTS")
	}
}

func TestPersistentMemoryAndBoot(t *testing.T) {
	p := PMRCAP(0x01_05_0d_58)
	if !p.RDS() || !p.WDS() || p.BIR() != 2 || !p.BarrierRead() || !p.BarrierStatus() || p.Timeout() != 5*time.Minute || !p.CMSS() {
		t.Errorf("PMRCAP %#x: bir %d timeout %v", uint32(p), p.BIR(), p.Timeout())
	}
	if PMRCAP(0x00_05_00_00).Timeout() != 2500*time.Millisecond || PMRCAP(0x00_05_02_00).Timeout() != 0 {
		t.Error("PMR timeout units")
	}
	s := PMRSTS(0x1507)
	if s.ERR() != 7 || !s.NRDY() || s.HSTS() != PMRReadOnly || !s.CBAI() {
		t.Errorf("PMRSTS %#x", uint32(s))
	}
	b := BPINFO(0x82000008)
	if b.Size() != 1<<20 || b.BRS() != BootReadComplete || b.ABPID() != 1 {
		t.Errorf("BPINFO %#x", uint32(b))
	}
	r, err := MakeBPRSEL(1, 0x3000, 0x2000)
	if err != nil || r != 0x80000c02 {
		t.Errorf("BPRSEL %#x, %v", uint32(r), err)
	}
	for _, bad := range [][3]uint64{{2, 0, 4096}, {0, 1, 4096}, {0, 0, 100}, {0, 1 << 32, 0}, {0, 0, 1 << 22}} {
		_, err := MakeBPRSEL(uint8(bad[0]), bad[1], bad[2])
		wantRangeError(t, err)
	}
}

func TestPropertySize(t *testing.T) {
	n := map[int]int{}
	for off := uint32(0); off < 0x2000; off++ {
		n[PropertySize(off)]++
	}
	if n[8] != 5 || n[4] != 23 {
		t.Errorf("%d properties of 8 bytes and %d of 4", n[8], n[4])
	}
}
