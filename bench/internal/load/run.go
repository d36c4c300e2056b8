package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/internal/tsc"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Run is a workload on a set of queues. Its methods are for one goroutine that
// is not on a core.
type Run struct {
	wl      Workload
	cores   []*core
	workers int
	left    atomic.Int64  // workers with jobs that have not ended
	done    chan struct{} // closed when it becomes 0
	from    int64
}

// New returns a run without queues.
func New(wl Workload) (*Run, error) {
	if err := wl.check(); err != nil {
		return nil, err
	}
	return &Run{wl: wl, done: make(chan struct{})}, nil
}

// Add puts the workload on a queue of the given poller, which must be running.
// It is for before Start.
func (r *Run) Add(p *poller.Poller, q nvme.Queue) error {
	w, err := newWorker(q, &r.wl, r.workers)
	if err != nil {
		return err
	}
	w.finished = r.workerDone
	r.workers++
	for _, c := range r.cores {
		if c.poller == p {
			c.workers = append(c.workers, w)
			return nil
		}
	}
	r.cores = append(r.cores, &core{poller: p, workers: []*worker{w}})
	return nil
}

func (r *Run) workerDone() {
	if r.left.Add(-1) == 0 {
		close(r.done)
	}
}

// Start begins I/O on all queues, then opens the window: it begins when warmup
// has passed from then, and is as long as length says. If it fails, some of
// the queues may have begun; closing them ends that.
func (r *Run) Start(ctx context.Context, warmup, length time.Duration) error {
	if r.workers == 0 {
		return errors.New("no queues")
	}
	r.left.Store(int64(r.workers))
	index := 0
	for _, c := range r.cores {
		for _, w := range c.workers {
			w.next = w.slots / uint64(r.workers) * uint64(index)
			index++
		}
		if err := c.poller.Call(ctx, c.begin); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	r.from = tsc.Now() + int64(warmup)
	until := r.from + int64(length)
	for _, c := range r.cores {
		if err := c.poller.Call(ctx, func() { c.measure(r.from, until) }); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	return nil
}

func (c *core) begin() {
	for _, w := range c.workers {
		w.begin()
	}
}

func (c *core) measure(from, until int64) {
	for _, w := range c.workers {
		w.measure(from, until)
	}
	c.watch(from, until)
}

// Done is closed when all jobs have ended: the window is closed, or the queues
// are lost, and no I/O is outstanding.
func (r *Run) Done() <-chan struct{} { return r.done }

// Opens returns how long it is until the window opens; negative: since when it
// is open. Valid after Start.
func (r *Run) Opens() time.Duration { return time.Duration(r.from - tsc.Now()) }

// Stop closes the window now. What is outstanding completes, or not; see Done.
func (r *Run) Stop(ctx context.Context) error {
	var errs []error
	for _, c := range r.cores {
		errs = append(errs, c.poller.Call(ctx, func() {
			for _, w := range c.workers {
				w.stop()
			}
			c.close()
		}))
	}
	return errors.Join(errs...)
}

// Sample is how far a run has come.
type Sample struct {
	At     int64  // when it was taken, ns
	IOs    uint64 // completed within the window so far
	NS     int64  // sum of their latencies
	Errors uint64 // warm-up included
}

// Sample looks at all cores, which costs each of them less than a microsecond.
func (r *Run) Sample(ctx context.Context) (Sample, error) {
	var s Sample
	for _, c := range r.cores {
		err := c.poller.Call(ctx, func() {
			for _, w := range c.workers {
				s.IOs += w.ios
				s.NS += w.latency[read].Sum() + w.latency[write].Sum()
				s.Errors += w.faults.Total
			}
		})
		if err != nil {
			return s, err
		}
	}
	s.At = tsc.Now()
	return s, nil
}
