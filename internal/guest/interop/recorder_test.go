//go:build guest

package interop

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// recorder keeps the events of a controller.
type recorder struct {
	mu       sync.Mutex
	lines    []string // all of them, for messages
	states   []nvme.State
	attempts []error // of reconnects
	actions  []string
	asyncs   []nvme.AsyncEvent
	ana      []*nvme.ANALog
	changed  []uint32 // namespaces
	discover int
}

func (r *recorder) add(format string, args ...any) {
	r.lines = append(r.lines, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// events returns listeners that fill the recorder.
func (r *recorder) events() *nvme.Events {
	locked := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
	}
	return &nvme.Events{
		State: func(_ *nvme.Controller, from, to nvme.State, err error) {
			locked(func() { r.states = append(r.states, to); r.add("%v -> %v: %v", from, to, err) })
		},
		Reconnect: func(_ *nvme.Controller, n int, err error) {
			locked(func() { r.attempts = append(r.attempts, err); r.add("reconnect %d: %v", n, err) })
		},
		Queue: func(_ *nvme.Controller, qid uint16, err error) {
			locked(func() { r.add("queue %d: %v", qid, err) })
		},
		Timeout: func(_ *nvme.Controller, qid, cid uint16, age time.Duration, action string) {
			locked(func() {
				r.actions = append(r.actions, action)
				r.add("queue %d, command %#x overdue after %v: %s", qid, cid, age, action)
			})
		},
		Async: func(_ *nvme.Controller, e nvme.AsyncEvent) {
			locked(func() { r.asyncs = append(r.asyncs, e); r.add("%v", e) })
		},
		NamespacesChanged: func(_ *nvme.Controller, nsids []uint32) {
			locked(func() { r.changed = append(r.changed, nsids...); r.add("namespaces %v changed", nsids) })
		},
		ANAChanged: func(_ *nvme.Controller, log *nvme.ANALog) {
			locked(func() { r.ana = append(r.ana, log); r.add("ANA %+v", *log) })
		},
		DiscoveryChanged: func(*nvme.Controller) { locked(func() { r.discover++; r.add("discovery log changed") }) },
	}
}

// wait waits until cond, which is called with the recorder locked, is true.
func (r *recorder) wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	eventually(t, what, func() bool { return r.get(cond) })
}

func (r *recorder) get(cond func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cond()
}

// count returns how often the controller has come to a state.
func (r *recorder) count(s nvme.State) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.states {
		if x == s {
			n++
		}
	}
	return n
}

// waitCount waits until the controller has come to a state n times.
func (r *recorder) waitCount(t *testing.T, s nvme.State, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("state %v, %d times", s, n), func() bool { return r.count(s) >= n })
}

// waitChanged waits for the news that a namespace has changed, and forgets it.
func (r *recorder) waitChanged(t *testing.T, nsid uint32) {
	t.Helper()
	r.wait(t, fmt.Sprintf("a change of namespace %d", nsid), func() bool {
		i := slices.Index(r.changed, nsid)
		if i >= 0 {
			r.changed = nil
		}
		return i >= 0
	})
}

func (r *recorder) dump(t *testing.T, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		t.Logf("%s: %s", name, l)
	}
}

// lines collects the lines of output.
type lines struct {
	mu sync.Mutex
	b  []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, b...)
	return len(b), nil
}

func (l *lines) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Fields(string(l.b))
}
