package tcp_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// A controller that stays away beyond CtrlLossTimeout is given up: what waited
// fails, and so does all that comes.
func TestCtrlLossTimeout(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var g gate
	g.shut.Store(true)
	k.Override = g.override
	dead := make(chan error, 1)
	f := open(t, k, func(cfg *nvme.Config) {
		cfg.ReconnectDelay, cfg.CtrlLossTimeout = 5*time.Millisecond, 50*time.Millisecond
		cfg.Events = &nvme.Events{State: func(_ *nvme.Controller, _, to nvme.State, err error) {
			if to == nvme.StateDead {
				dead <- err
			}
		}}
	})
	q := f.queue(nvme.QueueConfig{})
	ns := f.namespace(1)
	read := func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) }
	f.submit("read in flight", read)
	eventually(t, "the read", func() bool { return g.seen.Load() == 1 })
	f.lose()
	f.submit("read that waits", read)
	<-dead
	for _, o := range f.ops {
		if st := o.wait(t); st != nvme.StatusHostPathError {
			t.Errorf("%s: %v", o.name, st)
		}
	}
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, nvme.ErrDead) {
			t.Errorf("%s: %v, want ErrDead", what, err)
		}
	}
	f.onCore(func() { check("read", read(newOp("late"))) })
	check("Admin", vendor(f.c, 0))
	_, err := ns.ReadAt(make([]byte, 512), 0)
	check("ReadAt", err)
	_, err = f.c.OpenQueue(f.ctx(), f.p, nvme.QueueConfig{})
	check("OpenQueue", err)
	check("Reset", f.c.Reset(f.ctx()))
	if f.c.State() != nvme.StateDead {
		t.Error(f.c.State())
	}
}

// With FastIOFailTimeout, commands do not wait for the reconnect, which goes on
// all the same.
func TestFastIOFail(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var g gate
	g.shut.Store(true)
	k.Override = g.override
	f := open(t, k, quickReconnect, func(cfg *nvme.Config) {
		cfg.FastIOFailTimeout, cfg.CtrlLossTimeout = 20*time.Millisecond, nvme.Forever
	})
	q := f.queue(nvme.QueueConfig{})
	ns := f.namespace(1)
	read := func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) }
	for range 2 {
		g.shut.Store(true)
		seen := g.seen.Load()
		o := f.submit("read in flight", read)
		eventually(t, "the read", func() bool { return g.seen.Load() > seen })
		f.lose()
		if st := o.wait(t); st != nvme.StatusHostPathError {
			t.Errorf("%s: %v", o.name, st)
		}
		f.onCore(func() {
			if err := read(newOp("late")); !errors.Is(err, nvme.ErrNotLive) || !errors.Is(err, nvme.StatusHostPathError) {
				t.Errorf("read: %v, want ErrNotLive", err)
			}
		})
		if _, err := ns.ReadAt(make([]byte, 512), 0); err == nil {
			t.Error("ReadAt succeeded")
		}
		g.shut.Store(false)
		f.comeBack()
		o = f.submit("read afterwards", read)
		if st := o.wait(t); !st.OK() {
			t.Errorf("%s: %v", o.name, st)
		}
		if _, err := ns.ReadAt(make([]byte, 512), 0); err != nil {
			t.Error(err)
		}
	}
}

// A connection that breaks right after it was made is not made again before
// ReconnectDelay has passed.
func TestReconnectDelay(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	f := open(t, k) // the delay is an hour
	accepted := f.srv.Accepted()
	f.srv.Drop()
	eventually(t, "the loss", func() bool { return f.c.State() == nvme.StateConnecting })
	time.Sleep(20 * time.Millisecond)
	if n := f.srv.Accepted(); n != accepted {
		t.Errorf("%d attempts", n-accepted)
	}
}

// An error that will not go away ends the attempts, however long they may last.
func TestReconnectRefused(t *testing.T) {
	t.Parallel()
	refusals := map[string]func(r *tcptest.Request) bool{
		"host no longer allowed": func(r *tcptest.Request) bool {
			if _, err := nvme.ParseConnect(&r.Cmd); err != nil {
				return false
			}
			r.Complete(nvme.StatusConnectInvalidHost|nvme.StatusDNR, 0)
			return true
		},
		"pages too large": func(r *tcptest.Request) bool {
			if p, err := nvme.ParsePropertyGet(&r.Cmd); err != nil || p.Offset != nvme.RegCAP {
				return false
			}
			r.Complete(nvme.StatusSuccess, uint64(capability(func(f *nvme.CAPFields) { f.MPSMIN = 3 })))
			return true
		},
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			var on atomic.Bool
			k.Override = func(r *tcptest.Request) bool { return on.Load() && refuse(r) }
			f := open(t, k, quickReconnect, func(cfg *nvme.Config) { cfg.CtrlLossTimeout = nvme.Forever })
			on.Store(true)
			f.srv.Drop()
			eventually(t, "the end", func() bool { return f.c.State() == nvme.StateDead })
			if err := vendor(f.c, 0); !errors.Is(err, nvme.ErrDead) {
				t.Errorf("%v, want ErrDead", err)
			}
		})
	}
}
