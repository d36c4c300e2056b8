//qpoll:hot

package overhead

import (
	"github.com/qpoll/qpoll/internal/tsc"
	"github.com/qpoll/qpoll/nvme"
)

// Source is what reaps and rings: a queue pair.
type Source interface {
	Poll(now int64) int
}

// Meter posts I/O to one queue and measures that. All of it belongs to the
// queue's core.
type Meter struct {
	q      nvme.Queue
	src    Source
	ticks  func() uint64 // replaces tsc.Ticks, in tests and without a counter
	free   []*slot       // stack
	depth  int
	batch  int
	blocks uint32
	write  bool
	left   int // I/Os that may be posted in this cycle
	unrung int // posted and not yet sent off

	reaped uint64 // callbacks, ever
	last   uint64 // of these, at the end of the last slice
	status nvme.Status
	bad    bool // an I/O has failed, with status
	err    error
	n      Counts // of the slice
}

// slot is one I/O.
type slot struct {
	m   *Meter
	buf []byte
	lba uint64
}

// done is the callback of every I/O.
func done(arg any, st nvme.Status) {
	s := arg.(*slot)
	m := s.m
	m.reaped++
	k := len(m.free)
	m.free = m.free[:k+1]
	m.free[k] = s
	if !st.OK() && !m.bad {
		m.bad, m.status = true, st
	}
}

func (m *Meter) now() uint64 {
	if m.ticks != nil {
		return m.ticks()
	}
	return tsc.Ticks()
}

// slice measures until the counter has reached a value and the cycle has come to
// its end, or the counter has reached the second value, and returns what it has
// seen. The pass that sends a batch off always belongs to the slice. It ends
// early if an I/O fails or the queue does not take one.
func (m *Meter) slice(until, latest uint64, now int64) Counts {
	m.n = Counts{Elsewhere: m.reaped - m.last}
	for m.unrung > 0 || m.err == nil && !m.bad {
		if m.unrung == 0 {
			at, whole := m.now(), len(m.free) == m.depth
			if at >= latest || whole && at >= until {
				break
			}
			if whole {
				m.left = m.depth // a cycle begins
			}
		}
		if m.unrung > 0 || m.left < m.batch {
			m.poll(now)
		} else {
			m.post()
		}
	}
	m.last = m.reaped
	return m.n
}

// post submits one batch.
func (m *Meter) post() {
	top := len(m.free)
	list := m.free[top-m.batch:]
	m.free = m.free[:top-m.batch]
	// Callbacks come from poll alone, so that the list stays as it is.
	var err error
	posted := 0
	began := m.now()
	if m.write {
		for _, s := range list {
			if err = m.q.Write(s.buf, s.lba, m.blocks, done, s); err != nil {
				break
			}
			posted++
		}
	} else {
		for _, s := range list {
			if err = m.q.Read(s.buf, s.lba, m.blocks, done, s); err != nil {
				break
			}
			posted++
		}
	}
	took := m.now() - began
	m.unrung = posted
	m.left -= posted
	if err != nil {
		m.refused(list[posted:], err)
	}
	m.n.Posted += uint64(posted)
	m.n.PostIntervals++
	m.n.PostTicks += took
}

// refused takes back what the queue did not take.
func (m *Meter) refused(list []*slot, err error) {
	m.err = err
	m.free = append(m.free, list...)
}

// poll lets the queue work once.
func (m *Meter) poll(now int64) {
	before := m.reaped
	began := m.now()
	did := m.src.Poll(now)
	took := m.now() - began
	n, k := &m.n, m.reaped-before
	switch {
	case m.unrung > 0 && k > 0:
		n.Mixed++
		n.MixedTicks += took
		n.MixedReaped += k
	case m.unrung > 0:
		n.Rings++
		n.RingTicks += took
		n.Rung += uint64(m.unrung)
	case k > 0:
		n.Completing++
		n.CompleteTicks += took
		n.Reaped += k
	case did > 0:
		n.Partial++
		n.PartialTicks += took
	default:
		n.Idle++
		n.IdleTicks += took
	}
	m.unrung = 0
}
