package pcietest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// fill fills b with bytes that tell where they are.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)*31 + byte(i>>16)*7
	}
}

func TestReadWrite(t *testing.T) { both(t, Config{}, testReadWrite) }

func testReadWrite(t *testing.T, d *driver) {
	d.enable().queue(1, 64)
	w, r := d.alloc(4096), d.alloc(4096)
	fill(d.at(w, 4096), 3)
	d.ok(1, rw(nvme.OpWrite, 1, 8, 8, w))
	d.ok(1, rw(nvme.OpCompare, 1, 8, 8, w))
	d.ok(1, rw(nvme.OpRead, 1, 8, 8, r))
	if !bytes.Equal(d.at(r, 4096), d.at(w, 4096)) {
		t.Error("read something else than was written")
	}
	d.ok(1, rw(nvme.OpRead, 1, 9, 1, r))
	if !bytes.Equal(d.at(r, 512), d.at(w+512, 512)) {
		t.Error("block 9 is not the second that was written")
	}
	d.at(w, 1)[0]++
	d.fails(1, rw(nvme.OpCompare, 1, 8, 8, w), nvme.StatusCompareFailure)
	d.ok(1, rw(nvme.OpWriteZeroes, 1, 9, 1))
	d.ok(1, rw(nvme.OpVerify, 1, 9, 1))
	d.ok(1, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
	d.ok(1, nvme.Command{Opcode: nvme.OpFlush, NSID: nvme.NSIDAll})
	d.ok(1, rw(nvme.OpRead, 1, 9, 1, r))
	if !bytes.Equal(d.at(r, 512), make([]byte, 512)) {
		t.Error("Write Zeroes left something")
	}
	d.noFaults()
	if s := d.c.Stats(); s.Reads != 3 || s.Writes != 1 || s.Others != 6 || s.Errors != 1 {
		t.Errorf("%+v", s)
	}
}

func TestIOErrors(t *testing.T) {
	d := newDriver(t, Config{Namespaces: []NamespaceConfig{
		{Size: 1 << 20}, {NSID: 3, Size: 1 << 20, ReadOnly: true}, {NSID: 4, Size: 1 << 20, Detached: true}}}).enable()
	d.queue(1, 64)
	b := d.alloc(4096)
	for _, c := range []struct {
		name string
		cmd  nvme.Command
		want nvme.Status
	}{
		{"beyond the end", rw(nvme.OpRead, 1, 2048, 1, b), nvme.StatusLBAOutOfRange},
		{"across the end", rw(nvme.OpWrite, 1, 2047, 2, b), nvme.StatusLBAOutOfRange},
		{"wraps", rw(nvme.OpRead, 1, 1<<64-1, 2, b), nvme.StatusLBAOutOfRange},
		{"zeroes beyond", rw(nvme.OpWriteZeroes, 1, 2047, 2), nvme.StatusLBAOutOfRange},
		{"inactive", rw(nvme.OpRead, 2, 0, 1, b), nvme.StatusInvalidField},
		{"detached", rw(nvme.OpRead, 4, 0, 1, b), nvme.StatusInvalidField},
		{"no NSID", rw(nvme.OpRead, 0, 0, 1, b), nvme.StatusInvalidNamespace},
		{"NSID above NN", rw(nvme.OpRead, 65, 0, 1, b), nvme.StatusInvalidNamespace},
		{"broadcast", rw(nvme.OpRead, nvme.NSIDAll, 0, 1, b), nvme.StatusInvalidNamespace},
		{"read-only", rw(nvme.OpWrite, 3, 0, 1, b), nvme.StatusNamespaceWriteProtected},
		{"read-only zeroes", rw(nvme.OpWriteZeroes, 3, 0, 1), nvme.StatusNamespaceWriteProtected},
		{"opcode", rw(0x7e, 1, 0, 1, b), nvme.StatusInvalidOpcode},
		{"fused", func() nvme.Command { c := rw(nvme.OpCompare, 1, 0, 1, b); c.Flags = 1; return c }(), nvme.StatusInvalidField},
		{"longer than MDTS", rw(nvme.OpRead, 1, 0, 2049, b), nvme.StatusLBAOutOfRange},
		{"misaligned", rw(nvme.OpRead, 1, 0, 1, b+2), nvme.StatusPRPOffsetInvalid},
	} {
		t.Run(c.name, func(t *testing.T) { d.t = t; d.fails(1, c.cmd, c.want) })
	}
	d.t = t
	d.ok(1, rw(nvme.OpRead, 3, 0, 1, b))
	d.noFaults()
}

func TestMaxTransfer(t *testing.T) {
	d := newDriver(t, Config{MaxTransfer: 8192}).enable()
	d.queue(1, 8)
	b := d.alloc(3 * 4096)
	d.ok(1, rw(nvme.OpRead, 1, 0, 16, b, b+4096))
	d.fails(1, rw(nvme.OpRead, 1, 0, 17, b, b+4096), nvme.StatusInvalidField)
}

func TestBackendErrors(t *testing.T) {
	d := newDriver(t, Config{Namespaces: []NamespaceConfig{{Backend: failing{nvme.StatusUnrecoveredReadError}}, {Backend: failing{errors.New("broken")}}}}).enable()
	d.queue(1, 8)
	b := d.alloc(4096)
	for _, op := range []nvme.Opcode{nvme.OpRead, nvme.OpWrite, nvme.OpCompare} {
		d.fails(1, rw(op, 1, 0, 1, b), nvme.StatusUnrecoveredReadError)
		d.fails(1, rw(op, 2, 0, 1, b), nvme.StatusInternalError)
	}
	d.fails(1, rw(nvme.OpWriteZeroes, 2, 0, 1), nvme.StatusInternalError)
	d.fails(1, nvme.Command{Opcode: nvme.OpFlush, NSID: 2}, nvme.StatusInternalError)
}

// failing is a backend where everything fails.
type failing struct{ err error }

func (f failing) Size() int64                            { return 1 << 20 }
func (f failing) ReadAt(b []byte, _ int64) (int, error)  { return len(b), f.err }
func (f failing) WriteAt(b []byte, _ int64) (int, error) { return len(b), f.err }
func (f failing) Sync() error                            { return f.err }

// TestWrap goes around queues of two and three entries, with and without room
// for completions.
func TestWrap(t *testing.T) {
	d := newDriver(t, Config{QueueEntries: 2}).enable()
	d.queue(1, 2)
	b := d.alloc(4096)
	for range 9 {
		d.ok(1, rw(nvme.OpRead, 1, 0, 1, b))
	}
	d.fails(0, nvme.CreateCQCommand{QID: 2, Size: 2, Address: b, Contiguous: true}.Command(), nvme.StatusInvalidQueueSize)
}

// TestFullCompletionQueue holds commands until there is room.
func TestFullCompletionQueue(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 4)
	d.ok(0, nvme.CreateSQCommand{QID: 2, Size: 15, Address: d.alloc(16 * 64), Contiguous: true, CQID: 1}.Command())
	d.sqs[2] = &ring{base: arenaBase + d.next - 16*64, size: 16}
	for range 8 {
		d.put(2, rw(nvme.OpFlush, 1, 0, 1))
	}
	d.ring(2)
	for range 5 {
		d.step()
	}
	if n := d.c.Stats().Others; n != 3 {
		t.Errorf("%d commands were executed, there is room for 3", n)
	}
	for i := range 8 {
		if cpl := d.wait(1); cpl.SQID != 2 || cpl.Status() != 0 {
			t.Fatalf("completion %d: %+v", i, cpl)
		}
	}
	d.noFaults()
}

