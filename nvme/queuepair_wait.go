package nvme

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// waiter is a submission from another goroutine. Where the queue is full it
// waits, in turn with others.
type waiter interface {
	// submit tries to submit, on the core. It returns true if the queue is
	// full, and nothing has happened; else its caller has been told, or will
	// be by a completion.
	submit() (full bool)
	// own tells whether the command is the library's own: it may use the
	// trackers kept for that, and goes before those of users.
	own() bool
}

// enter submits w now, or when its turn has come.
func (q *QueuePair) enter(w waiter) {
	at := len(q.waiting)
	if w.own() {
		if at = slices.IndexFunc(q.waiting, func(w waiter) bool { return !w.own() }); at < 0 {
			at = len(q.waiting)
		}
	}
	if at > 0 || w.submit() {
		q.waiting = slices.Insert(q.waiting, at, w)
	}
}

// admit lets waiters in while there is room. On a queue that takes no commands
// they all learn why.
func (q *QueuePair) admit() {
	for len(q.waiting) > 0 {
		w := q.waiting[0]
		if !w.own() && q.Room() == 0 && q.accepts() == nil || w.submit() {
			return
		}
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
}

// withdraw takes w out of those that wait, and reports whether it was there.
func (q *QueuePair) withdraw(w waiter) bool {
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// giveUp withdraws a command that was not sent yet. One that was stays.
func (q *QueuePair) giveUp(k *call) {
	if q.withdraw(k) {
		return
	}
	for _, i := range q.held {
		if q.reqs[i].arg == any(k) {
			q.unhold([]uint16{i})
			q.abort([]uint16{i}, StatusCommandAbortedByHost)
			return
		}
	}
}

// post has fn run on p's core, and waits for room in its mailbox.
func post(ctx context.Context, p *poller.Poller, fn func()) error {
	err := p.Post(fn)
	if !errors.Is(err, poller.ErrMailboxFull) {
		return err
	}
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		if sleep(ctx, wait) != nil {
			return ctxError(ctx)
		}
		if err = p.Post(fn); !errors.Is(err, poller.ErrMailboxFull) {
			return err
		}
	}
}

// postLater has fn run on p's core at some time, unless p is closed first. It
// does not wait.
func postLater(p *poller.Poller, fn func()) {
	if errors.Is(p.Post(fn), poller.ErrMailboxFull) {
		time.AfterFunc(time.Millisecond, func() { postLater(p, fn) })
	}
}
