package poller

import (
	"runtime"
	"testing"
)

// Nothing that happens per pass, per post or per timer may allocate.
func TestNoAllocations(t *testing.T) {
	p := newPoller(t, Config{PublishInterval: 10, Mailbox: 16})
	for range 3 {
		p.Add(&source{poll: func(int64) int { return 1 }})
	}
	now := int64(0)
	step := func() { now += 7; p.Poll(now) }
	task := func() {}
	timer := p.AfterFunc(0, task)
	for name, f := range map[string]func(){
		"pass":       step,
		"post":       func() { p.Post(task); step() },
		"timer":      func() { timer.Reset(3); step() },
		"timer stop": func() { timer.Reset(3); timer.Stop() },
		"on core":    func() { p.OnCore() },
		"full": func() {
			for p.Post(task) == nil {
			}
			step()
		},
		"stats": func() { p.Stats() },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// mallocs returns how often f allocates, in n runs, with whatever else happens
// meanwhile. AllocsPerRun would leave running pollers a single processor.
func mallocs(n int, f func()) uint64 {
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// Nor does a running poller, asleep or not, or a post to it. A call does if
// the garbage collector has emptied the pool, as the race detector does at
// random.
func TestNoAllocationsRunning(t *testing.T) {
	const runs = 100
	for _, idle := range []IdleMode{Busy, Adaptive} {
		p := startPoller(t, Config{Idle: idle, Spin: -1})
		onCore(t, p, func() { p.Add(&source{}) })
		ctx := patience(t)
		task := func() {}
		calls := mallocs(runs, func() {
			if err := p.Call(ctx, task); err != nil {
				t.Error(err)
			}
		})
		if calls > runs*2 {
			t.Errorf("%s: %d allocations in %d calls", idle, calls, runs)
		}
		if posts := mallocs(runs, func() { p.Post(task) }); posts > runs/10 {
			t.Errorf("%s: %d allocations in %d posts", idle, posts, runs)
		}
	}
}
