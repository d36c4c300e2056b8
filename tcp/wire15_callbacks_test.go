package tcp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// vendor is an admin command that the library never sends by itself; the mark
// tells who sent it.
func vendor(c *nvme.Controller, mark uint32) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.Admin(ctx, &nvme.Command{Opcode: nvme.AdminVendorStart, CDW10: mark}, nil)
	return err
}

// Admin commands issued from within each event callback work, and reach the
// controller once.
func TestWireCase15AdminFromCallbacks(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var seen [8]atomic.Int32
	var hang atomic.Bool
	k.Override = func(r *tcptest.Request) bool {
		switch {
		case r.Queue == 0 && r.Cmd.Opcode == nvme.AdminVendorStart:
			seen[r.Cmd.CDW10].Add(1)
			r.Complete(nvme.StatusSuccess, 0)
			return true
		case r.Queue != 0 && r.Cmd.Opcode == nvme.OpRead:
			return hang.Load()
		}
		return false
	}
	var once [8]atomic.Bool
	done := make(chan error, 8)
	call := func(c *nvme.Controller, mark uint32) {
		if once[mark].CompareAndSwap(false, true) {
			done <- vendor(c, mark)
		}
	}
	f := open(t, k, quickReconnect, func(cfg *nvme.Config) {
		cfg.IOTimeout = 400 * time.Millisecond
		cfg.Events = &nvme.Events{
			State: func(c *nvme.Controller, _, to nvme.State, _ error) {
				if to == nvme.StateLive {
					call(c, 0)
				}
			},
			Reconnect: func(c *nvme.Controller, _ int, _ error) { call(c, 1) },
			Queue: func(c *nvme.Controller, _ uint16, err error) {
				if err != nil {
					call(c, 2) // waits for the reconnect
				} else {
					call(c, 3)
				}
			},
			Timeout:           func(c *nvme.Controller, _, _ uint16, _ time.Duration, _ string) { call(c, 4) },
			Async:             func(c *nvme.Controller, _ nvme.AsyncEvent) { call(c, 5) },
			NamespacesChanged: func(c *nvme.Controller, _ []uint32) { call(c, 6) },
		}
	})
	q := f.queue(nvme.QueueConfig{})
	k.NamespaceChanged(1)
	hang.Store(true)
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
	await := func(n int) {
		t.Helper()
		for range n {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("a callback did not return")
			}
		}
	}
	await(4) // live, timeout, event, namespaces changed
	hang.Store(false)
	f.srv.Drop()
	await(3) // queue lost, reconnected, queue back
	if st := o.wait(t); !st.OK() {
		t.Error(st)
	}
	for mark := range 7 {
		if n := seen[mark].Load(); n != 1 {
			t.Errorf("the command of callback %d came %d times", mark, n)
		}
	}
}

// Completion callbacks run on the poller's core: they submit more, to the queue
// that completed and to others, and are refused what would wait for itself.
func TestWireCase15SubmitFromCompletion(t *testing.T) {
	t.Parallel()
	k, _ := disk(1024)
	f := open(t, k)
	q, other := f.queue(nvme.QueueConfig{Size: 2}), f.queue(nvme.QueueConfig{})
	buf := make([]byte, 512)
	const rounds = 50
	ended := make(chan struct{})
	n := 0
	var next func(o *op)
	next = func(*op) {
		if n++; n == rounds {
			close(ended)
			return
		}
		use := q // whose only tracker is free again by now
		if n%3 == 0 {
			use = other
		}
		o := newOp("read %d", n)
		o.then = next
		f.ops = append(f.ops, o)
		if err := use.Read(buf, uint64(n), 1, opDone, o); err != nil {
			t.Errorf("read %d: %v", n, err)
			close(ended)
		}
		if err := vendor(f.c, 0); !errors.Is(err, nvme.ErrOnCore) {
			t.Errorf("Admin on the core: %v, want ErrOnCore", err)
		}
		if _, err := f.c.Property(context.Background(), nvme.RegCSTS, 4); !errors.Is(err, nvme.ErrOnCore) {
			t.Errorf("Property on the core: %v, want ErrOnCore", err)
		}
		if err := f.c.Close(context.Background()); !errors.Is(err, nvme.ErrOnCore) {
			t.Errorf("Close on the core: %v, want ErrOnCore", err)
		}
	}
	f.onCore(func() { next(nil) })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the chain of commands broke off")
	}
}
