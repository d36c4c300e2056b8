package backend

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// Distribution gives the delay of an operation, which it must not change. It
// is called on the core, with a random number generator of the channel's own.
// A delay of 0 or less is none.
type Distribution func(op *Op, r *rand.Rand) time.Duration

// Latency is a Backend that delays what goes through it, each operation by
// itself: it limits neither how many there are nor their rate.
type Latency struct {
	wrapper
	fixed atomic.Int64
	drawn atomic.Pointer[Distribution] // in place of fixed, if not nil
}

// NewLatency wraps a backend so that every operation begins d after it came.
func NewLatency(inner Backend, d time.Duration) *Latency {
	l := &Latency{wrapper: wrapper{inner}}
	l.fixed.Store(int64(d))
	return l
}

// Set delays what comes from now on by d.
func (l *Latency) Set(d time.Duration) {
	l.fixed.Store(int64(d))
	l.drawn.Store(nil)
}

// SetDistribution delays what comes from now on by what f says.
func (l *Latency) SetDistribution(f Distribution) {
	if f == nil {
		l.drawn.Store(nil)
		return
	}
	l.drawn.Store(&f)
}

// Info implements Backend.
func (l *Latency) Info() Info { return l.info(false) }

// Open implements Backend.
func (l *Latency) Open(p *poller.Poller) (Channel, error) {
	c, err := l.open(p)
	if err != nil {
		return nil, err
	}
	return &latencyChannel{passage: c, l: l, rand: newRand(p)}, nil
}

// newRand returns a generator that gives the same numbers in every run.
func newRand(p *poller.Poller) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(int64(p.Core())), 0x9e3779b97f4a7c15))
}

type latencyChannel struct {
	passage
	l    *Latency
	rand *rand.Rand
	held held
}

// Submit implements Channel.
func (c *latencyChannel) Submit(op *Op) bool {
	d := c.l.fixed.Load()
	if f := c.l.drawn.Load(); f != nil {
		d = int64((*f)(op, c.rand))
	}
	if d <= 0 {
		return c.inner.Submit(op)
	}
	op.Keep()
	c.held.push(op, later(c.p.Now(), d))
	return false
}

// Poll implements Channel.
func (c *latencyChannel) Poll(now int64) (n int) {
	for ; c.held.due(now); n++ {
		c.pass(c.held.pop())
	}
	return n + c.poll(now)
}

// Arm implements Channel.
func (c *latencyChannel) Arm(now int64) (deadline int64, ok bool) {
	return c.arm(now, c.held.next())
}

// Cancel implements Channel.
func (c *latencyChannel) Cancel(op *Op) bool { return c.held.remove(op) || c.inner.Cancel(op) }

// later is now+d, kept from passing the end of time.
func later(now, d int64) int64 {
	if d > math.MaxInt64-max(now, 0) {
		return math.MaxInt64
	}
	return now + d
}
