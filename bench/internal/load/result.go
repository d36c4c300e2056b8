package load

import (
	"context"
	"errors"
	"time"

	"github.com/qpoll/qpoll/internal/hist"
	"github.com/qpoll/qpoll/internal/tsc"
)

// Result is what a run has measured, all queues together.
type Result struct {
	IOs     uint64        // completed successfully within the window
	Elapsed time.Duration // that the window was open; where queues were lost, the longest
	IOPS    float64       // sum of the rates of the queues
	All     hist.Histogram
	Reads   hist.Histogram
	Writes  hist.Histogram
	Faults  Faults

	Outstanding int   // I/Os that have not completed yet
	Err         error // why a queue refused I/O, if one did
	Cores       []Usage
}

// Result collects what there is. It is for after Done, or after as long a wait
// for that as is worth while.
func (r *Run) Result(ctx context.Context) (*Result, error) {
	res := new(Result)
	var errs []error
	for _, c := range r.cores {
		errs = append(errs, c.poller.Call(ctx, func() {
			for _, w := range c.workers {
				res.add(w, tsc.Now())
			}
			res.Cores = append(res.Cores, c.result())
		}))
	}
	res.All.Add(&res.Reads)
	res.All.Add(&res.Writes)
	return res, errors.Join(errs...)
}

func (res *Result) add(w *worker, now int64) {
	res.IOs += w.ios
	if ns := w.elapsed(now); ns > 0 {
		res.Elapsed = max(res.Elapsed, time.Duration(ns))
		res.IOPS += float64(w.ios) / time.Duration(ns).Seconds()
	}
	res.Reads.Add(w.latency[read])
	res.Writes.Add(w.latency[write])
	res.Faults.add(&w.faults)
	res.Outstanding += w.outstanding
	if res.Err == nil {
		res.Err = w.err
	}
}
