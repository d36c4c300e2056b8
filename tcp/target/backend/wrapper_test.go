package backend

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// within fails the test unless a time is a microsecond at most behind another
// one: the pass that the test steps by.
func within(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got < want || got > want+int64(time.Microsecond) {
		t.Errorf("%s: at %v, want %v", what, time.Duration(got), time.Duration(want))
	}
}

func TestLatency(t *testing.T) {
	lat := NewLatency(NewHeap(size), 100*time.Microsecond)
	l := newLab(t, lat)
	a := l.submit(Write, 0, 512, pattern(1, 512))
	if a.inline || !a.kept {
		t.Fatal("not held, or its data not kept")
	}
	begin := l.now
	l.advance(30 * time.Microsecond)
	lat.Set(10 * time.Microsecond)
	b := l.submit(Read, 512, 512, nil)
	if b.kept {
		t.Error("a read has its data kept")
	}
	l.await(b)
	l.await(a)
	within(t, "a", a.at, begin+100e3)
	within(t, "b", b.at, begin+40e3)
	lat.SetDistribution(func(op *Op, _ *rand.Rand) time.Duration { return time.Duration(op.Offset) })
	c, d := l.submit(Read, 5120, 512, nil), l.submit(Read, 0, 512, nil)
	if !d.inline {
		t.Error("no delay is a delay")
	}
	begin = l.now
	within(t, "c", l.await(c).at, begin+5120)
	lat.SetDistribution(nil)
	lat.Set(math.MaxInt64)
	never := l.submit(Read, 0, 512, nil)
	l.advance(time.Hour)
	if never.done != 0 || !l.ch.Cancel(&never.op) || l.ch.Cancel(&never.op) {
		t.Error("not held for ever, or not cancelled once")
	}
}

// TestLatencyOrder holds many operations of random delays, and takes some of
// them back.
func TestLatencyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	lat := NewLatency(NewNull(size), 0)
	lat.SetDistribution(func(*Op, *rand.Rand) time.Duration { return time.Duration(1+r.IntN(200)) * time.Microsecond })
	l := newLab(t, lat)
	var jobs []*job
	taken := 0
	for range 2000 {
		jobs = append(jobs, l.submit(Read, 0, 512, nil))
		if j := jobs[r.IntN(len(jobs))]; r.IntN(4) == 0 && l.ch.Cancel(&j.op) {
			j.done, j.at = -1, 0
			taken++
		}
		if r.IntN(2) == 0 {
			l.advance(time.Microsecond)
		}
	}
	l.advance(time.Millisecond)
	for i, j := range jobs {
		if j.done != 1 && j.done != -1 {
			t.Fatalf("job %d was done %d times", i, j.done)
		}
		if j.done == 1 && j.at > j.op.due+int64(time.Microsecond) && j.at != l.now {
			t.Fatalf("job %d was done %d ns late", i, j.at-j.op.due)
		}
	}
	if taken == 0 {
		t.Error("nothing was cancelled")
	}
}

// load keeps depth operations under way for a while and returns how many were
// done.
func (l *lab) load(depth int, n int64, kind Kind, d time.Duration) (done int) {
	jobs := make([]*job, depth)
	for end := l.now + int64(d); l.now < end; l.advance(500 * time.Nanosecond) {
		for i, j := range jobs {
			if j == nil || j.done > 0 {
				if j != nil {
					done++
				}
				jobs[i] = l.submit(kind, 0, n, nil)
			}
		}
	}
	for _, j := range jobs {
		if j.done == 0 {
			l.ch.Cancel(&j.op)
		}
	}
	return done
}

