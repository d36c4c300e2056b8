package tcp_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// patience is how long tests wait for what must happen. It is no measure of
// anything.
const patience = 30 * time.Second

// op is one command that a test submits, and what became of it.
type op struct {
	name   string
	n      atomic.Int32 // completions
	status atomic.Uint32
	result atomic.Uint64
	done   chan struct{}
	then   func(*op) // runs on the core, after the first completion
}

func newOp(format string, args ...any) *op {
	return &op{name: fmt.Sprintf(format, args...), done: make(chan struct{})}
}

func (o *op) complete(st nvme.Status, result uint64) {
	if o.n.Add(1) > 1 {
		return // seen by check
	}
	o.status.Store(uint32(st))
	o.result.Store(result)
	close(o.done)
	if o.then != nil {
		o.then(o)
	}
}

func opDone(arg any, st nvme.Status) { arg.(*op).complete(st, 0) }

func commandDone(arg any, cpl *nvme.Completion) { arg.(*op).complete(cpl.Status(), cpl.Result) }

func (o *op) st() nvme.Status { return nvme.Status(o.status.Load()) }

func (o *op) isDone() bool { return o.n.Load() > 0 }

// wait returns the status once the command has completed. Not for a stepped
// poller.
func (o *op) wait(t testing.TB) nvme.Status {
	t.Helper()
	select {
	case <-o.done:
		return o.st()
	case <-time.After(patience):
		t.Fatalf("%s: not completed within %v", o.name, patience)
	}
	return 0
}

// want checks that the command has completed with a status.
func (o *op) want(t testing.TB, st nvme.Status) {
	t.Helper()
	if !o.isDone() {
		t.Fatalf("%s: not completed, want %v", o.name, st)
	}
	if got := o.st(); got.Code() != st.Code() {
		t.Errorf("%s: completed with %v, want %v", o.name, got, st)
	}
}

// ops are the commands of a test.
type ops []*op

func (l *ops) add(format string, args ...any) *op {
	o := newOp(format, args...)
	*l = append(*l, o)
	return o
}

// checkOnce checks, when all queues are closed, that every command has
// completed exactly once.
func (l ops) checkOnce(t testing.TB) {
	t.Helper()
	for _, o := range l {
		if n := o.n.Load(); n != 1 {
			t.Errorf("%s: completed %d times", o.name, n)
		}
	}
}

// pattern fills b with bytes that depend on their place and on seed.
func pattern(b []byte, seed uint64) []byte {
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}