func TestRegisters(t *testing.T) {
	d := newDriver(t, Config{QueueEntries: 1024, Timeout: 20 * time.Second, DoorbellStride: 1, MaxPage: 2, Weighted: true})
	v, err := d.dev.Read64(nvme.RegCAP)
	d.must(err)
	cap := nvme.CAP(v)
	if cap.MQES() != 1023 || cap.TO() != 20*time.Second || cap.DoorbellStride() != 8 || cap.MaxPageSize() != 16384 || !cap.CQR() ||
		cap.AMS() != nvme.CAPAMSWeightedRoundRobin || cap.CSS()&nvme.CAPCSSNVM == 0 {
		t.Errorf("%+v", cap.Fields())
	}
	for _, c := range []struct {
		off  uint32
		want uint32
	}{{0, uint32(cap)}, {4, uint32(cap >> 32)}, {nvme.RegVS, uint32(nvme.Version21)}, {nvme.RegCSTS, 0}, {nvme.RegCMBLOC, 0}, {0xf00, 0}} {
		if v, err := d.dev.Read32(c.off); v != c.want || err != nil {
			t.Errorf("register %#x is %#x, %v, want %#x", c.off, v, err, c.want)
		}
	}
	// A 64-bit register in halves, and what is read-only.
	d.must(d.dev.Write32(nvme.RegASQ, 0x12345fff))
	d.must(d.dev.Write32(nvme.RegASQ+4, 0x9))
	d.must(d.dev.Write32(nvme.RegCAP, 1))
	d.must(d.dev.Write32(nvme.RegINTMS, 5))
	d.must(d.dev.Write32(nvme.RegINTMC, 4))
	if v, _ := d.dev.Read64(nvme.RegASQ); v != 0x9_12345000 {
		t.Errorf("ASQ is %#x", v)
	}
	if v, _ := d.dev.Read32(nvme.RegCAP); v != uint32(cap) {
		t.Errorf("CAP was written")
	}
	if v, _ := d.dev.Read32(nvme.RegINTMC); v != 1 {
		t.Errorf("interrupt mask %#x", v)
	}
	for _, off := range []uint32{1, 2, 0x1006, uint32(d.dev.BARSize(0))} {
		if _, err := d.dev.Read32(off); !errors.Is(err, ErrAccess) {
			t.Errorf("read of 4 bytes at %#x: %v", off, err)
		}
	}
}

