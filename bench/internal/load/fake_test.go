package load

import (
	"github.com/qpoll/qpoll/nvme"
)

// io is one I/O that a fakeQueue has.
type io struct {
	op     int
	lba    uint64
	blocks uint32
	buf    []byte
	done   nvme.Done
	arg    any
}

// fakeQueue takes I/O and completes it when told.
type fakeQueue struct {
	nvme.Queue // the methods that nobody calls
	blockSize  int
	blocks     uint64
	depth      int
	err        error // of all submissions
	held       []io  // in order of submission
	seen       func(io)
}

func (q *fakeQueue) BlockSize() int { return q.blockSize }
func (q *fakeQueue) Blocks() uint64 { return q.blocks }
func (q *fakeQueue) Room() int      { return q.depth - len(q.held) }

func (q *fakeQueue) Read(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	return q.take(io{read, lba, blocks, buf, done, arg})
}

func (q *fakeQueue) Write(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	return q.take(io{write, lba, blocks, buf, done, arg})
}

func (q *fakeQueue) take(i io) error {
	if q.err != nil {
		return q.err
	}
	if len(q.held) >= q.depth {
		return nvme.ErrQueueFull
	}
	if q.seen != nil {
		q.seen(i)
	}
	q.held = append(q.held, i)
	return nil
}

// complete ends the oldest I/O.
func (q *fakeQueue) complete(st nvme.Status) {
	i := q.held[0]
	q.held = append(q.held[:0], q.held[1:]...)
	i.done(i.arg, st)
}

// Poll makes it a source that completes what it has in each pass.
func (q *fakeQueue) Poll(int64) int {
	n := len(q.held)
	for range n {
		q.complete(0)
	}
	return n
}

func (q *fakeQueue) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, len(q.held) == 0 }

// testClock is a clock that goes on by step with each reading.
type testClock struct{ now, step int64 }

func (c *testClock) read() int64 {
	c.now += c.step
	return c.now
}
