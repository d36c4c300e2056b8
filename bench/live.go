package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/internal/tsc"
)

// live prints a line for each second of a run.
type live struct {
	out  io.Writer
	o    *options
	r    *load.Run
	seen load.Sample // what the last line was about
}

func newLive(out io.Writer, o *options, r *load.Run) *live { return &live{out: out, o: o, r: r} }

// line prints how the run goes. In the warm-up there is nothing to tell.
func (l *live) line(ctx context.Context) {
	open := -l.r.Opens()
	if open <= 0 {
		fmt.Fprintf(l.out, "%6s  warming up\n", "")
		return
	}
	// A core that does not answer is news, too, but no reason to wait.
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	s, err := l.r.Sample(ctx)
	if err != nil {
		fmt.Fprintf(l.out, "%4.0f s  a poller does not answer\n", open.Seconds())
		return
	}
	since := l.seen.At
	if since == 0 {
		since = s.At - int64(open)
	}
	n, ns := s.IOs-l.seen.IOs, s.NS-l.seen.NS
	iops := float64(n) / time.Duration(s.At-since).Seconds()
	fmt.Fprintf(l.out, "%4.0f s  %9s IOPS  %8s MiB/s", open.Seconds(), rate(iops), rate(iops*float64(l.o.block)/(1<<20)))
	if n > 0 {
		fmt.Fprintf(l.out, "  mean %s us", micro(float64(ns)/float64(n)))
	}
	if s.Errors > 0 {
		fmt.Fprintf(l.out, "  %d errors", s.Errors)
	}
	fmt.Fprintln(l.out)
	l.seen = s
}

// last prints the line that was due when the run ended.
func (l *live) last(ctx context.Context) {
	since := -l.r.Opens()
	if l.seen.At > 0 {
		since = time.Duration(tsc.Now() - l.seen.At)
	}
	if since > 900*time.Millisecond {
		l.line(ctx)
	}
}
