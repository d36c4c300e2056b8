package nvme

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// blockingWaiters returns how many blocking calls wait for a tracker.
func (r *rig) blockingWaiters() (n int) {
	r.on(func() {
		if qp := r.c.blocking.qp.Load(); qp != nil {
			n = len(qp.waiting)
		}
	})
	return n
}

// smallest returns a rig whose blocking queue has one tracker, open and busy
// with a raw command that is not answered.
func smallest(t *testing.T, cfg Config) (*rig, *mute, chan error) {
	d := newFakeDisk(512, 64)
	cfg.QueueSize = 2
	r := newRig(t, d, &cfg)
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
	m := d.mute()
	raw := outcome(func() error {
		_, err := r.ns.Passthrough(context.Background(), &Command{Opcode: OpFlush}, nil)
		return err
	})
	eventually(t, "raw command in flight", func() (busy bool) {
		r.on(func() { busy = r.c.blocking.qp.Load().InFlight() == 1 })
		return busy
	})
	return r, m, raw
}

func TestBlockingWaitsForRaw(t *testing.T) {
	r, m, raw := smallest(t, Config{})
	var calls []chan error
	for i := range 3 {
		calls = append(calls, outcome(r.read(context.Background(), int64(i))))
	}
	eventually(t, "three wait", func() bool { return r.blockingWaiters() == 3 })
	m.lift()
	for _, ch := range append(calls, raw) {
		if err := await(t, ch); err != nil {
			t.Fatal(err)
		}
	}
}

// What waits for a tracker ends with the queue.
func TestBlockingWaitersEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		end  func(r *rig)
		want error
	}{
		"close": {Config{}, func(r *rig) {
			if err := r.c.Close(context.Background()); err != nil {
				r.t.Error(err)
			}
		}, ErrClosed},
		"fast fail": {Config{ReconnectDelay: time.Millisecond, FastIOFailTimeout: time.Millisecond}, func(r *rig) {
			r.d.refuseAll()
			r.d.queue(0).cut(errCut)
		}, ErrNotLive},
		"given up": {Config{ReconnectDelay: time.Millisecond, CtrlLossTimeout: time.Millisecond}, func(r *rig) {
			r.d.refuseAll()
			r.d.queue(0).cut(errCut)
		}, ErrDead},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, raw := smallest(t, tc.cfg)
			var calls []chan error
			for i := range 5 {
				calls = append(calls, outcome(r.read(context.Background(), int64(i))))
			}
			admin := outcome(func() error {
				_, err := r.ns.Passthrough(context.Background(), &Command{Opcode: OpFlush}, nil)
				return err
			})
			eventually(t, "six wait", func() bool { return r.blockingWaiters() == 6 })
			tc.end(r)
			for _, ch := range append(calls, admin) {
				// The tracker that the raw command left behind went to one of them.
				if err := await(t, ch); !errors.Is(err, tc.want) && !errors.Is(err, StatusHostPathError) && !errors.Is(err, StatusCommandAbortedByHost) {
					t.Error(err)
				}
			}
			if err := await(t, raw); !errors.Is(err, StatusCommandAbortedByHost) && !errors.Is(err, StatusHostPathError) {
				t.Error(err)
			}
		})
	}
}

// Any of the places where a blocking call can wait heeds its context.
func TestBlockingCancelWhereItWaits(t *testing.T) {
	for name, submit := range map[string]func(r *rig, ctx context.Context) error{
		"for a tracker": func(r *rig, ctx context.Context) error { return r.read(ctx, 1)() },
		"for a tracker, raw": func(r *rig, ctx context.Context) error {
			_, err := r.ns.Passthrough(ctx, &Command{Opcode: OpFlush}, nil)
			return err
		},
		"for a tracker, split": func(r *rig, ctx context.Context) error {
			_, err := r.ns.ReadAtContext(ctx, make([]byte, 32*512), 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, raw := smallest(t, Config{})
			r.blocksAtOnce(8)
			ctx, cancel := context.WithCancelCause(context.Background())
			call := outcome(func() error { return submit(r, ctx) })
			eventually(t, "it waits", func() (waits bool) {
				r.on(func() {
					qp := r.c.blocking.qp.Load()
					waits = len(qp.waiting) == 1 || qp.stalled.head != nil
				})
				return waits
			})
			why := errors.New("had enough")
			cancel(why)
			if err := await(t, call); !errors.Is(err, why) {
				t.Fatal(err)
			}
			m.lift()
			if err := await(t, raw); err != nil {
				t.Fatal(err)
			}
			r.on(func() {
				qp := r.c.blocking.qp.Load()
				if qp.Room() != 1 || qp.inflight != 0 || len(qp.freeOps) != len(qp.ops) || len(qp.waiting) != 0 || qp.stalled.head != nil {
					t.Error("something leaked")
				}
			})
		})
	}
}

