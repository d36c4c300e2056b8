package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/internal/hist"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// introduce says what will be measured.
func (o *options) introduce(out io.Writer, s *session, l *layout) {
	what := o.pattern
	if o.mixed() {
		what += fmt.Sprintf(" (%d %% reads)", o.mix)
	}
	fmt.Fprintf(out, "%s %s, depth %d, %s on %s, %v after %v of warm-up\n",
		&o.block, what, o.depth, plural(len(s.queues), "queue"), coreNames(l.load), &o.time, &o.warmup)
	fmt.Fprintln(out, thisHost())
	if s.what != "" {
		fmt.Fprintln(out, s.what)
	}
	for _, note := range s.notes.take() {
		fmt.Fprintln(out, note)
	}
	size := size(s.ns.Size())
	fmt.Fprintf(out, "%s, namespace %d, %s in blocks of %d\n", s.ctrl.Address(), s.ns.ID(), &size, s.ns.BlockSize())
	if room := s.queues[0].QueuePair().Size() - 1; room < o.depth {
		fmt.Fprintf(out, "the queue takes %d at a time: the others wait their turn, and their latency says so\n", room)
	}
	if l.shared {
		fmt.Fprintln(out, "target and load share a core, and sleep in turn: the figures are not what two cores would give")
	}
	if runtime.NumCPU() < len(l.load)+len(l.target) {
		fmt.Fprintln(out, "there are more pollers than cores")
	}
}

// summarize prints the results.
func (o *options) summarize(out io.Writer, s *session, res *outcome) {
	r := res.result
	for _, note := range s.notes.take() {
		fmt.Fprintln(out, note)
	}
	fmt.Fprintln(out)
	switch {
	case res.interrupted && r.Elapsed == 0:
		fmt.Fprintln(out, "interrupted in the warm-up")
	case res.interrupted:
		fmt.Fprintf(out, "interrupted after %v\n", r.Elapsed.Round(time.Millisecond))
	}
	if res.lost != nil {
		fmt.Fprintf(out, "the controller was lost after %v, with %d I/Os in flight: %s\n",
			r.Elapsed.Round(time.Millisecond), r.Faults.Lost, oneLine(res.lost.Error()))
	}
	if r.Outstanding > 0 {
		fmt.Fprintf(out, "%d I/Os have not completed within %v after the end\n", r.Outstanding, drain)
	}
	if r.IOs == 0 {
		fmt.Fprintln(out, "nothing was measured")
	} else {
		fmt.Fprintf(out, "IOPS     %s   %s MiB/s   (%d I/Os in %v)\n",
			rate(r.IOPS), rate(r.IOPS*float64(o.block)/(1<<20)), r.IOs, r.Elapsed.Round(time.Millisecond))
		printLatency(out, "latency", &r.All)
		if o.mixed() {
			printLatency(out, "  reads", &r.Reads)
			printLatency(out, "  writes", &r.Writes)
		}
		printCores(out, r)
	}
	printFaults(out, &r.Faults)
}

func printLatency(out io.Writer, name string, h *hist.Histogram) {
	q := h.Quantiles(quantiles...)
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s mean %s", name, micro(h.Mean()))
	for i, label := range quantileNames {
		fmt.Fprintf(&b, "  %s %s", label, micro(float64(q[i])))
	}
	fmt.Fprintf(out, "%s  max %s us\n", b.String(), micro(float64(h.Max())))
}

// printCores prints what the pollers did, and what each I/O has cost.
func printCores(out io.Writer, r *load.Result) {
	c := cpuOf(r)
	if c.Window > 0 {
		fmt.Fprintf(out, "CPU      %s us per I/O in busy passes, %s us on the load's threads, %s us in the whole process (%.2f cores); %.2f allocations\n",
			micro(c.busy), micro(c.thread), micro(c.process), c.Cores, c.Allocs)
	}
	for _, u := range r.Cores {
		if u.Window <= 0 || u.Stats.Passes == 0 {
			continue
		}
		fmt.Fprintf(out, "%-8s %.1f %% busy, %s passes, %s us each, %.1f I/Os per busy pass; gaps between passes: p50 %s  p99.9 %s  p99.99 %s  max %s us\n",
			u.Name, 100*u.Stats.Busy.Seconds()/u.Window.Seconds(), rate(float64(u.Stats.Passes)),
			micro(float64(u.Window)/float64(u.Stats.Passes)), perBusyPass(&u),
			gap(&u.Stats, .5), gap(&u.Stats, .999), gap(&u.Stats, .9999), micro(float64(u.Stats.MaxGap)))
		if u.Stats.Sleeps > 0 {
			fmt.Fprintf(out, "%-8s slept %d times\n", "", u.Stats.Sleeps)
		}
	}
}

func gap(s *poller.Stats, q float64) string { return micro(float64(s.GapQuantile(q))) }

// perBusyPass is how many I/Os complete in a pass that finds work.
func perBusyPass(u *load.Usage) float64 {
	busy := u.Stats.Passes - u.Stats.IdlePasses
	if busy == 0 {
		return 0
	}
	return float64(u.IOs) / float64(busy)
}

func printFaults(out io.Writer, f *load.Faults) {
	if f.Total == 0 {
		return
	}
	fmt.Fprintf(out, "errors   %d\n", f.Total)
	for _, s := range f.ByStatus {
		fmt.Fprintf(out, "%9d  %s\n", s.Count, s.Status.Error())
	}
	for _, x := range f.First {
		when := "after " + x.At.Round(time.Microsecond).String()
		if x.At < 0 {
			when = "in the warm-up"
		}
		fmt.Fprintf(out, "           %s of %d blocks at LBA %d, %s: %s\n", nvme.IOName(x.Op), x.Blocks, x.LBA, when, x.Status.ErrorFor(x.Op))
	}
}
