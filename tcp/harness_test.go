package tcp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

const (
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:9f6a3c1e-0d5b-4c7a-8f10-2b3c4d5e6f70"
	subNQN  = "nqn.2014-08.org.example:disk"
)

// fixture is a controller that is reached over TCP, with a poller that runs.
type fixture struct {
	t   testing.TB
	k   *tcptest.Controller
	srv *tcptest.Server
	p   *poller.Poller
	c   *nvme.Controller
	ops ops
}

// setup prepares a fixture without a host. A nil controller leaves the server
// to script.
func setup(t testing.TB, k *tcptest.Controller, script tcptest.Script) *fixture {
	t.Helper()
	f := &fixture{t: t, k: k}
	if k != nil {
		f.srv = tcptest.NewController(t, k, nil)
	} else {
		f.srv = tcptest.New(t, script, nil)
	}
	p, err := poller.New(poller.Config{Name: "test", Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	f.p = p
	t.Cleanup(func() {
		f.close()
		p.Close()
		f.ops.checkOnce(t)
	})
	return f
}

func (f *fixture) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	f.t.Cleanup(cancel)
	return ctx
}

// connect opens the controller.
func (f *fixture) connect(change ...func(*nvme.Config)) error {
	cfg := &nvme.Config{
		Poller: f.p, HostNQN: hostNQN, KeepAlive: -1, ReconnectDelay: time.Hour, IOQueues: 4, QueueSize: 32,
	}
	for _, c := range change {
		c(cfg)
	}
	c, err := nvme.Open(f.ctx(), f.srv.Address(subNQN), cfg)
	if err == nil {
		f.c = c
	}
	return err
}

func (f *fixture) close() {
	if f.c == nil {
		return
	}
	if err := f.c.Close(f.ctx()); err != nil {
		f.t.Error(err)
	}
	f.c = nil
}

// end closes both ends, after which what the peer's goroutines left may be
// looked at.
func (f *fixture) end() {
	f.t.Helper()
	f.close()
	if err := f.srv.Close(); err != nil {
		f.t.Error(err)
	}
}

// open makes a fixture with a controller that is live.
func open(t testing.TB, k *tcptest.Controller, change ...func(*nvme.Config)) *fixture {
	t.Helper()
	f := setup(t, k, nil)
	if err := f.connect(change...); err != nil {
		t.Fatal(err)
	}
	return f
}

// disk returns a controller with namespace 1, of 512-byte blocks.
func disk(blocks uint64) (*tcptest.Controller, *tcptest.Namespace) {
	k, ns := new(tcptest.Controller), tcptest.NewNamespace(blocks, 512)
	k.AddNamespace(1, ns)
	return k, ns
}

func (f *fixture) namespace(nsid uint32) *nvme.Namespace {
	f.t.Helper()
	ns, err := f.c.Namespace(f.ctx(), nsid)
	if err != nil {
		f.t.Fatal(err)
	}
	return ns
}

// queue opens a queue for namespace 1.
func (f *fixture) queue(cfg nvme.QueueConfig) *nvme.NamespaceQueue {
	f.t.Helper()
	q, err := f.namespace(1).Queue(f.ctx(), f.p, cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return q
}

// onCore runs fn on the poller's core.
func (f *fixture) onCore(fn func()) {
	f.t.Helper()
	if err := f.p.Call(f.ctx(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// submit runs fn, which submits a command for op, on the core.
func (f *fixture) submit(name string, fn func(o *op) error) *op {
	f.t.Helper()
	o := f.ops.add("%s", name)
	var err error
	f.onCore(func() { err = fn(o) })
	if err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
	return o
}

// eventually waits for something that other goroutines bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Since(start) > patience {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// connectTo is connect to an address.
func (f *fixture) connectTo(addr string, cfg *nvme.Config) error {
	if cfg == nil {
		cfg = &nvme.Config{HostNQN: hostNQN, KeepAlive: -1}
	}
	cfg.Poller = f.p
	c, err := nvme.Open(f.ctx(), addr, cfg)
	if err == nil {
		f.c = c
	}
	return err
}

// quickReconnect makes a controller reconnect at once after a loss.
func quickReconnect(cfg *nvme.Config) { cfg.ReconnectDelay = time.Millisecond }

// wantClosed checks for the error of a connection that the controller closed.
func wantClosed(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, tcp.ErrPeerClosed) {
		t.Errorf("the error is %v, want ErrPeerClosed", err)
	}
}
