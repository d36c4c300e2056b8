package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// loaded is a controller with commands of all kinds in flight.
func loaded(t *testing.T, change ...func(*nvme.Config)) (*fixture, *tcptest.Controller, []*nvme.NamespaceQueue) {
	t.Helper()
	k, _ := disk(4096)
	var g gate
	g.shut.Store(true)
	k.Override = g.override
	f := open(t, k, change...)
	queues := []*nvme.NamespaceQueue{f.queue(nvme.QueueConfig{Size: 8}), f.queue(nvme.QueueConfig{})}
	for i, q := range queues {
		for n := range 4 {
			buf := make([]byte, 64<<10)
			f.submit(fmt.Sprintf("queue %d read %d", i, n), func(o *op) error { return q.Read(buf[:512], 0, 1, opDone, o) })
			if n < 3 {
				f.submit(fmt.Sprintf("queue %d write %d", i, n), func(o *op) error { return q.Write(buf, 0, 128, opDone, o) })
			}
		}
	}
	eventually(t, "the commands", func() bool { return g.seen.Load() == 14 })
	return f, k, queues
}

func (f *fixture) wantAborted(list ops) {
	f.t.Helper()
	for _, o := range list {
		if st := o.wait(f.t); st != nvme.StatusCommandAbortedByHost {
			f.t.Errorf("%s: %v", o.name, st)
		}
	}
}

// Closing the controller ends what is in flight, and tells the controller.
func TestCloseWithIO(t *testing.T) {
	t.Parallel()
	f, k, queues := loaded(t)
	c := f.c
	f.close()
	f.wantAborted(f.ops)
	if shn := k.Configuration().SHN(); shn != nvme.CCSHNNormal {
		t.Errorf("shutdown notification %d", shn)
	}
	f.onCore(func() {
		if err := queues[0].Read(make([]byte, 512), 0, 1, opDone, newOp("late")); !errors.Is(err, nvme.ErrClosed) {
			t.Errorf("read: %v, want ErrClosed", err)
		}
	})
	if err := vendor(c, 0); !errors.Is(err, nvme.ErrClosed) {
		t.Errorf("Admin: %v, want ErrClosed", err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Closing one queue leaves the other alone, and its identifier can be used
// again.
func TestCloseQueue(t *testing.T) {
	t.Parallel()
	f, _, queues := loaded(t)
	if err := queues[0].Close(f.ctx()); err != nil {
		t.Fatal(err)
	}
	f.wantAborted(f.ops[:7])
	for _, o := range f.ops[7:] {
		if o.isDone() {
			t.Errorf("%s: completed with %v", o.name, o.st())
		}
	}
	if err := queues[0].Close(f.ctx()); err != nil {
		t.Errorf("second Close: %v", err)
	}
	q := f.queue(nvme.QueueConfig{})
	if id := q.QueuePair().ID(); id != queues[0].QueuePair().ID() {
		t.Errorf("queue %d was opened", id)
	}
	f.close()
	f.wantAborted(f.ops[7:])
}

// Closing while there is no connection, and while an attempt is stuck.
func TestCloseWhileReconnecting(t *testing.T) {
	t.Parallel()
	t.Run("waiting", func(t *testing.T) {
		f, _, queues := loaded(t)
		f.lose()
		f.submit("late", func(o *op) error { return queues[1].Read(make([]byte, 512), 0, 1, opDone, o) })
		f.close()
		f.wantAborted(f.ops)
	})
	t.Run("stuck", func(t *testing.T) {
		k, _ := disk(64)
		stuck := make(chan struct{}, 1)
		script := tcptest.Sequence(k.Serve, k.Serve, func(c *tcptest.Conn) {
			c.ExpectICReq()
			stuck <- struct{}{}
			c.Drain()
		})
		f := setup(t, nil, script)
		if err := f.connect(quickReconnect, func(cfg *nvme.Config) { cfg.ConnectTimeout = time.Hour }); err != nil {
			t.Fatal(err)
		}
		q := f.queue(nvme.QueueConfig{})
		f.srv.Drop()
		<-stuck
		f.submit("late", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
		f.close()
		f.wantAborted(f.ops)
	})
}

// Closing a controller that has fallen silent gives up on it after a while.
func TestCloseSilent(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var silent gate
	k.Override = func(*tcptest.Request) bool { return silent.shut.Load() }
	k.Identify = func(id *nvme.IdentifyController) { id.RTD3E = 50_000 } // us
	f := open(t, k)
	q := f.queue(nvme.QueueConfig{})
	silent.shut.Store(true)
	f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
	f.close()
	f.wantAborted(f.ops)
}

// Closing from several goroutines at once, with callers in blocking calls.
func TestCloseConcurrently(t *testing.T) {
	t.Parallel()
	f, _, _ := loaded(t)
	ns := f.namespace(1)
	c := f.c
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := ns.ReadAt(make([]byte, 512), 0); err != nil {
					return // at the latest when it is closed; its reads are held back, too
				}
			}
		})
		wg.Go(func() {
			for vendor(c, 0) == nil || c.State() == nvme.StateLive {
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.wantAborted(f.ops)
}

// Closing after the poller is gone.
func TestCloseAfterPoller(t *testing.T) {
	t.Parallel()
	f, _, _ := loaded(t)
	if err := f.p.Close(); err != nil {
		t.Fatal(err)
	}
	f.close()
	f.wantAborted(f.ops)
}

// The context of Close bounds waiting for it, not the closing.
func TestCloseContext(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var silent gate
	k.Override = func(*tcptest.Request) bool { return silent.shut.Load() }
	k.Identify = func(id *nvme.IdentifyController) { id.RTD3E = 100_000 } // us
	f := open(t, k)
	silent.shut.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.c.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
	if err := f.c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if f.c.State() != nvme.StateDead {
		t.Error(f.c.State())
	}
}
