package load

import (
	"fmt"
	"math"

	"github.com/qpoll/qpoll/internal/hist"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// worker has the jobs of one queue. All of it belongs to the queue's core.
type worker struct {
	// What every I/O touches.
	q           nvme.Queue
	clock       func() int64 // replaces tsc.Now, in tests
	from, until int64        // the window, ns
	blocks      uint32       // per I/O
	random      bool
	mixed       bool
	lost        bool   // the controller is gone
	reads       uint64 // share of reads in a mix, of 1<<32
	slots       uint64 // I/Os side by side
	next        uint64 // slot, if sequential
	outstanding int    // I/Os submitted and not completed
	waiting     fifo
	ios         uint64 // completed in the window
	latency     [ops]*hist.Histogram

	// The rest.
	jobs     []job
	active   int   // jobs that have not ended
	endedAt  int64 // when the controller or the queue was lost
	err      error // why a submission was refused
	faults   Faults
	finished func() // told when the last job has ended
}

// newWorker prepares the jobs for the index-th queue of a run.
func newWorker(q nvme.Queue, wl *Workload, index int) (*worker, error) {
	blocks, slots, err := wl.fit(q)
	if err != nil {
		return nil, err
	}
	w := &worker{
		q: q, blocks: blocks, slots: slots, from: math.MaxInt64, until: math.MaxInt64,
		random: wl.Random, mixed: wl.ReadPercent > 0 && wl.ReadPercent < 100,
		reads: uint64(wl.ReadPercent) << 32 / 100,
		jobs:  make([]job, wl.Jobs),
	}
	for op := range w.latency {
		w.latency[op] = new(hist.Histogram)
	}
	seed := rng(wl.Seed + uint64(index)<<32)
	memory, err := wl.memory()
	if err != nil {
		return nil, err
	}
	fill(memory, &seed)
	for i := range w.jobs {
		j := &w.jobs[i]
		j.w, j.rng = w, rng(seed.next())
		j.buf, memory = memory[:wl.Bytes:wl.Bytes], memory[wl.Bytes:]
		if wl.ReadPercent == 0 {
			j.op = write
		}
	}
	return w, nil
}

// memory returns the buffers of one queue in one piece.
func (wl *Workload) memory() ([]byte, error) {
	n := wl.Jobs * wl.Bytes
	if wl.Alloc == nil {
		return sys.HugeHeap(n), nil
	}
	b, err := wl.Alloc(n)
	if err != nil {
		return nil, fmt.Errorf("%w of %d bytes: %w", ErrBuffers, n, err)
	}
	return b, nil
}

// fill writes bytes other than 0, which no layer can take a short cut for.
func fill(b []byte, r *rng) {
	for i := range b {
		b[i] = byte(1 + r.below(255))
	}
}

// begin submits the first I/O of every job.
func (w *worker) begin() {
	w.active = len(w.jobs)
	now := w.now()
	for i := range w.jobs {
		w.choose(&w.jobs[i], now)
		w.waiting.push(&w.jobs[i])
	}
	w.postWaiting()
}

// measure opens the window.
func (w *worker) measure(from, until int64) { w.from, w.until = from, until }

// stop closes the window now, if it was to stay open for longer.
func (w *worker) stop() { w.until = min(w.until, w.now()) }

// retire ends a job, and those that wait for room: nothing more is submitted.
func (w *worker) retire(*job) {
	w.active--
	for w.waiting.head != nil {
		w.waiting.pop()
		w.active--
	}
	if w.active == 0 && w.finished != nil {
		w.finished()
	}
}

// elapsed is how long the window was open for this worker, in nanoseconds. now
// is the time if it is still open.
func (w *worker) elapsed(now int64) int64 {
	end := min(w.until, now)
	if w.lost {
		end = min(end, w.endedAt)
	}
	return max(0, end-w.from)
}