// TestEnable is wire case 16, the device's side.
func TestEnable(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		cc   func(nvme.CC) nvme.CC
		fail bool
	}{
		{"plain", Config{}, nil, false},
		{"page below MPSMIN", Config{MinPage: 1}, func(cc nvme.CC) nvme.CC { return cc &^ (0xf << 7) }, true},
		{"page of MPSMIN", Config{MinPage: 3}, nil, false},
		{"page above MPSMAX", Config{MaxPage: 1}, func(cc nvme.CC) nvme.CC { return cc | 2<<7 }, true},
		{"command set", Config{}, func(cc nvme.CC) nvme.CC { return cc | 1<<4 }, true},
		{"all command sets", Config{}, func(cc nvme.CC) nvme.CC { return cc | 6<<4 }, false},
		{"arbitration", Config{}, func(cc nvme.CC) nvme.CC { return cc | 1<<11 }, true},
		{"weighted", Config{Weighted: true}, func(cc nvme.CC) nvme.CC { return cc | 1<<11 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t, c.cfg)
			d.prepare(2)
			cc := d.cc()
			if c.cc != nil {
				cc = c.cc(cc)
			}
			d.must(d.dev.Write32(nvme.RegCC, uint32(cc)))
			if s := d.csts(); s.CFS() != c.fail || s.RDY() == c.fail {
				t.Fatalf("CSTS is %v", s)
			}
			d.must(d.dev.Write32(nvme.RegCC, 0))
			if s := d.csts(); s != 0 {
				t.Errorf("disabled, CSTS is %v", s)
			}
		})
	}
}

func TestReadyTime(t *testing.T) {
	d := newDriver(t, Config{ReadyTime: 10 * time.Millisecond, ShutdownTime: time.Second})
	d.prepare(16)
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc())))
	at := func(ns int64, want nvme.CSTSFields) {
		t.Helper()
		d.c.Poll(ns)
		if got := d.csts(); got != want.CSTS() {
			t.Errorf("at %d: %v, want %v", ns, got, want.CSTS())
		}
	}
	at(9_999_999, nvme.CSTSFields{})
	at(10_000_000, nvme.CSTSFields{RDY: true})
	d.now = 10_000_000
	d.queue(1, 4)
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc().WithSHN(nvme.CCSHNNormal))))
	at(d.now, nvme.CSTSFields{RDY: true, SHST: nvme.CSTSSHSTInProgress})
	at(d.now+1_000_000_000, nvme.CSTSFields{RDY: true, SHST: nvme.CSTSSHSTComplete})
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc().WithEN(false))))
	at(1_010_000_000, nvme.CSTSFields{RDY: true, SHST: nvme.CSTSSHSTNormal})
	at(3_000_000_000, nvme.CSTSFields{})
	d.c.SetReadyTime(-1)
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc())))
	at(1<<62, nvme.CSTSFields{})
}

