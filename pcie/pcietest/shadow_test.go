package pcietest

import (
	"testing"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// shadowed is a driver with shadow doorbells.
type shadowed struct {
	*driver
	db, ei mmio.Window
	rung   int // real doorbells that were written
}

func newShadowed(t *testing.T, cfg Config) *shadowed {
	t.Helper()
	d := newDriver(t, cfg).enable()
	s := &shadowed{driver: d}
	db, ei := d.alloc(4096), d.alloc(4096)
	d.ok(0, nvme.DoorbellBufferCommand(db, ei))
	s.db, s.ei = mmio.NewWindow(d.at(db, 4096)), mmio.NewWindow(d.at(ei, 4096))
	return s
}

// write updates a shadow doorbell, and the real one if the event index says so.
func (s *shadowed) write(off uint64, v uint32) {
	s.t.Helper()
	old, err := s.db.Read32(off)
	s.must(err)
	s.must(s.db.Write32(off, v))
	mmio.Fence()
	ei, err := s.ei.Read32(off)
	s.must(err)
	if uint16(v-ei-1) < uint16(v-old) {
		s.rung++
		s.must(s.driver.db.Write32(off, v))
	}
}

// flush executes some commands, and waits for them.
func (s *shadowed) flush(qid uint16, n int) {
	s.t.Helper()
	for range n {
		s.put(qid, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
	}
	s.write(2*uint64(qid)*s.stride, s.sqs[qid].at)
	q := s.cqs[qid]
	for range n {
		cpl := s.waitShadow(qid)
		if cpl.Status() != 0 {
			s.t.Fatal(cpl.Status())
		}
	}
	s.write((2*uint64(qid)+1)*s.stride, q.at)
}

// waitShadow takes a completion without writing a doorbell.
func (s *shadowed) waitShadow(qid uint16) nvme.Completion {
	s.t.Helper()
	real := s.driver.db
	s.driver.db = mmio.NewWindow(make([]byte, 8192))
	defer func() { s.driver.db = real }()
	return s.wait(qid)
}

func TestShadowDoorbells(t *testing.T) {
	for _, notify := range []bool{false, true} {
		s := newShadowed(t, Config{ShadowNotify: notify})
		s.queue(1, 8)
		for i := range 40 {
			s.flush(1, 1+i%6)
		}
		// The first of each may be: the controller has not been there yet.
		if (s.rung > 2) != notify {
			t.Errorf("notify %v: %d doorbells were written", notify, s.rung)
		}
		s.noFaults()
	}
}

// TestShadowNotify: without the real doorbell, the controller does not look.
func TestShadowNotify(t *testing.T) {
	s := newShadowed(t, Config{ShadowNotify: true})
	s.queue(1, 8)
	s.flush(1, 3)
	s.put(1, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
	s.must(s.db.Write32(8, s.sqs[1].at))
	for range 10 {
		s.step()
	}
	if n := s.c.Stats().Others; n != 3 {
		t.Errorf("%d commands were executed", n)
	}
	s.ring(1)
	if cpl := s.waitShadow(1); cpl.Status() != 0 {
		t.Error(cpl.Status())
	}
}

// TestShadowReuse is wire case 17, the device's side: a queue begins with what
// its shadow doorbell holds, so a driver that does not clear it is found out.
func TestShadowReuse(t *testing.T) {
	s := newShadowed(t, Config{})
	s.queue(1, 8)
	s.flush(1, 5)
	s.ok(0, nvme.DeleteSQCommand(1))
	s.ok(0, nvme.DeleteCQCommand(1))
	for _, clear := range []bool{true, false} {
		if clear {
			for off := uint64(8); off < 16; off += 4 {
				s.must(s.db.Write32(off, 0))
				s.must(s.ei.Write32(off, 0))
			}
		}
		before := s.c.Stats().Others
		s.queue(1, 8)
		s.step()
		if n := s.c.Stats().Others - before; (n == 0) != clear {
			t.Errorf("cleared %v: %d commands were executed that nobody has sent", clear, n)
		}
		if clear {
			s.flush(1, 5)
		}
		s.ok(0, nvme.DeleteSQCommand(1))
		s.ok(0, nvme.DeleteCQCommand(1))
	}
}

func TestShadowErrors(t *testing.T) {
	d := newDriver(t, Config{IOQueues: 600}).enable()
	b := d.alloc(8192)
	for _, c := range []struct {
		db, ei uint64
		want   nvme.Status
	}{
		{0, b, nvme.StatusInvalidField}, {b, 0, nvme.StatusInvalidField}, {b + 8, b, nvme.StatusInvalidField},
		{b, b + 64, nvme.StatusInvalidField}, {0x2000, b, nvme.StatusDataTransferError}, {b, 0x2000, nvme.StatusDataTransferError},
	} {
		d.fails(0, nvme.DoorbellBufferCommand(c.db, c.ei), c.want)
	}
	d.c.ClearFaults()
	d.ok(0, nvme.DoorbellBufferCommand(b, b+4096))
	// Queues beyond the page have real doorbells.
	d.queue(512, 4)
	d.ok(512, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
	d.noFaults()
	none := newDriver(t, Config{NoShadow: true}).enable()
	none.fails(0, nvme.DoorbellBufferCommand(b, b+4096), nvme.StatusInvalidOpcode)
}

// TestBadDoorbell writes values that a queue cannot have.
func TestBadDoorbell(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 8)
	d.put(0, nvme.Command{Opcode: nvme.AdminAsyncEvent})
	d.ring(0)
	d.must(d.db.Write32(8, 8))
	d.step()
	d.step()
	if n := d.c.Stats().BadDoorbells; n != 1 {
		t.Errorf("%d bad doorbells", n)
	}
	if cpl := d.wait(0); nvme.AsyncEvent(cpl.Result).Type() != nvme.AsyncError || nvme.AsyncEvent(cpl.Result).Info() != nvme.ErrorInvalidDoorbellValue {
		t.Errorf("event %v", nvme.AsyncEvent(cpl.Result))
	}
	d.must(d.db.Write32(8, 0))
	d.ok(1, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
}
