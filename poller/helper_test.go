package poller

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patient is far more than anything here takes: a test that gets there fails
// for another reason than a slow machine.
const patient = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is a context for what must not take for ever.
func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	t.Cleanup(cancel)
	return ctx
}

// newPoller returns a poller that is closed at the end of the test.
func newPoller(t testing.TB, cfg Config) *Poller {
	t.Helper()
	p, err := New(cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// anyCore is a core that tests may use: the last one, since the first one
// tends to serve interrupts.
func anyCore(t testing.TB) int {
	t.Helper()
	cores, err := AllowedCores()
	must(t, err)
	return cores[len(cores)-1]
}

// startPoller returns a poller that runs on some core.
func startPoller(t testing.TB, cfg Config) *Poller {
	t.Helper()
	cfg.Core = anyCore(t)
	p := newPoller(t, cfg)
	must(t, p.Start())
	return p
}

// onCore runs fn on the core of p.
func onCore(t testing.TB, p *Poller, fn func()) {
	t.Helper()
	must(t, p.Call(patience(t), fn))
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		runtime.Gosched()
		time.Sleep(10 * time.Microsecond)
	}
}

// receive waits for a channel.
func receive[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patient):
		t.Fatalf("in vain: %s", what)
	}
	return v
}

// source is a Waiter made of functions; any may be nil.
type source struct {
	polls int
	poll  func(now int64) int
	arm   func(now int64) (fd int, events int16, deadline int64, ok bool)
}

func (s *source) Poll(now int64) int {
	s.polls++
	if s.poll == nil {
		return 0
	}
	return s.poll(now)
}

func (s *source) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	if s.arm == nil {
		return -1, 0, 0, true
	}
	return s.arm(now)
}

// restless is a source that is not a Waiter.
type restless struct{ polls int }

func (r *restless) Poll(int64) int { r.polls++; return 0 }

// recorder collects what happened, in order.
type recorder []string

func (r *recorder) add(what string) func() { return func() { *r = append(*r, what) } }

// errNoThread is what a call about a thread that has ended reports.
const errNoThread = unix.ESRCH

// textLogger logs into a buffer, which the caller must not read meanwhile.
func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
