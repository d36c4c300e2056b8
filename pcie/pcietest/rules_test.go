package pcietest

import (
	"errors"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

var flush = nvme.Command{Opcode: nvme.OpFlush, NSID: 1}

// send sends commands, and gives the controller time.
func (d *driver) send(n int) (first uint16) {
	for range n {
		d.put(1, flush)
	}
	d.ring(1)
	for range 5 {
		d.step()
	}
	return d.cid - uint16(n) + 1
}

// reaped takes all completions of queue 1.
func (d *driver) reaped() (list []nvme.Completion) {
	for cpl, ok := d.reap(1); ok; cpl, ok = d.reap(1) {
		list = append(list, cpl)
	}
	return list
}

func ruled(t *testing.T, r Rule) (*driver, *Injection) {
	t.Helper()
	d := newDriver(t, Config{}).enable()
	d.queue(1, 16)
	return d, d.c.Inject(r)
}

func TestFailRule(t *testing.T) {
	d, i := ruled(t, Rule{Action: Fail, Status: nvme.StatusUnrecoveredReadError, Skip: 1, Count: 2, Match: Opcode(nvme.OpFlush, false)})
	d.send(5)
	for k, cpl := range d.reaped() {
		want := nvme.Status(0)
		if k == 1 || k == 2 {
			want = nvme.StatusUnrecoveredReadError
		}
		if cpl.Status() != want {
			t.Errorf("command %d: %v", k, cpl.Status())
		}
	}
	if i.Hits() != 2 {
		t.Errorf("%d hits", i.Hits())
	}
	if n := d.c.Stats().Others; n != 3 {
		t.Errorf("%d commands were executed", n)
	}
	d.ok(0, d.identify(nvme.IdentifyCommand{CNS: nvme.CNSController}))
}

func TestDropRule(t *testing.T) {
	for action, executed := range map[Action]uint64{Drop: 2, Mute: 3} {
		d, i := ruled(t, Rule{Action: action, Count: 1})
		first := d.send(3)
		got := d.reaped()
		if len(got) != 2 || got[0].CID != first+1 || got[1].CID != first+2 || got[1].SQHead != 3 {
			t.Errorf("%v: %+v", action, got)
		}
		if n := d.c.Stats().Others; n != executed || i.Hits() != 1 {
			t.Errorf("%v: %d commands were executed", action, n)
		}
		if got := d.ok(0, nvme.AbortCommand{SQID: 1, CID: first}.Command()); got != uint64(nvme.AbortNotPerformed) {
			t.Errorf("abort of what is lost: %d", got)
		}
	}
}

func TestHoldRule(t *testing.T) {
	d, i := ruled(t, Rule{Action: Hold, Count: 3})
	first := d.send(4)
	if got := d.reaped(); len(got) != 1 || got[0].CID != first+3 {
		t.Fatalf("%+v", got)
	}
	d.put(0, nvme.AbortCommand{SQID: 1, CID: first + 1}.Command())
	d.ring(0)
	if cpl := d.wait(0); cpl.Status() != 0 || cpl.Result != 0 {
		t.Errorf("%+v", cpl)
	}
	if got := d.reaped(); len(got) != 1 || got[0].CID != first+1 || got[0].Status().Code() != nvme.StatusAbortRequested {
		t.Errorf("%+v", got)
	}
	if n := i.Release(); n != 2 {
		t.Errorf("%d were held", n)
	}
	if got := d.reaped(); len(got) != 2 || got[0].CID != first+2 || got[1].CID != first {
		t.Errorf("%+v", got)
	}
	// With the queue, what is held goes too: it is aborted.
	i.Remove()
	hold := d.c.Inject(Rule{Action: Hold})
	d.send(2)
	d.ok(0, nvme.DeleteSQCommand(1))
	for _, cpl := range d.reaped() {
		if cpl.Status() != nvme.StatusAbortedSQDeletion {
			t.Error(cpl.Status())
		}
	}
	if n := hold.Release(); n != 0 {
		t.Errorf("%d outlived their queue", n)
	}
}

func TestDelayRule(t *testing.T) {
	d, _ := ruled(t, Rule{Action: Delay, Delay: time.Second, Count: 1})
	first := d.send(2)
	if got := d.reaped(); len(got) != 1 || got[0].CID != first+1 {
		t.Fatalf("%+v", got)
	}
	d.now += int64(time.Second) - 10_000
	d.step()
	if got := d.reaped(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	d.now += int64(time.Second)
	d.step()
	if got := d.reaped(); len(got) != 1 || got[0].CID != first {
		t.Errorf("%+v", got)
	}
}

func TestReorderRule(t *testing.T) {
	d, _ := ruled(t, Rule{Action: Reorder, Count: 1})
	first := d.send(1)
	if got := d.reaped(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	d.send(1)
	if got := d.reaped(); len(got) != 2 || got[0].CID != first+1 || got[1].CID != first {
		t.Errorf("%+v", got)
	}
}

// TestWrongCompletions is wire case 19, the device's side.
func TestWrongCompletions(t *testing.T) {
	d, _ := ruled(t, Rule{Action: WrongCID, Value: 0xbeef, Count: 1})
	d.c.Inject(Rule{Action: WrongSQID, Value: 0x777, Count: 1})
	d.c.Inject(Rule{Action: Duplicate, Count: 1})
	first := d.send(4)
	got := d.reaped()
	if len(got) != 5 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct{ cid, sqid uint16 }{{0xbeef, 1}, {first + 1, 0x777}, {first + 2, 1}, {first + 2, 1}, {first + 3, 1}} {
		if got[i].CID != want.cid || got[i].SQID != want.sqid || got[i].Status() != 0 {
			t.Errorf("completion %d: %+v", i, got[i])
		}
	}
}

func TestStuckPhase(t *testing.T) {
	d, _ := ruled(t, Rule{Action: StuckPhase, Count: 1})
	d.send(3)
	if got := d.reaped(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if n := d.c.Stats().Completions; n < 3 {
		t.Errorf("%d completions", n)
	}
}

func TestFatal(t *testing.T) {
	d, _ := ruled(t, Rule{Action: Die, Count: 1})
	d.send(2)
	if got := d.reaped(); len(got) != 0 || !d.csts().CFS() {
		t.Errorf("%+v, CSTS %v", got, d.csts())
	}
	d.disable()
	d.enable()
	d.c.Fail()
	d.put(0, d.identify(nvme.IdentifyCommand{CNS: nvme.CNSController}))
	d.ring(0)
	d.step()
	if _, ok := d.reap(0); ok || !d.csts().CFS() {
		t.Errorf("CSTS is %v", d.csts())
	}
}

// TestRemoval is wire case 20, the device's side.
func TestRemoval(t *testing.T) {
	d, _ := ruled(t, Rule{Action: Leave, Count: 1})
	d.send(2)
	if got := d.reaped(); len(got) != 0 || !d.csts().Gone() {
		t.Errorf("%+v, CSTS %v", got, d.csts())
	}
	if v, err := d.dev.Read64(nvme.RegCAP); v != 1<<64-1 || err != nil {
		t.Errorf("CAP is %#x, %v", v, err)
	}
	if v, err := d.dev.Read32(nvme.RegDoorbells); v != 1<<32-1 || err != nil {
		t.Errorf("a doorbell is %#x, %v", v, err)
	}
	d.must(d.dev.Write32(nvme.RegCC, 0))
	d.must(d.dev.Write32(nvme.RegDoorbells, 0))
	if d.dev.Gone() {
		t.Error("nobody has told, and it is gone")
	}
	d.c.Vanish(false)
	if s := d.csts(); !s.RDY() {
		t.Errorf("back again, CSTS is %v", s)
	}
	told := 0
	d.dev.OnGone(func() { told++ })
	d.c.Remove()
	d.c.Remove()
	d.dev.OnGone(func() { told++ })
	if told != 2 || !d.dev.Gone() {
		t.Errorf("told %d times", told)
	}
	for _, err := range []error{
		func() error { _, err := d.dev.Read32(0); return err }(), func() error { _, err := d.dev.Read64(0); return err }(),
		d.dev.Write32(0, 0), d.dev.Write64(0, 0), d.dev.SetBusMaster(true), d.dev.SetInterrupt(0, -1), d.dev.Reset(t.Context()),
		d.dev.MapDMA(pcie.Memory{Bytes: d.mem[:4096]}, 0x1000), func() error { _, err := d.dev.Map(0, 4096, 4096); return err }(),
	} {
		if !errors.Is(err, pcie.ErrGone) {
			t.Errorf("%v, want %v", err, pcie.ErrGone)
		}
	}
	d.must(d.db.Write32(0, 1)) // memory that is there until Close
	d.must(d.dev.UnmapDMA(arenaBase, arenaSize))
}

func TestOverride(t *testing.T) {
	d := newDriver(t, Config{})
	d.c.Override(nvme.RegCAP, 0x1234_0000_0001)
	d.c.Override(nvme.RegVS, 7)
	if v, _ := d.dev.Read64(nvme.RegCAP); v != 0x1234_0000_0001 {
		t.Errorf("CAP is %#x", v)
	}
	if v, _ := d.dev.Read32(nvme.RegVS); v != 7 {
		t.Errorf("VS is %#x", v)
	}
	d.c.Restore(nvme.RegVS)
	if v, _ := d.dev.Read32(nvme.RegVS); v != uint32(nvme.Version21) {
		t.Errorf("VS is %#x", v)
	}
}

func TestInterrupts(t *testing.T) {
	both(t, Config{}, func(t *testing.T, d *driver) {
		d.enable()
		fd, err := sys.EventFD()
		d.must(err)
		d.must(d.dev.SetInterrupt(1, fd))
		cq := &ring{base: d.alloc(64), size: 4, phase: 1}
		d.ok(0, nvme.CreateCQCommand{QID: 1, Size: 3, Address: cq.base, Contiguous: true, Interrupts: true, Vector: 1}.Command())
		d.ok(0, nvme.CreateSQCommand{QID: 1, Size: 3, Address: d.alloc(256), Contiguous: true, CQID: 1}.Command())
		d.cqs[1], d.sqs[1] = cq, &ring{base: arenaBase + d.next - 256, size: 4}
		d.ok(1, flush)
		n, e := uint64(0), sys.Errno(0)
		for range patience {
			if n, e = sys.EventDrain(fd); e == 0 {
				break
			}
			d.step()
		}
		if n != 1 || e != 0 {
			t.Errorf("%d interrupts, %v", n, e)
		}
		d.must(d.dev.SetInterrupt(1, -1))
		d.ok(1, flush)
		if n, e := sys.EventDrain(fd); e == 0 {
			t.Errorf("%d interrupts without anybody to signal", n)
		}
		d.must(sys.Close(fd))
	})
}

// TestStart runs the controller by itself, stops and starts it.
func TestStart(t *testing.T) {
	d := newDriver(t, Config{})
	d.step = wait
	d.c.Start()
	d.c.Start()
	d.enable().queue(1, 8)
	for range 50 {
		d.ok(1, flush)
	}
	d.c.Stop()
	d.c.Stop()
	d.put(1, flush)
	d.ring(1)
	if got := d.reaped(); len(got) != 0 {
		t.Errorf("stopped: %+v", got)
	}
	d.c.Start()
	if cpl := d.wait(1); cpl.Status() != 0 {
		t.Error(cpl.Status())
	}
	d.noFaults()
}

func TestIdeal(t *testing.T) {
	d := newDriver(t, Config{Ideal: true}).enable()
	d.queue(1, 8)
	b := d.alloc(4096)
	d.ok(1, flush)
	for range 20 {
		d.ok(1, rw(nvme.OpRead, 1, 0, 8, b))
		d.ok(1, rw(nvme.OpWrite, 99, 1<<60, 8))
	}
	d.fails(1, rw(nvme.OpCompare, 99, 0, 1, b), nvme.StatusInvalidNamespace)
	if n := d.c.Stats().Others; n < 40 {
		t.Errorf("%d commands", n)
	}
	d.noFaults()
}

// TestAllocations: an I/O does not allocate.
func TestAllocations(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 64)
	dptr, _ := d.prps(64<<10, 512, 0)
	cmd := rw(nvme.OpRead, 1, 0, 128, dptr[:]...)
	w := cmd
	w.Opcode = nvme.OpWrite
	n := testing.AllocsPerRun(100, func() {
		d.ok(1, cmd)
		d.ok(1, w)
	})
	if n != 0 {
		t.Errorf("%v allocations for two commands", n)
	}
}