// near fails the test unless a figure is within 1 % of another one.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want/100 {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Limit
		depth int
		n     int64
		want  float64 // per second
	}{
		{"IOPS", Limit{IOPS: 100e3}, 32, 4096, 100e3},
		{"odd IOPS", Limit{IOPS: 77777}, 1, 512, 77777},
		{"many IOPS", Limit{IOPS: 1.3e6}, 64, 512, 1.3e6},
		{"bytes", Limit{BytesPerSecond: 1e9}, 8, 8192, 1e9 / 8192},
		{"small pieces of many bytes", Limit{BytesPerSecond: 0.9e9}, 64, 512, 0.9e9 / 512},
		{"both, fewer bytes", Limit{IOPS: 50e3, BytesPerSecond: 1e8}, 8, 4096, 1e8 / 4096},
		{"both, fewer operations", Limit{IOPS: 5e3, BytesPerSecond: 1e9}, 8, 4096, 5e3},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, NewRate(NewNull(size), c.limit))
			const d = 40 * time.Millisecond
			near(t, "per second", float64(l.load(c.depth, c.n, Read, d))/d.Seconds(), c.want)
		})
	}
}

// TestRateChange changes a limit while operations wait.
func TestRateChange(t *testing.T) {
	rate := NewRate(NewNull(size), Limit{IOPS: 1})
	l := newLab(t, rate)
	first, second := l.submit(Read, 0, 512, nil), l.submit(Write, 0, 512, nil)
	if !first.inline || second.inline || !second.kept {
		t.Error("the first does not pass, or the second is not held")
	}
	l.advance(time.Millisecond)
	rate.Set(Limit{IOPS: 1e3})
	l.advance(time.Millisecond)
	if second.done != 1 {
		t.Error("the new limit does not hold for what waits")
	}
	rate.Set(Limit{})
	for range 100 {
		if j := l.submit(Flush, 0, 0, nil); !j.inline {
			t.Fatal("limited without a limit")
		}
	}
}

// TestBurst lets a limiter catch up after a pause, but not without end.
func TestBurst(t *testing.T) {
	for _, c := range []struct {
		burst time.Duration
		want  int
	}{{0, 50}, {2 * time.Millisecond, 20}, {-1, 1}} {
		l := newLab(t, NewRate(NewNull(size), Limit{IOPS: 10e3, Burst: c.burst}))
		l.submit(Read, 0, 512, nil)
		l.advance(time.Second)
		n := 0
		for l.submit(Read, 0, 512, nil).inline {
			n++
		}
		if n < c.want || n > c.want+1 {
			t.Errorf("burst %v: %d at once, want %d", c.burst, n, c.want)
		}
	}
}

func TestStall(t *testing.T) {
	stall := NewStall(NewHeap(size))
	l := newLab(t, stall)
	if !l.submit(Write, 0, 512, pattern(1, 512)).inline {
		t.Error("stalled before it was stopped")
	}
	stall.Stop()
	a, b, c := l.submit(Write, 0, 512, pattern(2, 512)), l.submit(Write, 0, 512, pattern(3, 512)), l.submit(Read, 0, 512, nil)
	l.advance(time.Hour)
	if a.done+b.done+c.done != 0 || stall.Waiting() != 3 || !a.kept {
		t.Fatalf("%d waiting", stall.Waiting())
	}
	if _, ok := l.ch.Arm(l.now); !ok {
		t.Error("the poller may not sleep")
	}
	if !l.ch.Cancel(&b.op) || l.ch.Cancel(&b.op) {
		t.Error("not cancelled once")
	}
	stall.Resume()
	if _, ok := l.ch.Arm(l.now); ok {
		t.Error("the poller may sleep though operations are due")
	}
	l.await(a)
	l.await(c)
	if b.done != 0 || stall.Waiting() != 0 || c.op.Data[0] != pattern(2, 1)[0] {
		t.Error("a cancelled operation went on, or they went on in another order")
	}
}

