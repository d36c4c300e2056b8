package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// What goes wrong while reconnecting and may be better next time: a busy
// controller, another subsystem at the address, an I/O queue that is refused,
// a connection that breaks at any point.
func TestReconnectTriesAgain(t *testing.T) {
	t.Parallel()
	fabrics := func(queue uint16, do func(r *tcptest.Request)) func(r *tcptest.Request) bool {
		return func(r *tcptest.Request) bool {
			if cc, err := nvme.ParseConnect(&r.Cmd); err != nil || cc.QID != queue {
				return false
			}
			do(r)
			return true
		}
	}
	command := func(op nvme.Opcode, do func(r *tcptest.Request)) func(r *tcptest.Request) bool {
		return func(r *tcptest.Request) bool {
			if r.Queue != 0 || r.Cmd.Opcode != op {
				return false
			}
			do(r)
			return true
		}
	}
	status := func(st nvme.Status) func(r *tcptest.Request) {
		return func(r *tcptest.Request) { r.Complete(st, 0) }
	}
	reset := func(r *tcptest.Request) { r.Conn.Reset() }
	closed := func(r *tcptest.Request) { r.Conn.Close() }
	wrong := func(r *tcptest.Request) { r.Conn.Send(make([]byte, 24)) }
	troubles := map[string]func(r *tcptest.Request) bool{
		"busy":              fabrics(0, status(nvme.StatusConnectControllerBusy)),
		"I/O queue refused": fabrics(1, status(nvme.StatusInternalError)),
		"controller gone at I/O queue Connect": fabrics(1, func(r *tcptest.Request) {
			r.Complete(nvme.StatusConnectInvalidParameters|nvme.StatusDNR,
				nvme.InvalidParameter{Offset: nvme.ConnectDataControllerIDOffset, InData: true}.Result())
		}),
		"reset at Connect":           fabrics(0, reset),
		"reset at I/O queue Connect": fabrics(1, reset),
		"closed at Identify":         command(nvme.AdminIdentify, closed),
		"reset at Set Features":      command(nvme.AdminSetFeatures, reset),
		"nonsense at Identify":       command(nvme.AdminIdentify, wrong),
		"Identify fails":             command(nvme.AdminIdentify, status(nvme.StatusInternalError)),
	}
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			var left atomic.Int32
			k.Override = func(r *tcptest.Request) bool {
				if left.Load() <= 0 || !trouble(r) {
					return false
				}
				left.Add(-1)
				return true
			}
			var attempts atomic.Int32
			f := open(t, k, quickReconnect, func(cfg *nvme.Config) {
				cfg.Events = &nvme.Events{Reconnect: func(*nvme.Controller, int, error) { attempts.Add(1) }}
			})
			q := f.queue(nvme.QueueConfig{})
			left.Store(3)
			f.srv.Drop()
			eventually(t, "the loss", func() bool { return f.c.State() == nvme.StateConnecting || attempts.Load() > 0 })
			o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
			if st := o.wait(t); !st.OK() {
				t.Error(st)
			}
			eventually(t, "the controller to be live", func() bool { return f.c.State() == nvme.StateLive })
			if n := attempts.Load(); n < 4 && name != "Identify fails" {
				t.Errorf("%d attempts", n)
			}
			f.end()
			if name == "nonsense at Identify" {
				for range 3 {
					if e := k.AwaitTermReq(t); e.FES != pdu.FESInvalidHeaderField {
						t.Error(e)
					}
				}
			}
		})
	}
}

// The loss of one connection takes down and brings back all of the controller.
func TestReconnectAfterOneQueue(t *testing.T) {
	t.Parallel()
	for _, which := range []uint16{0, 1, 2} {
		t.Run(fmt.Sprint(which), func(t *testing.T) {
			k, _ := disk(64)
			var mu sync.Mutex
			conns := map[uint16]*tcptest.Conn{}
			k.Override = func(r *tcptest.Request) bool {
				if cc, err := nvme.ParseConnect(&r.Cmd); err == nil {
					mu.Lock()
					conns[cc.QID] = r.Conn
					mu.Unlock()
				}
				return false
			}
			f := open(t, k, quickReconnect)
			queues := []*nvme.NamespaceQueue{f.queue(nvme.QueueConfig{}), f.queue(nvme.QueueConfig{})}
			accepted := f.srv.Accepted()
			mu.Lock()
			conns[which].Reset()
			mu.Unlock()
			eventually(t, "new connections", func() bool { return f.srv.Accepted() >= accepted+3 })
			for _, q := range queues {
				o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
				if st := o.wait(t); !st.OK() {
					t.Error(st)
				}
			}
			if n := f.srv.Accepted(); n != accepted+3 {
				t.Errorf("%d new connections, want 3", n-accepted)
			}
		})
	}
}

