//go:build guest

package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/nvme"
)

// patience is how long a test waits for what must happen. It is for a hang, not
// for a slow machine.
const patience = 3 * time.Minute

// shape is a kind of load: random reads and writes, about as many of each.
type shape struct {
	blocks []uint64 // transfer sizes in blocks, to draw from
	depth  int
	ops    int  // 0: until stopped
	vector bool // each transfer in several buffers
	// tolerate says which failures are to be expected; nil is none. What fails
	// is not counted as done, and a write of which that is true may have been
	// made or not.
	tolerate func(error) bool
}

// load keeps one queue busy from the queue's own core and verifies every byte
// that it reads. Each of its slots has a strip of the model to itself, so that
// there is always one right answer.
type load struct {
	shape
	q        *nvme.NamespaceQueue
	m        *pattern.Model
	rng      *rand.Rand
	active   int
	begun    int
	stopping bool
	err      error // the first
	ended    chan struct{}

	reads, writes, failed atomic.Uint64 // completed; any goroutine may read
}

// slot is one operation at a time.
type slot struct {
	l            *load
	first, count uint64 // its strip, as indices into the model
	buf          []byte
	vec          [][]byte
	at, n        uint64 // the operation under way
	gen          uint32 // of a write; 0 for a read
}

// startLoad begins a load on the blocks of m.
func startLoad(t *testing.T, q *nvme.NamespaceQueue, m *pattern.Model, s shape, seed uint64) *load {
	t.Helper()
	l := &load{shape: s, q: q, m: m, rng: rand.New(rand.NewPCG(seed, 1)), ended: make(chan struct{})}
	var most uint64
	for _, n := range s.blocks {
		most = max(most, n)
	}
	strip := m.Blocks() / uint64(s.depth)
	if strip < most {
		t.Fatalf("%d blocks are too few for depth %d of %d", m.Blocks(), s.depth, most)
	}
	slots := make([]*slot, s.depth)
	for i := range slots {
		slots[i] = &slot{l: l, first: uint64(i) * strip, count: strip, buf: make([]byte, int(most)*m.Size)}
	}
	l.active = len(slots)
	err := q.QueuePair().Poller().Call(t.Context(), func() {
		for _, s := range slots {
			s.next()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stop has the load end when what is under way is done.
func (l *load) stop() { l.q.QueuePair().Poller().CallAnyway(func() { l.stopping = true }) }

// wait waits for the end of the load and fails the test for what went wrong.
func (l *load) wait(t *testing.T) {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(patience):
		var st nvme.QueueStats
		l.q.QueuePair().Poller().CallAnyway(func() { st = l.q.QueuePair().Stats() })
		t.Fatalf("load hangs after %d reads, %d writes, %d failures; controller %v, %+v",
			l.reads.Load(), l.writes.Load(), l.failed.Load(), l.q.Namespace().Controller().State(), st)
	}
	if l.err != nil {
		t.Fatalf("load of %v blocks at depth %d: %v", l.blocks, l.depth, l.err)
	}
}

// progress waits until n more operations have completed.
func (l *load) progress(t *testing.T, n uint64) {
	t.Helper()
	l.more(t, "operations", n, func() uint64 { return l.reads.Load() + l.writes.Load() })
}

// failures waits until n more operations have failed.
func (l *load) failures(t *testing.T, n uint64) {
	t.Helper()
	l.more(t, "failures", n, l.failed.Load)
}

func (l *load) more(t *testing.T, what string, n uint64, count func() uint64) {
	t.Helper()
	to := count() + n
	eventually(t, fmt.Sprintf("%d more %s", n, what), func() bool {
		select {
		case <-l.ended:
			l.wait(t)
			t.Fatal("the load has ended")
		default:
		}
		return count() >= to
	})
}

func (l *load) fail(err error) {
	if l.err == nil {
		l.err = err
	}
	l.stopping = true
}

// next begins the slot's next operation, or ends the slot.
func (s *slot) next() {
	l := s.l
	if l.stopping || l.ops > 0 && l.begun == l.ops {
		if l.active--; l.active == 0 {
			close(l.ended)
		}
		return
	}
	l.begun++
	s.n = l.blocks[l.rng.IntN(len(l.blocks))]
	s.at = s.first + l.rng.Uint64N(s.count-s.n+1)
	s.gen = 0
	b := s.data()
	if l.rng.IntN(2) == 0 {
		s.gen = l.m.Begin(b, s.at)
	} else {
		for i := range b {
			b[i] = 0xa5 // what is not read must not look right
		}
	}
	s.vec = nil
	if l.vector {
		s.vec = cut(l.rng, b)
	}
	s.submit()
}

func (s *slot) data() []byte { return s.buf[:int(s.n)*s.l.m.Size] }

// cut divides b into pieces of any length, some of which are empty.
func cut(rng *rand.Rand, b []byte) [][]byte {
	var vec [][]byte
	for len(b) > 0 && len(vec) < 16 {
		n := rng.IntN(min(len(b), 9000) + 1)
		vec, b = append(vec, b[:n]), b[n:]
	}
	return append(vec, b)
}

func (s *slot) submit() {
	l, lba, n := s.l, s.l.m.LBA+s.at, uint32(s.n)
	var err error
	switch {
	case s.gen == 0 && s.vec == nil:
		err = l.q.Read(s.data(), lba, n, slotDone, s)
	case s.gen == 0:
		err = l.q.ReadV(s.vec, lba, n, slotDone, s)
	case s.vec == nil:
		err = l.q.Write(s.data(), lba, n, slotDone, s)
	default:
		err = l.q.WriteV(s.vec, lba, n, slotDone, s)
	}
	switch {
	case err == nil:
	case errors.Is(err, nvme.ErrQueueFull):
		l.q.QueuePair().Poller().AfterFunc(time.Millisecond, s.submit)
	default: // nothing was sent
		s.failed(err, false)
	}
}

func slotDone(arg any, st nvme.Status) {
	s := arg.(*slot)
	l := s.l
	switch {
	case !st.OK():
		s.failed(st, true)
		return
	case s.gen != 0:
		l.m.Wrote(s.at, s.n, s.gen)
		l.writes.Add(1)
	default:
		if err := l.m.Verify(s.data(), s.at); err != nil {
			l.fail(fmt.Errorf("read of %d blocks: %w", s.n, err))
		}
		l.reads.Add(1)
	}
	s.next()
}

// failed takes an operation that did not succeed, and goes on after a while if
// that was to be expected.
func (s *slot) failed(err error, sent bool) {
	l := s.l
	if s.gen != 0 && sent {
		l.m.Lost(s.at, s.n, s.gen)
	}
	if l.tolerate == nil || !l.tolerate(err) {
		l.fail(fmt.Errorf("LBA %d, %d blocks, write %v: %w", l.m.LBA+s.at, s.n, s.gen != 0, err))
	}
	l.failed.Add(1)
	l.q.QueuePair().Poller().AfterFunc(5*time.Millisecond, s.next)
}

// eventually waits until cond is true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// readBack verifies all of a model, by the blocking calls.
func readBack(t *testing.T, ns *nvme.Namespace, m *pattern.Model) {
	t.Helper()
	buf := make([]byte, 1<<20/m.Size*m.Size)
	for at := uint64(0); at < m.Blocks(); {
		n := min(m.Blocks()-at, uint64(len(buf)/m.Size))
		b := buf[:int(n)*m.Size]
		if _, err := ns.ReadAtContext(t.Context(), b, int64(m.LBA+at)*int64(m.Size)); err != nil {
			t.Fatalf("read back %d blocks at LBA %d: %v", n, m.LBA+at, err)
		}
		if err := m.Verify(b, at); err != nil {
			t.Fatalf("read back: %v", err)
		}
		at += n
	}
}
