package poller

import (
	"runtime"
	"sync"
	"testing"
)

func TestCallAnyway(t *testing.T) {
	p := startPoller(t, Config{Idle: Adaptive})
	s := &source{}
	onCore(t, p, func() { p.Add(s) })
	ran := 0
	touch := func() {
		if !p.OnCore() {
			t.Error("off core")
		}
		p.CallAnyway(func() { ran++ }) // from the core, at once
	}
	p.CallAnyway(touch)
	must(t, p.Close())

	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 100 {
				p.CallAnyway(touch) // none of them at the same time
			}
		})
	}
	callers.Wait()
	p.CallAnyway(func() {
		p.Remove(s)
		must(t, p.Close()) // there is nothing to wait for
	})
	if ran != 401 || p.OnCore() {
		t.Errorf("%d ran, want 401; on core: %v", ran, p.OnCore())
	}
}

// Whenever the poller is closed, the function runs exactly once.
func TestCallAnywayWhileClosing(t *testing.T) {
	for n := range 50 {
		p := startPoller(t, Config{Idle: Adaptive, Mailbox: 2})
		ran := 0
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() { p.CallAnyway(func() { ran++ }) })
		}
		for range n {
			runtime.Gosched()
		}
		must(t, p.Close())
		callers.Wait()
		if ran != 4 {
			t.Fatalf("%d ran, want 4", ran)
		}
	}
}

func TestCallAnywayGoexit(t *testing.T) {
	p := startPoller(t, Config{Idle: Adaptive})
	began := 0
	p.CallAnyway(func() { began++; runtime.Goexit() })
	if began != 1 {
		t.Errorf("ran %d times, want once", began)
	}
}