// Fewer queues are granted after the reconnect: those that are left go on, the
// others fail.
func TestReconnectFewerQueues(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var most atomic.Uint32
	most.Store(3)
	k.Override = func(r *tcptest.Request) bool {
		if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminSetFeatures || nvme.FeatureID(r.Cmd.CDW10) != nvme.FeatNumberOfQueues {
			return false
		}
		n := most.Load()
		r.Complete(nvme.StatusSuccess, uint64(n|n<<16))
		return true
	}
	f := open(t, k, quickReconnect)
	first, second := f.queue(nvme.QueueConfig{}), f.queue(nvme.QueueConfig{})
	most.Store(0)
	f.lose()
	read := func(q *nvme.NamespaceQueue) func(o *op) error {
		return func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) }
	}
	o1, o2 := f.submit("first queue", read(first)), f.submit("second queue", read(second))
	f.comeBack()
	if st := o1.wait(t); !st.OK() {
		t.Errorf("%s: %v", o1.name, st)
	}
	if st := o2.wait(t); st != nvme.StatusHostPathError {
		t.Errorf("%s: %v", o2.name, st)
	}
	f.onCore(func() {
		if err := read(second)(newOp("late")); !errors.Is(err, nvme.ErrUnsupported) {
			t.Errorf("%v, want ErrUnsupported", err)
		}
	})
}

// The namespace is another one after the reconnect: what waited for it fails,
// and nothing of it reaches the other one.
func TestReconnectOtherNamespace(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"replaced", "gone"} {
		t.Run(how, func(t *testing.T) {
			k, _ := disk(64)
			j := &journal{hold: true}
			k.Override = j.override
			f := open(t, k, quickReconnect)
			q := f.queue(nvme.QueueConfig{})
			write := func(o *op) error {
				return q.Write(pattern(make([]byte, 512), 1), uint64(len(f.ops)), 1, opDone, o)
			}
			f.submit("in flight", write)
			eventually(t, "the write", func() bool { return j.len() == 1 })
			j.take()
			f.lose()
			f.submit("waits", write)
			k.RemoveNamespace(1)
			if how == "replaced" {
				k.AddNamespace(1, tcptest.NewNamespace(64, 512))
			}
			j.setHold(false)
			f.comeBack()
			for _, o := range f.ops {
				if st := o.wait(t); st.Code() != nvme.StatusInvalidNamespace {
					t.Errorf("%s: %v", o.name, st)
				}
			}
			f.onCore(func() {
				if err := write(newOp("late")); !errors.Is(err, nvme.ErrNoNamespace) {
					t.Errorf("%v, want ErrNoNamespace", err)
				}
			})
			if cmds := j.take(); len(cmds) != 0 {
				t.Errorf("%d commands reached the controller", len(cmds))
			}
		})
	}
}

// While there is no connection, properties cannot be read, and that is an error
// at once.
func TestPropertyWithoutConnection(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{time.Millisecond, time.Hour} {
		t.Run(delay.String(), func(t *testing.T) {
			k, _ := disk(64)
			f := open(t, k, func(cfg *nvme.Config) { cfg.ReconnectDelay = delay })
			f.lose()
			for range 3 {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				_, err := f.c.Property(ctx, nvme.RegCSTS, 4)
				if err == nil || ctx.Err() != nil {
					t.Errorf("%v, want an error before the context ends", err)
				}
				if err := f.c.SetProperty(ctx, nvme.RegCC, 4, 0); err == nil || ctx.Err() != nil {
					t.Errorf("%v, want an error before the context ends", err)
				}
				cancel()
			}
			if delay == time.Hour {
				return
			}
			f.comeBack()
			if v, err := f.c.Property(f.ctx(), nvme.RegCSTS, 4); err != nil || !nvme.CSTS(v).RDY() {
				t.Errorf("CSTS %v, %v", nvme.CSTS(v), err)
			}
			wantWorks(t, f)
		})
	}
}

// A reset on request replays what is in flight.
func TestResetOnRequest(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	j := &journal{hold: true}
	k.Override = j.override
	f := open(t, k)
	q := f.queue(nvme.QueueConfig{})
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 9, 1, opDone, o) })
	eventually(t, "the read", func() bool { return j.len() == 1 })
	for range 3 {
		if err := f.c.Reset(f.ctx()); err != nil {
			t.Fatal(err)
		}
		j.take()
	}
	j.setHold(false)
	if err := f.c.Reset(f.ctx()); err != nil {
		t.Fatal(err)
	}
	if st := o.wait(t); !st.OK() {
		t.Error(st)
	}
}