// TestReset resets with commands outstanding: they never complete.
func TestReset(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	for range 3 {
		d.queue(1, 8)
		hold := d.c.Inject(Rule{Action: Hold})
		b := d.alloc(4096)
		cq := d.cqs[1]
		d.put(1, rw(nvme.OpRead, 1, 0, 1, b))
		d.ring(1)
		d.step()
		if hold.Hits() != 1 {
			t.Fatal("nothing was held")
		}
		d.disable()
		hold.Remove()
		if n := hold.Release(); n != 0 {
			t.Errorf("%d commands outlived the reset", n)
		}
		d.enable()
		if b := d.at(cq.base, 16); !bytes.Equal(b, make([]byte, 16)) {
			t.Error("a completion came after the reset")
		}
		d.ok(0, d.identify(nvme.IdentifyCommand{CNS: nvme.CNSController}))
	}
	d.reset()
	if s := d.csts(); s != 0 {
		t.Errorf("after the function level reset, CSTS is %v", s)
	}
	if v, _ := d.dev.Read64(nvme.RegASQ); v != 0 {
		t.Errorf("ASQ is %#x", v)
	}
	d.enable()
	d.must(d.dev.Write32(nvme.RegNSSR, nvme.NSSRReset))
	if s := d.csts(); s.RDY() || !s.NSSRO() {
		t.Errorf("after the subsystem reset, CSTS is %v", s)
	}
	d.noFaults()
}

func TestDevice(t *testing.T) {
	d := newDriver(t, Config{Interrupts: 3, MaxMappings: 2, CMB: CMBConfig{Size: 8192}})
	other := d.c.Device()
	if _, err := other.Read32(0); !errors.Is(err, ErrBusy) {
		t.Errorf("a second driver: %v", err)
	}
	d.must(other.Close())
	if d.dev.Interrupts() != 3 || d.dev.MaxMappings() != 2 || d.dev.Info().Class != 0x010802 || d.dev.Name() == "" {
		t.Errorf("%d interrupts, %d mappings, %+v", d.dev.Interrupts(), d.dev.MaxMappings(), d.dev.Info())
	}
	if n := d.dev.BARSize(0); n != 8192 {
		t.Errorf("BAR 0 has %d bytes", n)
	}
	if d.dev.BARSize(2) != 8192 || d.dev.BARSize(1) != 0 || d.dev.BARSize(9) != 0 || d.dev.BARSize(-1) != 0 {
		t.Error("sizes of BARs")
	}
	for _, c := range []struct {
		bar    int
		off, n uint64
	}{{0, 0, 4096}, {0, 4096, 8192}, {1, 0, 16}, {2, 4096, 8192}, {4, 0, 16}} {
		if _, err := d.dev.Map(c.bar, c.off, c.n); !errors.Is(err, ErrAccess) {
			t.Errorf("mapping of %d bytes of BAR %d at %d: %v", c.n, c.bar, c.off, err)
		}
	}
	page := pcie.Memory{Bytes: d.mem[:4096], FD: -1}
	for _, iova := range []uint64{0, 0xfee00000, arenaBase, arenaBase - 4096 + 1, 1 << 48, arenaBase + arenaSize - 4096} {
		if err := d.dev.MapDMA(page, iova); !errors.Is(err, ErrMapping) {
			t.Errorf("mapping at %#x: %v", iova, err)
		}
	}
	d.must(d.dev.MapDMA(page, arenaBase-4096))
	if err := d.dev.MapDMA(page, 0x1000); !errors.Is(err, ErrMapping) {
		t.Errorf("a third mapping: %v", err)
	}
	if err := d.dev.UnmapDMA(arenaBase-4096, 8192); !errors.Is(err, ErrMapping) {
		t.Errorf("undoing what was not done: %v", err)
	}
	d.must(d.dev.UnmapDMA(arenaBase-4096, 4096))
	if err := d.dev.SetInterrupt(3, -1); !errors.Is(err, ErrAccess) {
		t.Errorf("interrupt 3: %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, cfg := range []Config{
		{QueueEntries: 1}, {QueueEntries: 65537}, {IOQueues: -1}, {IOQueues: 65536}, {DoorbellStride: 16},
		{DoorbellStride: 15, IOQueues: 65535}, {MinPage: 2, MaxPage: 1}, {MaxPage: 16}, {Timeout: time.Hour}, {MaxTransfer: 5000},
		{MaxTransfer: 128 << 20}, {MaxTransfer: 4096, MinPage: 1}, {CMB: CMBConfig{Size: 100}}, {Interrupts: 2049}, {Capacity: -1}, {NQN: "x"},
		{Namespaces: []NamespaceConfig{{NSID: 1}, {NSID: 1}}}, {Namespaces: []NamespaceConfig{{BlockSize: 1024}}},
		{Namespaces: []NamespaceConfig{{Size: 100}}}, {Namespaces: []NamespaceConfig{{Size: -1}}}, {Namespaces: []NamespaceConfig{{ANAGroup: 33}}},
		{Namespaces: []NamespaceConfig{{NSID: 65}}},
	} {
		if c, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
			if c != nil {
				c.Close()
			}
		}
	}
}
