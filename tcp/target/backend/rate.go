package backend

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// DefaultBurst is Limit.Burst if that is 0.
const DefaultBurst = 5 * time.Millisecond

// Limit is how fast a Rate lets operations through. The zero value is no
// limit.
type Limit struct {
	// IOPS is operations per second; 0 is no limit.
	IOPS float64

	// BytesPerSecond counts the length of reads, writes and compares; 0 is no
	// limit.
	BytesPerSecond float64

	// Burst is how far behind its schedule the limiter may fall and still
	// catch up, which it does after pauses of the poller and of the load. 0 is
	// DefaultBurst; with a negative one, what is lost in a pause is lost.
	Burst time.Duration
}

// Rate is a Backend that paces what goes through it, over all pollers
// together. As long as something waits for its turn, the rate is that of the
// limit, exactly: the schedule does not drift.
type Rate struct {
	wrapper
	limit  atomic.Pointer[pace]
	ops    schedule
	octets schedule
}

// pace is a Limit in the unit of the schedules.
type pace struct {
	perOp   int64
	perByte float64
	burst   int64 // ns
}

// schedule is when the next operation, or byte, may go through.
type schedule struct {
	at atomic.Int64
}

// Schedules count in 1/64 ns: rounding is far below 1 % at any rate, and they
// do not overflow for four years.
const ticks = 64

// mostCost keeps schedules from overflowing: half a year.
const mostCost = math.MaxInt64 / 8

// NewRate wraps a backend.
func NewRate(inner Backend, l Limit) *Rate {
	r := &Rate{wrapper: wrapper{inner}}
	r.Set(l)
	return r
}

// Set changes the limit, also for what is waiting already.
func (r *Rate) Set(l Limit) {
	p := &pace{burst: int64(max(l.Burst, 0))}
	if l.Burst == 0 {
		p.burst = int64(DefaultBurst)
	}
	if l.IOPS > 0 {
		p.perOp = int64(min(math.Round(ticks*1e9/l.IOPS), mostCost))
	}
	if l.BytesPerSecond > 0 {
		p.perByte = ticks * 1e9 / l.BytesPerSecond
	}
	r.limit.Store(p)
	r.ops.at.Store(0)
	r.octets.at.Store(0)
}

// Info implements Backend.
func (r *Rate) Info() Info { return r.info(false) }

// Open implements Backend.
func (r *Rate) Open(p *poller.Poller) (Channel, error) {
	c, err := r.open(p)
	if err != nil {
		return nil, err
	}
	return &rateChannel{passage: c, r: r}, nil
}

type rateChannel struct {
	passage
	r    *Rate
	held queue
}

// Submit implements Channel.
func (c *rateChannel) Submit(op *Op) bool {
	if c.held.head == nil && c.r.admit(op, c.p.Now()) {
		return c.inner.Submit(op)
	}
	op.Keep()
	c.held.push(op)
	return false
}

// Poll implements Channel.
func (c *rateChannel) Poll(now int64) (n int) {
	for ; c.held.head != nil && c.r.admit(c.held.head, now); n++ {
		c.pass(c.held.pop())
	}
	return n + c.poll(now)
}

// Arm implements Channel.
func (c *rateChannel) Arm(now int64) (deadline int64, ok bool) {
	if c.held.head == nil {
		return c.arm(now, 0)
	}
	return c.arm(now, max(c.r.next(), now+1))
}

// Cancel implements Channel.
func (c *rateChannel) Cancel(op *Op) bool { return c.held.remove(op) || c.inner.Cancel(op) }

// admit takes op's place in the schedules if its time has come.
func (r *Rate) admit(op *Op, now int64) bool {
	p := r.limit.Load()
	if p.perOp > 0 && !r.ops.begun(now) || p.perByte > 0 && !r.octets.begun(now) {
		return false
	}
	if p.perOp > 0 {
		r.ops.take(now, p.burst, p.perOp)
	}
	if p.perByte > 0 && op.Kind.moves() {
		r.octets.take(now, p.burst, int64(min(float64(op.Length)*p.perByte, mostCost)))
	}
	return true
}

// next is when something may go through, in nanoseconds.
func (r *Rate) next() int64 {
	p, at := r.limit.Load(), int64(0)
	if p.perOp > 0 {
		at = r.ops.at.Load()
	}
	if p.perByte > 0 {
		at = max(at, r.octets.at.Load())
	}
	return at/ticks + 1
}

func (s *schedule) begun(now int64) bool { return s.at.Load() <= now*ticks }

// take moves the schedule on by cost. One that has not been used yet, or that
// is further behind than burst, first moves on to where it may be.
func (s *schedule) take(now, burst, cost int64) {
	for {
		at := s.at.Load()
		from := max(at, (now-burst)*ticks)
		if at == 0 {
			from = now * ticks
		}
		if s.at.CompareAndSwap(at, from+cost) {
			return
		}
	}
}