func TestFail(t *testing.T) {
	fail := NewFail(NewHeap(size), Fault{})
	l := newLab(t, fail)
	l.fails(Read, 0, 512, nil, nvme.StatusInternalError)
	fail.Set()
	l.do(Read, 0, 512, nil)
	fail.Set(
		Fault{Kinds: []Kind{Write}, Offset: 4096, Length: 4096, Status: nvme.StatusWriteFault},
		Fault{Kinds: []Kind{Read}, Offset: 1 << 20, Status: nvme.StatusUnrecoveredReadError | nvme.StatusDNR},
		Fault{Match: func(op *Op) bool { return op.Length == 1536 }, Status: nvme.StatusNamespaceNotReady, Times: 2},
	)
	b := make([]byte, 4096)
	l.do(Write, 0, 4096, b)
	l.fails(Write, 0, 4608, make([]byte, 4608), nvme.StatusWriteFault)
	l.fails(Write, 7680, 512, b[:512], nvme.StatusWriteFault)
	l.do(Write, 8192, 512, b[:512])
	l.do(Read, 4096, 512, nil)
	l.do(Read, 1<<20-512, 512, nil)
	l.fails(Read, 1<<20, 512, nil, nvme.StatusUnrecoveredReadError|nvme.StatusDNR)
	l.do(Flush, 0, 0, nil)
	for range 2 {
		l.fails(Verify, 0, 1536, nil, nvme.StatusNamespaceNotReady)
	}
	l.do(Verify, 0, 1536, nil)
	before := fail.Failed()
	fail.Set(Fault{Fraction: 0.25})
	n := 0
	for range 20000 {
		if l.submit(Read, 0, 512, nil).op.Status != 0 {
			n++
		}
	}
	if math.Abs(float64(n)-5000) > 250 || fail.Failed() != before+int64(n) {
		t.Errorf("%d of 20000 failed, counted %d", n, fail.Failed()-before)
	}
	fail.Set(Fault{Offset: 512})
	l.do(Flush, 0, 0, nil)
}

// TestStack looks at wrappers around wrappers.
func TestStack(t *testing.T) {
	stall := NewStall(NewHeap(size))
	lat := NewLatency(NewRate(stall, Limit{IOPS: 1e5, Burst: -1}), time.Millisecond)
	l := newLab(t, lat)
	if i := l.b.Info(); i.Inline || !i.Views || i.Size != size {
		t.Errorf("info %+v", i)
	}
	stall.Stop()
	a := l.submit(Read, 0, 512, nil)
	if deadline, ok := l.ch.Arm(l.now); !ok || deadline != l.now+1e6 {
		t.Errorf("deadline %d, %v", deadline-l.now, ok)
	}
	l.advance(time.Millisecond)
	if stall.Waiting() != 1 {
		t.Fatal("not passed on")
	}
	if !l.ch.Cancel(&a.op) {
		t.Error("not cancelled through the stack")
	}
	b, c := l.submit(Read, 0, 512, nil), l.submit(Read, 0, 512, nil)
	stall.Resume()
	begin := l.now
	within(t, "b", l.await(b).at, begin+1e6)
	within(t, "c", l.await(c).at, begin+1e6+10e3)
}

// TestSleep has an adaptive poller, which runs by itself, woken by what the
// backends have to do.
func TestSleep(t *testing.T) {
	file, err := NewFile(FileConfig{Path: t.TempDir() + "/disk", Size: size})
	must(t, err)
	stall := NewStall(file)
	b := NewLatency(stall, time.Millisecond)
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive, Spin: -1})
	must(t, err)
	must(t, p.Start())
	ch := make(chan Channel)
	must(t, p.Post(func() {
		c, err := b.Open(p)
		if err != nil {
			t.Error(err)
		}
		p.Add(&waiter{c})
		ch <- c
	}))
	c := <-ch
	stall.Stop()
	o := &told{done: make(chan struct{})}
	o.op = Op{Kind: Write, Length: 512, Data: pattern(1, 512), Owner: o}
	must(t, p.Post(func() { c.Submit(&o.op) }))
	for stall.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	stall.Resume()
	<-o.done
	must(t, p.Close())
	c.Close()
	must(t, b.Close())
}

// waiter makes a source of a channel.
type waiter struct{ Channel }

func (w *waiter) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	deadline, ok = w.Channel.Arm(now)
	return -1, 0, deadline, ok
}

type told struct {
	op   Op
	done chan struct{}
}

func (*told) Keep(*Op)   {}
func (o *told) Done(*Op) { close(o.done) }
