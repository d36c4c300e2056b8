package nvme

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// idlePoller returns a poller that nobody started or steps.
func idlePoller(t *testing.T) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Name: "idle one"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func wantIdle(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), `poller "idle one" was not started`) {
		t.Errorf("%v, want %v and the name of the poller that was not started", err, kind)
	}
}

// A queue on a poller that does not run: the call ends with its context, or
// when it has taken too long, and the queue's identifier is free again.
func TestQueueOnIdlePoller(t *testing.T) {
	r := newRig(t, newFakeDisk(512, 64), &Config{IOQueues: 1})
	p := idlePoller(t)
	ctx, cancel := context.WithCancel(context.Background())
	open := outcome(func() error { _, err := r.ns.Queue(ctx, p, QueueConfig{}); return err })
	cancel()
	if err := await(t, open); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.c.cfg.ConnectTimeout = time.Millisecond
	_, err := r.ns.Queue(context.Background(), p, QueueConfig{})
	wantIdle(t, err, ErrTimeout)
	var op *OpError
	if !errors.As(err, &op) || op.Queue != 1 || op.Controller == "" {
		t.Errorf("%v names no queue and controller", err)
	}
	r.c.cfg.ConnectTimeout = time.Hour
	r.queue(8)
}

// The controller can be closed while a queue waits for such a poller.
func TestCloseWithIdlePoller(t *testing.T) {
	r := newRig(t, newFakeDisk(512, 64), &Config{ConnectTimeout: time.Hour})
	p := idlePoller(t)
	open := outcome(func() error { _, err := r.ns.Queue(context.Background(), p, QueueConfig{}); return err })
	eventually(t, "the queue being opened", func() bool {
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		return len(r.c.queues) == 1
	})
	if err := await(t, outcome(func() error { return r.c.Close(context.Background()) })); err != nil {
		t.Error(err)
	}
	if err := await(t, open); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// A controller on such a poller is not opened.
func TestOpenOnIdlePoller(t *testing.T) {
	_, err := NewController(context.Background(), newFakeDisk(512, 64), &Config{Poller: idlePoller(t), ConnectTimeout: time.Millisecond})
	wantIdle(t, err, ErrTimeout)
}