// Many blocking callers on a poller with the smallest mailbox: none of them is
// turned away, and a cancellation arrives.
func TestBlockingSmallMailbox(t *testing.T) {
	d := newFakeDisk(512, 64)
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive, Mailbox: 2})
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx := context.Background()
	c, err := NewController(ctx, d, &Config{Poller: p})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	ns, err := c.Namespace(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if _, err := ns.WriteAt(make([]byte, 512), int64(i)*512); err != nil {
				t.Error(err)
			}
			if _, err := c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); err != nil {
				t.Error(err)
			}
			if _, err := c.admin.DoInternal(ctx, &Command{Opcode: AdminKeepAlive}, nil); err != nil && !errors.Is(err, ErrQueueFull) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	m := d.mute()
	cctx, cancel := context.WithCancel(ctx)
	var calls []chan error
	for i := range 32 {
		calls = append(calls, outcome(func() error {
			_, err := ns.ReadAtContext(cctx, make([]byte, 512), int64(i)*512)
			return err
		}))
	}
	eventually(t, "all are in flight", func() (all bool) {
		p.CallAnyway(func() { all = c.blocking.qp.Load().InFlight() == 32 })
		return all
	})
	cancel()
	for _, ch := range calls {
		if err := await(t, ch); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	m.lift()
}

// A caller whose context ends does not wait for another who opens the queue.
func TestBlockingOpenHeedsContext(t *testing.T) {
	d := newFakeDisk(512, 64)
	block := make(chan struct{})
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	d.mu.Lock()
	d.refuse = func(qid uint16) error {
		if qid != 0 {
			<-block
		}
		return nil
	}
	d.mu.Unlock()
	first := outcome(r.read(context.Background(), 0))
	eventually(t, "the first opens the queue", func() bool {
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		return len(r.c.queues) == 1
	})
	ctx, cancel := context.WithCancel(context.Background())
	second := outcome(r.read(ctx, 1))
	cancel()
	if err := await(t, second); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(block)
	if err := await(t, first); err != nil {
		t.Fatal(err)
	}
}

// A controller that comes back with fewer queues takes the blocking queue
// away; with room again, a new one is opened.
func TestBlockingQueueReopened(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, IOQueues: 2})
	q := r.queue(8)
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
	var grant atomic.Uint32
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminSetFeatures && rq.Cmd.CDW10 == uint32(FeatNumberOfQueues) {
			fq.cpl.Result = uint64(grant.Load())<<16 | uint64(grant.Load())
			fq.cpl.StatusPhase = 0
			fq.qp.Complete(rq, &fq.cpl)
			return 0, false
		}
		return 0, true
	}
	if err := r.c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.read(context.Background(), 0)(); !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
	if err := q.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
}

// A blocking call whose context has ended does not wait for a reconnect: what
// the controller had of it is not sent again.
func TestBlockingCancelledThenLost(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	r.blocksAtOnce(8)
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
	aborts := make(chan struct{}, 16)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() == 0 && rq.Cmd.Opcode == AdminAbort {
			aborts <- struct{}{}
			return 0, false
		}
		return 0, fq.qp.ID() == 0
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	call := outcome(func() error {
		_, err := r.ns.ReadAtContext(ctx, make([]byte, 32*512), 0)
		return err
	})
	eventually(t, "all pieces are out", func() (all bool) {
		r.on(func() { all = r.c.blocking.qp.Load().InFlight() == 4 })
		return all
	})
	why := errors.New("had enough")
	cancel(why)
	<-aborts
	d.refuseAll()
	d.queue(0).cut(errCut)
	if err := await(t, call); !errors.Is(err, why) {
		t.Fatal(err)
	}
}

// A queue whose namespace left while it was opened is not left behind.
func TestQueueOfLeavingNamespace(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{IOQueues: 1})
	d.mu.Lock()
	d.connecting = func(_ context.Context, qp *QueuePair) error {
		if qp.ID() != 0 {
			r.ns.leave()
		}
		return nil
	}
	d.mu.Unlock()
	if _, err := r.ns.Queue(context.Background(), r.p, QueueConfig{}); !errors.Is(err, ErrNoNamespace) {
		t.Fatal(err)
	}
	qp, err := r.c.OpenQueue(context.Background(), r.p, QueueConfig{})
	if err != nil || qp.ID() != 1 {
		t.Fatal(err)
	}
}
