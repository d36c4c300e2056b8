package overhead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/tsc"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Config says what to measure on.
type Config struct {
	Poller *poller.Poller
	Queue  nvme.Queue
	Source Source // the queue pair of Queue
	Bytes  int    // per I/O
	Depth  int    // the most that will be asked for
	Write  bool
	Range  uint64 // bytes of the namespace to use, from its start; 0: all

	// Alloc returns memory for the buffers; nil: of Go's heap.
	Alloc func(n int) ([]byte, error)
}

// Errors of New and Measure.
var (
	// ErrConfig means that the I/Os asked for cannot be.
	ErrConfig = errors.New("bad workload")
	// ErrStuck means that nothing completed for a long time.
	ErrStuck = errors.New("I/Os do not complete")
)

// StatusError is an I/O that failed.
type StatusError struct{ Status nvme.Status }

// Error implements error.
func (e *StatusError) Error() string { return "an I/O failed: " + e.Status.Error() }

// Unwrap returns the status.
func (e *StatusError) Unwrap() error { return e.Status }

// sliceTime is how long a poller is kept from anything else, short enough for
// most slices to have the core to themselves; longSlice is how much longer that
// may take until a cycle has come to its end.
const (
	sliceTime = 250 * time.Microsecond
	longSlice = 50 * time.Millisecond
)

// Bench is a queue with buffers to measure on. Its methods are for one
// goroutine that is not on a core.
type Bench struct {
	cfg   Config
	m     *Meter
	slots []slot
	scale scale
	hz    float64

	patience time.Duration // how long nothing may complete
}

// New prepares I/Os on a queue.
func New(cfg Config) (*Bench, error) {
	size := uint64(cfg.Queue.BlockSize())
	have := cfg.Queue.Blocks()
	if cfg.Range != 0 {
		have = min(have, cfg.Range/size)
	}
	n := uint64(cfg.Bytes) / size
	switch {
	case cfg.Bytes <= 0 || uint64(cfg.Bytes)%size != 0:
		return nil, fmt.Errorf("%w: I/Os of %d bytes, blocks of %d", ErrConfig, cfg.Bytes, size)
	case n > have:
		return nil, fmt.Errorf("%w: I/Os of %d bytes, %d to use", ErrConfig, cfg.Bytes, have*size)
	case cfg.Depth < 1 || cfg.Depth > 1<<30/cfg.Bytes:
		return nil, fmt.Errorf("%w: %d I/Os of %d bytes", ErrConfig, cfg.Depth, cfg.Bytes)
	}
	alloc := cfg.Alloc
	if alloc == nil {
		alloc = func(n int) ([]byte, error) { return sys.HugeHeap(n), nil }
	}
	buf, err := alloc(cfg.Depth * cfg.Bytes)
	if err != nil {
		return nil, fmt.Errorf("no buffers of %d bytes: %w", cfg.Depth*cfg.Bytes, err)
	}
	b := &Bench{cfg: cfg, slots: make([]slot, cfg.Depth), patience: 10 * time.Second}
	b.m = &Meter{q: cfg.Queue, src: cfg.Source, blocks: uint32(n), write: cfg.Write}
	for i := range b.slots {
		b.slots[i] = slot{m: b.m, buf: buf[:cfg.Bytes:cfg.Bytes], lba: uint64(i) % (have / n) * n}
		buf = buf[cfg.Bytes:]
	}
	b.clock()
	return b, nil
}

// clock chooses a counter, and finds out what reading it costs.
func (b *Bench) clock() {
	b.hz = float64(tsc.Frequency())
	if b.hz == 0 {
		b.hz = 1e9
		b.m.ticks = func() uint64 { return uint64(tsc.Now()) }
	}
	b.scale = scale{read: float64(b.m.reading()), ns: 1e9 / b.hz}
}

// reading returns how many ticks pass between two readings with nothing between
// them, in most cases.
func (m *Meter) reading() uint64 {
	var took [1001]uint64
	for i := range took {
		began := m.now()
		took[i] = m.now() - began
	}
	slices.Sort(took[:])
	return took[len(took)/2]
}

// Reading is what one reading of the counter costs, which has been taken off
// every interval, in nanoseconds.
func (b *Bench) Reading() float64 { return b.scale.read * b.scale.ns }

// Result is what was measured at one depth and batch.
type Result struct {
	Cost   Cost
	Counts Counts // of the time measured, but for what completed after its end
	Slices int    // that the medians are of
}

// Measure measures for so long with up to depth I/Os outstanding, submitted
// batch by batch; batch is at most depth, depth at most Config.Depth. A tenth of
// the time goes by before, for warming up.
func (b *Bench) Measure(ctx context.Context, depth, batch int, length time.Duration) (*Result, error) {
	if batch < 1 || batch > depth || depth > b.cfg.Depth {
		return nil, fmt.Errorf("%w: depth %d of %d, batch %d", ErrConfig, depth, b.cfg.Depth, batch)
	}
	if err := b.begin(ctx, depth, batch); err != nil {
		return nil, err
	}
	var list []Counts
	r := &Result{}
	warm := tsc.Now() + int64(length)/10
	for progress := tsc.Now(); tsc.Now() < warm+int64(length) || len(list) == 0; {
		c, err := b.slice(ctx, min(sliceTime, length))
		if err != nil {
			return nil, errors.Join(err, b.drain(ctx))
		}
		if c.Reaped+c.MixedReaped+c.Elsewhere > 0 {
			progress = tsc.Now()
		}
		if tsc.Now()-progress > int64(b.patience) {
			return nil, ErrStuck
		}
		if tsc.Now() < warm {
			continue
		}
		r.Counts.add(&c)
		if c.Reaped > 0 {
			list = append(list, c)
		}
	}
	if err := b.drain(ctx); err != nil {
		return nil, err
	}
	r.Cost, r.Slices = b.scale.cost(list), len(list)
	return r, nil
}

// begin gets the meter ready, with nothing outstanding.
func (b *Bench) begin(ctx context.Context, depth, batch int) error {
	free := make([]*slot, depth)
	for i := range free {
		free[i] = &b.slots[i]
	}
	return b.cfg.Poller.Call(ctx, func() {
		m := b.m
		m.free, m.depth, m.batch = free, depth, batch
		m.left, m.unrung, m.last = depth, 0, m.reaped
	})
}

// slice measures for a while.
func (b *Bench) slice(ctx context.Context, length time.Duration) (c Counts, err error) {
	callErr := b.cfg.Poller.Call(ctx, func() {
		m := b.m
		until := m.now() + uint64(length.Seconds()*b.hz)
		c = m.slice(until, until+uint64(longSlice.Seconds()*b.hz), b.cfg.Poller.Now())
		switch {
		case m.err != nil:
			err = m.err
		case m.bad:
			err = &StatusError{m.status}
		}
	})
	return c, cmp.Or(callErr, err)
}

// drain waits until nothing is outstanding, whatever ctx says.
func (b *Bench) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), b.patience, ErrStuck)
	defer cancel()
	for {
		out := 0
		if err := b.cfg.Poller.Call(ctx, func() { out = cap(b.m.free) - len(b.m.free) }); err != nil || out == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// series are figures of which the median is wanted.
type series []float64

func (s *series) add(v float64, ok bool) {
	if ok {
		*s = append(*s, v)
	}
}

func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[len(s)/2]
}
