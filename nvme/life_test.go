package nvme

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/poller"
)

// An open that fails leaves nothing running.
func TestOpenFailures(t *testing.T) {
	p, closed := startPoller(t), startPoller(t)
	closed.Close()
	check, err := testutil.Watch()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := NewController(ctx, newFakeDisk(512, 8), &Config{Poller: closed}); !errors.Is(err, poller.ErrClosed) {
		t.Error(err)
	}
	p.CallAnyway(func() {
		if _, err := NewController(ctx, newFakeDisk(512, 8), &Config{Poller: p}); !errors.Is(err, ErrOnCore) {
			t.Error(err)
		}
	})
	d := newFakeDisk(512, 8)
	d.refuseAll()
	if _, err := NewController(ctx, d, &Config{Poller: p}); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	if !d.closed {
		t.Error("the transport was not closed")
	}
	if err := check(); err != nil {
		t.Error(err)
	}
}

// An open without a deadline of its own does not wait for a silent controller.
func TestOpenBounded(t *testing.T) {
	for name, prepare := range map[string]func(d *fakeDisk){
		"connect": func(d *fakeDisk) {
			d.connecting = func(ctx context.Context, _ *QueuePair) error { <-ctx.Done(); return context.Cause(ctx) }
		},
		"identify": func(d *fakeDisk) {
			d.hook = func(_ *fakeQueue, rq *Request) (Status, bool) { return 0, false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDisk(512, 8)
			prepare(d)
			p := startPoller(t)
			call := outcome(func() error {
				_, err := NewController(context.Background(), d, &Config{Poller: p, ConnectTimeout: 20 * time.Millisecond})
				return err
			})
			if err := await(t, call); !errors.Is(err, ErrTimeout) {
				t.Fatal(err)
			}
		})
	}
}

// Calls that wait for a reconnect end when the controller is given up, and
// when it is closed, even if that takes long.
func TestWaitersOfReconnect(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		end  func(r *rig)
		want error
	}{
		"given up": {Config{ReconnectDelay: 10 * time.Millisecond, CtrlLossTimeout: 100 * time.Millisecond}, func(r *rig) {}, ErrDead},
		"closed":   {Config{ReconnectDelay: time.Hour}, func(r *rig) { go r.c.Close(context.Background()) }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDisk(512, 64)
			r := newRig(t, d, &tc.cfg)
			d.refuseAll()
			hold := make(chan struct{})
			d.queue(0).cut(errCut)
			eventually(t, "connecting", func() bool { return r.c.State() != StateLive })
			ctx := context.Background()
			calls := []chan error{
				outcome(func() error { _, err := r.c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); return err }),
				outcome(r.read(ctx, 0)),
				outcome(func() error { _, err := r.c.OpenQueue(ctx, r.p, QueueConfig{}); return err }),
				outcome(func() error { return r.c.Reset(ctx) }),
			}
			d.mu.Lock()
			d.disconnecting = func(*QueuePair) { <-hold }
			d.mu.Unlock()
			if name == "given up" {
				close(hold)
			}
			tc.end(r)
			for i, ch := range calls {
				if err := await(t, ch); !errors.Is(err, tc.want) {
					t.Error(i, err)
				}
			}
			if name != "given up" {
				close(hold)
			}
		})
	}
}

// A reset that races with the end of the controller returns.
func TestResetAgainstDeath(t *testing.T) {
	for range 50 {
		d := newFakeDisk(512, 64)
		r := newRig(t, d, &Config{ReconnectDelay: time.Microsecond, CtrlLossTimeout: time.Nanosecond})
		var calls []chan error
		for range 4 {
			calls = append(calls, outcome(func() error {
				for {
					if err := r.c.Reset(context.Background()); err != nil {
						return err
					}
				}
			}))
		}
		d.refuseAll()
		d.queue(0).cut(errCut)
		for _, ch := range calls {
			if err := await(t, ch); !errors.Is(err, ErrDead) {
				t.Fatal(err)
			}
		}
	}
}

// A controller may take longer to get ready than an attempt to connect may
// otherwise take, if it says so.
func TestSlowReady(t *testing.T) {
	t.Parallel() // it waits most of the time
	d := &slowDisk{fakeDisk: newFakeDisk(512, 64), asks: 1}
	d.capp = CAPFields{MQES: 1023, TO: 60 * time.Second, CQR: true, CSS: 1}.CAP()
	p := startPoller(t)
	// Whatever else the connecting takes fits in the timeout by far.
	const timeout = 3 * time.Second
	d.takes = timeout + time.Second
	c, err := NewController(context.Background(), d, &Config{Poller: p, ConnectTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// slowDisk becomes ready some time after it is asked to.
type slowDisk struct {
	*fakeDisk
	asks  int
	takes time.Duration
}

func (d *slowDisk) Property(ctx context.Context, off uint32, size int) (uint64, error) {
	v, err := d.fakeDisk.Property(ctx, off, size)
	if off == RegCSTS && d.cc&1 != 0 && d.asks > 0 {
		d.asks--
		time.Sleep(d.takes)
		return 0, err
	}
	return v, err
}
