package load

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// running starts n pollers with a fake queue on each.
func running(t *testing.T, n int) (ps []*poller.Poller, qs []*fakeQueue) {
	t.Helper()
	for range n {
		p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
		if err != nil {
			t.Fatal(err)
		}
		q := newFake()
		p.Add(q)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		ps, qs = append(ps, p), append(qs, q)
	}
	return ps, qs
}

func newRun(t *testing.T, wl Workload, ps []*poller.Poller, qs []*fakeQueue) *Run {
	t.Helper()
	r, err := New(wl)
	if err != nil {
		t.Fatal(err)
	}
	for i := range qs {
		if err := r.Add(ps[i%len(ps)], qs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Numbers that can be had in two ways must agree.
func check(t *testing.T, res *Result) {
	t.Helper()
	if n := res.All.Count(); n != int64(res.IOs) || res.Reads.Count()+res.Writes.Count() != n {
		t.Errorf("%d I/Os, %d latencies", res.IOs, n)
	}
	if res.Outstanding != 0 || res.Err != nil {
		t.Errorf("%d outstanding, error %v", res.Outstanding, res.Err)
	}
}

func TestRun(t *testing.T) {
	ps, qs := running(t, 2)
	third := newFake()
	if err := ps[0].Call(t.Context(), func() { ps[0].Add(third) }); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, Workload{Bytes: 512, ReadPercent: 50, Random: true, Jobs: 4}, ps, append(qs, third))
	if err := r.Start(t.Context(), time.Millisecond, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s, err := r.Sample(t.Context())
	if err != nil || s.At == 0 {
		t.Errorf("sample %+v, %v", s, err)
	}
	<-r.Done()
	res, err := r.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, res)
	end, err := r.Sample(t.Context())
	if err != nil || end.IOs != res.IOs || end.NS != res.All.Sum() || end.IOs < s.IOs {
		t.Errorf("sample at the end %+v, %v; %d I/Os", end, err, res.IOs)
	}
	if rate := float64(res.IOs) / 0.02; res.Elapsed != 20*time.Millisecond || math.Abs(res.IOPS-rate) > rate*1e-9 {
		t.Errorf("elapsed %v, %v IOPS, %d I/Os", res.Elapsed, res.IOPS, res.IOs)
	}
	if len(res.Cores) != 2 {
		t.Fatalf("%d cores", len(res.Cores))
	}
	for _, u := range res.Cores {
		if u.Core != -1 || u.Name == "" || u.Window < 0 || u.Stats.MaxGap < 0 {
			t.Errorf("usage %+v", u)
		}
	}
}

func TestRunStopped(t *testing.T) {
	ps, qs := running(t, 1)
	r := newRun(t, Workload{Bytes: 512, Jobs: 4}, ps, qs)
	if err := r.Start(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	res, err := r.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, res)
	if res.Elapsed >= time.Hour || res.Elapsed < 0 {
		t.Errorf("elapsed %v", res.Elapsed)
	}
}

func TestStoppedInWarmUp(t *testing.T) {
	ps, qs := running(t, 1)
	r := newRun(t, Workload{Bytes: 512, Jobs: 4}, ps, qs)
	if err := r.Start(t.Context(), time.Hour, time.Hour); err != nil {
		t.Fatal(err)
	}
	if r.Opens() <= 0 {
		t.Errorf("opens in %v", r.Opens())
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	res, err := r.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, res)
	if res.IOs != 0 || res.Elapsed != 0 || res.IOPS != 0 || res.Cores[0].Window != 0 {
		t.Errorf("%d I/Os in %v, core %+v", res.IOs, res.Elapsed, res.Cores[0])
	}
}

// All queues start apart where the order is sequential.
func TestSequentialStarts(t *testing.T) {
	ps, _ := running(t, 1)
	var qs []*fakeQueue
	var first []uint64
	for range 4 {
		q := newFake()
		q.seen = func(i io) { first = append(first, i.lba) }
		qs = append(qs, q)
	}
	r := newRun(t, Workload{Bytes: 512, Jobs: 1}, ps, qs)
	if err := r.Start(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(first) != 4 || first[0] != 0 || first[1] != 250 || first[2] != 500 || first[3] != 750 {
		t.Errorf("first LBAs %v", first)
	}
}

func TestRunLoss(t *testing.T) {
	ps, qs := running(t, 1)
	r := newRun(t, Workload{Bytes: 512, Jobs: 4}, ps, qs)
	if err := r.Start(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	err := ps[0].Call(t.Context(), func() {
		qs[0].err = nvme.ErrClosed
		for len(qs[0].held) > 0 {
			qs[0].complete(nvme.StatusCommandAbortedByHost)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	res, err := r.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res.Faults.Lost != 4 || res.Outstanding != 0 || res.Elapsed >= time.Hour {
		t.Errorf("%d lost, %d outstanding, %v", res.Faults.Lost, res.Outstanding, res.Elapsed)
	}
}

func TestRunErrors(t *testing.T) {
	r, err := New(Workload{Bytes: 512, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), 0, 0); err == nil {
		t.Error("started without queues")
	}
	ps, qs := running(t, 1)
	qs[0].blocks = 0
	if err := r.Add(ps[0], qs[0]); !errors.Is(err, ErrRange) {
		t.Errorf("an empty namespace: %v", err)
	}
	qs[0].blocks = 10
	if err := r.Add(ps[0], qs[0]); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Start(ended, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("started with %v", err)
	}
	if _, err := r.Result(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("results with %v", err)
	}
	if err := r.Stop(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
}
