package poller

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

func TestCallFromTheCore(t *testing.T) {
	p := newPoller(t, Config{})
	ran := false
	must(t, p.Post(func() {
		if err := p.Call(context.Background(), func() { ran = true }); err != nil || !ran {
			t.Errorf("%v, ran %v", err, ran)
		}
	}))
	p.Poll(0)
	if !ran {
		t.Error("the task did not run")
	}
}

// Call sees what fn wrote, and fn what the caller wrote, without more.
func TestCallIsOrdered(t *testing.T) {
	for _, idle := range []IdleMode{Busy, Adaptive} {
		p := startPoller(t, Config{Idle: idle})
		n := 0
		for range 50 {
			n++
			onCore(t, p, func() { n++ })
		}
		if n != 100 {
			t.Errorf("%s: counted %d, want 100", idle, n)
		}
	}
}

var errGaveUp = errors.New("gave up")

// A call that ends before its function has begun never runs it.
func TestCallAbandoned(t *testing.T) {
	p := newPoller(t, Config{})
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan error)
	go func() { result <- p.Call(ctx, func() { t.Error("an abandoned function ran") }) }()
	eventually(t, "the call in the mailbox", func() bool { return !p.mailbox.empty() })
	cancel(errGaveUp)
	if err := receive(t, "the end of the call", result); !errors.Is(err, errGaveUp) {
		t.Errorf("%v, want the context's cause", err)
	}
	p.Poll(0)

	if err := p.Call(ctx, func() { t.Error("a function ran for an ended context") }); !errors.Is(err, errGaveUp) {
		t.Errorf("%v, want the context's cause", err)
	}
	if work := p.Poll(1); work != 0 {
		t.Errorf("work %d", work)
	}
}

// A call whose function has begun waits for its end, whatever the context.
func TestCallBegun(t *testing.T) {
	p := newPoller(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	finished := false
	go func() {
		result <- p.Call(ctx, func() {
			cancel()
			for range 1000 {
				select {
				case err := <-result:
					t.Errorf("the call is over while its function runs: %v", err)
				default:
					runtime.Gosched()
				}
			}
			finished = true
		})
	}()
	eventually(t, "the call in the mailbox", func() bool { return !p.mailbox.empty() })
	p.Poll(0)
	if err := receive(t, "the end of the call", result); err != nil || !finished {
		t.Errorf("%v, finished %v", err, finished)
	}
}

func TestCallWaitsForRoom(t *testing.T) {
	p := newPoller(t, Config{Mailbox: 2})
	for range 2 {
		must(t, p.Post(func() {}))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancelled := make(chan error)
	go func() { cancelled <- p.Call(ctx, func() { t.Error("a function ran that was never posted") }) }()
	ran := false
	result := make(chan error)
	runtime.Gosched()
	cancel(errGaveUp)
	if err := receive(t, "the end of the call", cancelled); !errors.Is(err, errGaveUp) {
		t.Errorf("%v, want the context's cause", err)
	}
	go func() { result <- p.Call(patience(t), func() { ran = true }) }()
	now := int64(0)
	eventually(t, "room for the call", func() bool {
		now++
		p.Poll(now)
		return ran
	})
	must(t, receive(t, "the end of the call", result))
}

func TestCallWhileClosing(t *testing.T) {
	p := newPoller(t, Config{})
	ran := false
	result := make(chan error)
	go func() { result <- p.Call(patience(t), func() { ran = true }) }()
	eventually(t, "the call in the mailbox", func() bool { return !p.mailbox.empty() })
	must(t, p.Close())
	if err := receive(t, "the end of the call", result); err != nil || !ran {
		t.Errorf("%v, ran %v", err, ran)
	}
}

// Calls that are abandoned, or not, at any moment: an error means that the
// function did not run, no error that it did.
func TestCallStress(t *testing.T) {
	for _, idle := range []IdleMode{Busy, Adaptive} {
		t.Run(idle.String(), func(t *testing.T) {
			p := startPoller(t, Config{Idle: idle, Spin: -1, Mailbox: 8})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for n := range 100 {
						ctx, cancel := context.WithCancel(patience(t))
						if (n+i)%2 == 0 {
							go cancel()
						}
						ran := new(bool)
						err := p.Call(ctx, func() { *ran = true })
						if *ran != (err == nil) {
							t.Errorf("ran %v, error %v", *ran, err)
						}
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						cancel()
					}
				})
			}
			wg.Wait()
		})
	}
}
