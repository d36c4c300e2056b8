package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/poller"
)

// drain is how long I/Os that are outstanding at the end may take before they
// are given up.
const drain = 5 * time.Second

// outcome is how a measurement ended.
type outcome struct {
	result      *load.Result
	interrupted bool
	lost        error // the controller was lost, and why
}

// measure is the command that measures.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stdout)
	if err != nil {
		return err
	}
	allowed, err := poller.AllowedCores()
	if err != nil {
		return err
	}
	l, err := o.plan(allowed)
	if err != nil {
		return err
	}
	jsonOut, err := openJSON(o.jsonFile, stdout)
	if err != nil {
		return err
	}
	defer jsonOut.discard()
	if o.jsonFile == "-" {
		stdout = stderr
	}
	defer l.processors()()
	return o.session(ctx, &l, jsonOut, stdout)
}

// session connects, measures, reports and takes everything down.
func (o *options) session(ctx context.Context, l *layout, jsonOut *jsonFile, out io.Writer) error {
	e, err := o.endpoint(l)
	if err != nil {
		return o.explain(err, nil)
	}
	if e.close != nil {
		defer func() { _ = e.close() }()
	}
	s, err := o.open(ctx, l, e)
	if err != nil {
		return o.setUpError(ctx, err, s)
	}
	defer s.close()
	r, err := s.run(o)
	if err == nil {
		err = o.precondition(ctx, s.ns)
	}
	if err != nil {
		return o.setUpError(ctx, err, s)
	}
	o.introduce(out, s, l)
	prof, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	defer prof.abandon()
	res, err := o.execute(ctx, s, r, prof, out)
	if err != nil {
		return o.setUpError(ctx, err, s)
	}
	o.summarize(out, s, res)
	if err := prof.finish(out); err != nil {
		return err
	}
	if err := jsonOut.write(o.document(s, res)); err != nil {
		return err
	}
	return res.verdict()
}

// setUpError explains an error, unless it is the user who has ended it all.
func (o *options) setUpError(ctx context.Context, err error, s *session) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return o.explain(err, s)
}

// execute runs the load to its end, whichever that is.
func (o *options) execute(ctx context.Context, s *session, r *load.Run, prof *cpuProfile, out io.Writer) (*outcome, error) {
	if err := r.Start(ctx, time.Duration(o.warmup), time.Duration(o.time)); err != nil {
		return nil, err
	}
	res := &outcome{}
	live := newLive(out, o, r)
	opens := time.NewTimer(r.Opens())
	defer opens.Stop()
	ends := time.NewTimer(r.Opens() + time.Duration(o.time) + drain)
	defer ends.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	done, interrupt, lost := r.Done(), ctx.Done(), s.lost
	for running := true; running; {
		select {
		case <-opens.C:
			tick.Reset(time.Second) // lines count from here
			if err := prof.begin(); err != nil {
				return nil, err
			}
		case <-tick.C:
			live.line(ctx)
		case <-done:
			running = false
			live.last(ctx)
		case <-ends.C:
			running = false
		case res.lost = <-lost:
			lost = nil // its jobs end now, each with its I/O
			ends.Reset(drain)
		case <-interrupt:
			interrupt, res.interrupted = nil, true
			stopAll(r)
			ends.Reset(drain)
		}
	}
	prof.end()
	return res, res.collect(s, r)
}

// stopAll closes the window on all cores, if they answer.
func stopAll(r *load.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	_ = r.Stop(ctx)
}

// collect gets the results.
func (res *outcome) collect(s *session, r *load.Run) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var err error
	if res.result, err = r.Result(ctx); err != nil {
		return fmt.Errorf("the pollers do not answer: %w", err)
	}
	if res.lost != nil || res.result.Faults.Lost == 0 && res.result.Err == nil {
		return nil
	}
	// The jobs have seen the loss; its cause is on its way.
	select {
	case res.lost = <-s.lost:
	case <-time.After(time.Second):
		res.lost = res.result.Err
	}
	if res.lost == nil {
		res.lost = errors.New("commands were ended by the host")
	}
	return nil
}

// verdict is the error that the process ends with.
func (res *outcome) verdict() error {
	switch {
	case res.lost != nil, res.result.Faults.Total > 0, res.result.Outstanding > 0:
		return errTold
	case res.interrupted:
		return errInterrupted
	case res.result.IOs == 0:
		return errors.New("no I/O completed in the time measured: give -time more")
	}
	return nil
}
