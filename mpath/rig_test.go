package mpath

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	_ "github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// patience is far more than anything here takes.
const patience = time.Minute

const (
	testBlocks = 256
	testNQN    = "nqn.2014-08.org.example:many"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for something that happens by itself.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

// rig is a target with one subsystem at several ports, on a poller of its own.
type rig struct {
	t      testing.TB
	target *target.Target
	sub    *target.Subsystem
	ports  []*target.Port
	p      *poller.Poller // of the host
}

// newRig starts a target. change may change the subsystem.
func newRig(t testing.TB, ports int, change ...func(*target.SubsystemConfig)) *rig {
	t.Helper()
	r := &rig{t: t}
	store, err := backend.NewMemory(backend.MemoryConfig{Size: testBlocks * 512})
	must(t, err)
	cfg := target.SubsystemConfig{
		NQN:        testNQN,
		Namespaces: []target.NamespaceConfig{{NSID: 1, Backend: store, NGUID: [16]byte{1, 2, 3}}},
	}
	for _, f := range change {
		f(&cfg)
	}
	r.target, err = target.New(target.Config{Subsystems: []target.SubsystemConfig{cfg}, Ports: []target.PortConfig{}})
	must(t, err)
	for range ports {
		p, err := r.target.AddPort(target.PortConfig{Address: netip.MustParseAddrPort("127.0.0.1:0")})
		must(t, err)
		r.ports = append(r.ports, p)
	}
	tp := running(t, "target")
	must(t, r.target.Start(tp))
	t.Cleanup(func() { must(t, r.target.Close()) })
	r.sub = r.target.Subsystem(testNQN)
	r.p = running(t, "host")
	return r
}

func running(t testing.TB, name string) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Name: name, Unpinned: true, Idle: poller.Adaptive})
	must(t, err)
	must(t, p.Start())
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

func (r *rig) address(port int) string {
	a := r.ports[port].Addr()
	return fmt.Sprintf("trtype:tcp traddr:%s trsvcid:%d subnqn:%s", a.Addr(), a.Port(), testNQN)
}

func (r *rig) addresses() []string {
	var all []string
	for i := range r.ports {
		all = append(all, r.address(i))
	}
	return all
}

// quick is a configuration that reconnects at once.
func quick() *Config {
	return &Config{Controller: &nvme.Config{
		HostNQN: "nqn.2014-08.org.nvmexpress:uuid:9f6a3c1e-0d5b-4c7a-8f10-2b3c4d5e6f70", ReconnectDelay: 20 * time.Millisecond,
	}}
}

// open opens a head by all ports.
func (r *rig) open(cfg *Config) *Head {
	r.t.Helper()
	h, err := OpenConfig(within(r.t), cfg, r.addresses()...)
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, h.Close(within(r.t))) })
	return h
}

func (r *rig) channel(h *Head) *Channel {
	r.t.Helper()
	c, err := h.Channel(within(r.t), r.p, nvme.QueueConfig{Size: 32})
	must(r.t, err)
	return c
}

// path returns the path of a port.
func (r *rig) path(h *Head, port int) *Path {
	r.t.Helper()
	want := fmt.Sprint(r.ports[port].Addr())
	for _, p := range h.Paths() {
		if addr := p.Controller().Address(); contains(addr, want) {
			return p
		}
	}
	r.t.Fatalf("no path by port %d", port)
	return nil
}

// op is an I/O of a test.
type op struct {
	t    testing.TB
	name string
	mu   sync.Mutex
	n    int
	st   nvme.Status
	done chan struct{}
}

func opDone(arg any, st nvme.Status) {
	o := arg.(*op)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n++; o.n > 1 {
		o.t.Errorf("%s completed twice", o.name)
		return
	}
	o.st = st
	close(o.done)
}

func (o *op) wait() nvme.Status {
	o.t.Helper()
	select {
	case <-o.done:
	case <-time.After(patience):
		o.t.Fatalf("%s does not complete", o.name)
	}
	return o.st
}

func (o *op) ended() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// submit has f submit an I/O on the core.
func (r *rig) submit(name string, f func(o *op) error) *op {
	r.t.Helper()
	o := &op{t: r.t, name: name, done: make(chan struct{})}
	r.on(func() {
		if err := f(o); err != nil {
			r.t.Errorf("%s: %v", name, err)
			opDone(o, nvme.StatusInternalError)
		}
	})
	return o
}

// on runs f on the host's core.
func (r *rig) on(f func()) {
	r.t.Helper()
	must(r.t, r.p.Call(within(r.t), f))
}

// idle checks that nothing is in flight, nor lost.
func (r *rig) idle(c *Channel) {
	r.t.Helper()
	r.on(func() {
		if n := c.set.Total(); n != 0 {
			r.t.Errorf("%d in flight", n)
		}
		if len(c.free) != len(c.cold.all) || c.waiting.n != 0 || c.parked.n != 0 {
			r.t.Errorf("%d of %d requests are free, %d wait, %d are parked", len(c.free), len(c.cold.all), c.waiting.n, c.parked.n)
		}
		for slot := range c.links {
			if l := c.set.InFlight(slot); l.Count != 0 || l.Bytes != 0 {
				r.t.Errorf("slot %d has %v in flight", slot, l)
			}
		}
	})
}

func fill(b []byte, v byte) []byte {
	for i := range b {
		b[i] = v
	}
	return b
}
