package backend

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Fault makes operations fail. An operation fails if it fulfils all of the
// conditions that are set; one without conditions makes everything fail.
type Fault struct {
	// Status is the outcome; StatusInternalError if it is 0.
	Status nvme.Status

	// Kinds are the kinds of operations to fail; all if there are none.
	Kinds []Kind

	// Offset and Length are a range in bytes that an operation must touch;
	// Length 0 is everything from Offset on.
	Offset, Length int64

	// Fraction is the share of operations to fail, drawn at random from those
	// that fulfil everything else: 0 to 1, where 0 also means all of them.
	Fraction float64

	// Match is a condition of the user's own. It is called on the core.
	Match func(op *Op) bool

	// Times is how many operations fail before the fault is over; 0 is no end.
	Times int64
}

// Fail is a Backend that makes operations fail instead of passing them on.
type Fail struct {
	wrapper
	faults atomic.Pointer[[]fault]
	failed atomic.Int64
}

type fault struct {
	Fault
	end  int64
	left *atomic.Int64 // nil without end
}

// NewFail wraps a backend.
func NewFail(inner Backend, faults ...Fault) *Fail {
	f := &Fail{wrapper: wrapper{inner}}
	f.Set(faults...)
	return f
}

// Set makes what comes from now on fail as the first fault says that it
// fulfils, and no other. Without faults nothing fails.
func (f *Fail) Set(faults ...Fault) {
	list := make([]fault, len(faults))
	for i, x := range faults {
		x.Kinds = slices.Clone(x.Kinds)
		if x.Status.OK() {
			x.Status = nvme.StatusInternalError
		}
		list[i] = fault{Fault: x, end: later(x.Offset, x.Length)}
		if x.Length == 0 {
			list[i].end = math.MaxInt64
		}
		if x.Times > 0 {
			list[i].left = new(atomic.Int64)
			list[i].left.Store(x.Times)
		}
	}
	f.faults.Store(&list)
}

// Failed returns how many operations have failed.
func (f *Fail) Failed() int64 { return f.failed.Load() }

// Info implements Backend.
func (f *Fail) Info() Info { return f.info(true) }

// Open implements Backend.
func (f *Fail) Open(p *poller.Poller) (Channel, error) {
	c, err := f.open(p)
	if err != nil {
		return nil, err
	}
	return &failChannel{c, f, newRand(p)}, nil
}

type failChannel struct {
	passage
	f    *Fail
	rand *rand.Rand
}

// Submit implements Channel.
func (c *failChannel) Submit(op *Op) bool {
	faults := *c.f.faults.Load()
	for i := range faults {
		if x := &faults[i]; x.hits(op, c.rand) {
			op.Status = x.Status
			c.f.failed.Add(1)
			return true
		}
	}
	return c.inner.Submit(op)
}

// Poll implements Channel.
func (c *failChannel) Poll(now int64) int { return c.poll(now) }

// Arm implements Channel.
func (c *failChannel) Arm(now int64) (deadline int64, ok bool) { return c.inner.Arm(now) }

// Cancel implements Channel.
func (c *failChannel) Cancel(op *Op) bool { return c.inner.Cancel(op) }

// hits reports whether op fulfils the conditions.
func (x *fault) hits(op *Op, r *rand.Rand) bool {
	if len(x.Kinds) > 0 && !slices.Contains(x.Kinds, op.Kind) {
		return false
	}
	if op.Kind == Flush && (x.Offset != 0 || x.Length != 0) {
		return false
	}
	if op.Offset >= x.end || op.Offset+max(op.Length, 1) <= x.Offset {
		return false
	}
	if x.Match != nil && !x.Match(op) {
		return false
	}
	if x.Fraction > 0 && r.Float64() >= x.Fraction {
		return false
	}
	return x.left == nil || x.left.Add(-1) >= 0
}
