package backend

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/poller"
)

// Stall is a Backend that can be stopped: operations then wait until it is
// told to go on.
type Stall struct {
	wrapper
	stopped atomic.Bool
	waiting atomic.Int64
	wake    wakers
}

// NewStall wraps a backend. It does not stop anything yet.
func NewStall(inner Backend) *Stall { return &Stall{wrapper: wrapper{inner}} }

// Stop holds what comes from now on.
func (s *Stall) Stop() { s.stopped.Store(true) }

// Resume lets everything go on, in the order in which it came to each poller.
func (s *Stall) Resume() {
	s.stopped.Store(false)
	s.wake.all()
}

// Waiting returns how many operations are held at the moment.
func (s *Stall) Waiting() int { return int(s.waiting.Load()) }

// Info implements Backend.
func (s *Stall) Info() Info { return s.info(false) }

// Open implements Backend.
func (s *Stall) Open(p *poller.Poller) (Channel, error) {
	c, err := s.open(p)
	if err != nil {
		return nil, err
	}
	s.wake.add(p)
	return &stallChannel{passage: c, s: s}, nil
}

type stallChannel struct {
	passage
	s    *Stall
	held queue
}

// Submit implements Channel.
func (c *stallChannel) Submit(op *Op) bool {
	if c.held.head == nil && !c.s.stopped.Load() {
		return c.inner.Submit(op)
	}
	op.Keep()
	c.held.push(op)
	c.s.waiting.Add(1)
	return false
}

// Poll implements Channel.
func (c *stallChannel) Poll(now int64) (n int) {
	for ; c.held.head != nil && !c.s.stopped.Load(); n++ {
		c.s.waiting.Add(-1)
		c.pass(c.held.pop())
	}
	return n + c.poll(now)
}

// Arm implements Channel. Resume wakes the poller.
func (c *stallChannel) Arm(now int64) (deadline int64, ok bool) {
	deadline, ok = c.arm(now, 0)
	return deadline, ok && (c.held.head == nil || c.s.stopped.Load())
}

// Cancel implements Channel.
func (c *stallChannel) Cancel(op *Op) bool {
	if c.held.remove(op) {
		c.s.waiting.Add(-1)
		return true
	}
	return c.inner.Cancel(op)
}

// Close implements Channel.
func (c *stallChannel) Close() {
	c.s.wake.remove(c.p)
	c.passage.Close()
}
