package pcietest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
)

// The driver of package pcie on controllers of this package: the cases that
// others were bitten by.

// patience is far more than anything here takes.
const patience = 2 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// host is a driver and its controller.
type host struct {
	t testing.TB
	c *pcietest.Controller
	n *nvme.Controller
	p *poller.Poller
}

// open makes a controller, changed by prepare, and opens it with the driver.
func open(t testing.TB, cfg pcietest.Config, n nvme.Config, prepare func(*pcietest.Controller)) (*host, error) {
	t.Helper()
	h := &host{t: t}
	var err error
	if h.c, err = pcietest.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.c.Close(); err != nil {
			t.Error(err)
		}
	})
	h.c.Start()
	if prepare != nil {
		prepare(h.c)
	}
	if h.p, err = poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive}); err != nil {
		t.Fatal(err)
	}
	if err := h.p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.p.Close() })
	tr, err := pcie.New(h.c.Device(), &pcie.Config{ArenaSize: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.Poller = h.p
	n.ReconnectDelay = time.Millisecond
	if h.n, err = nvme.NewController(testContext(t), tr, &n); err != nil {
		return h, err
	}
	t.Cleanup(func() { h.n.Close(testContext(t)) })
	return h, nil
}

func mustOpen(t testing.TB, cfg pcietest.Config) *host {
	t.Helper()
	h, err := open(t, cfg, nvme.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) namespace(nsid uint32) *nvme.Namespace {
	h.t.Helper()
	ns, err := h.n.Namespace(testContext(h.t), nsid)
	if err != nil {
		h.t.Fatal(err)
	}
	return ns
}

// roundTrip writes and reads bytes, and verifies them.
func (h *host) roundTrip(ns *nvme.Namespace, off int64, n int) {
	h.t.Helper()
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i*7 + i>>8 + n)
	}
	if _, err := ns.WriteAtContext(testContext(h.t), want, off); err != nil {
		h.t.Fatal(err)
	}
	got := make([]byte, n)
	if _, err := ns.ReadAtContext(testContext(h.t), got, off); err != nil {
		h.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		h.t.Fatalf("%d bytes at %d are others than were written", n, off)
	}
}

// clean is for the end: the driver has let the controller reach for nothing.
func (h *host) clean() {
	h.t.Helper()
	for _, f := range h.c.Faults() {
		h.t.Error(f)
	}
	if n := h.c.Stats().BadDoorbells; n != 0 {
		h.t.Errorf("%d bad doorbells", n)
	}
}

func TestDriver(t *testing.T) {
	for _, cfg := range []pcietest.Config{
		{}, {NoSGL: true}, {NoShadow: true}, {ShadowNotify: true}, {Weighted: true, Version: nvme.Version14},
		{MaxTransfer: 128 << 10}, {CMB: pcietest.CMBConfig{Size: 1 << 20}}, {MaxMappings: 64}, {DoorbellStride: 4},
	} {
		h := mustOpen(t, cfg)
		ns := h.namespace(1)
		for _, n := range []int{512, 4096, 8192, 12800, 131072, 1 << 20, 3<<20 + 512} {
			h.roundTrip(ns, 512, n)
		}
		if err := ns.Flush(testContext(t)); err != nil {
			t.Error(err)
		}
		if err := ns.Deallocate(testContext(t), 0, 4096); err != nil {
			t.Error(err)
		}
		h.clean()
	}
}

// TestCase16: what a controller may say of itself, and what it may not.
func TestCase16(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  pcietest.Config
		prep func(*pcietest.Controller)
		want error // nil: it works
	}{
		{"CAP.TO 0", pcietest.Config{Timeout: -1}, nil, nil},
		{"CAP.TO 255", pcietest.Config{Timeout: 127500 * time.Millisecond}, nil, nil},
		{"CAP.MQES 1", pcietest.Config{QueueEntries: 2}, nil, nil},
		{"CAP.DSTRD", pcietest.Config{DoorbellStride: 3}, nil, nil},
		{"slow", pcietest.Config{ReadyTime: 50 * time.Millisecond}, nil, nil},
		{"CFS while it is enabled", pcietest.Config{ReadyTime: -1}, func(c *pcietest.Controller) {
			c.Override(nvme.RegCSTS, uint64(nvme.CSTSFields{CFS: true}.CSTS()))
		}, nvme.ErrFatal},
		{"never ready", pcietest.Config{ReadyTime: -1, Timeout: 500 * time.Millisecond}, nil, nvme.ErrTimeout},
		{"all ones", pcietest.Config{}, func(c *pcietest.Controller) { c.Vanish(true) }, nvme.ErrFatal},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := open(t, c.cfg, nvme.Config{ConnectTimeout: patience}, c.prep)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				h.roundTrip(h.namespace(1), 0, 64<<10)
				h.clean()
				return
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestCase17: shadow doorbells are cleared when a queue is made anew.
func TestCase17(t *testing.T) {
	for _, notify := range []bool{false, true} {
		h := mustOpen(t, pcietest.Config{ShadowNotify: notify, IOQueues: 2})
		ns := h.namespace(1)
		for range 4 {
			q, err := ns.Queue(testContext(t), h.p, nvme.QueueConfig{Size: 16})
			if err != nil {
				t.Fatal(err)
			}
			for range 11 {
				h.one(q)
			}
			if err := q.QueuePair().Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
		h.clean()
	}
}

// one executes one Read on a queue.
func (h *host) one(q *nvme.NamespaceQueue) {
	h.t.Helper()
	done := make(chan nvme.Status, 1)
	buf := make([]byte, q.BlockSize())
	var err error
	if e := h.p.Call(testContext(h.t), func() {
		err = q.Read(buf, 0, 1, func(_ any, st nvme.Status) { done <- st }, nil)
	}); e != nil || err != nil {
		h.t.Fatal(e, err)
	}
	select {
	case st := <-done:
		if !st.OK() {
			h.t.Fatal(st)
		}
	case <-testContext(h.t).Done():
		h.t.Fatal("no completion")
	}
}

// TestCase18: more than 512 queues, and the largest size.
func TestCase18(t *testing.T) {
	h, err := open(t, pcietest.Config{IOQueues: 520, QueueEntries: 64, Spin: 10 * time.Millisecond}, nvme.Config{IOQueues: 520}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ns := h.namespace(1)
	var last *nvme.NamespaceQueue
	for i := range 519 {
		size := 4
		if i == 518 {
			size = 64
		}
		if last, err = ns.Queue(testContext(t), h.p, nvme.QueueConfig{Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	if id := last.QueuePair().ID(); id <= 512 {
		t.Errorf("the last queue is %d", id)
	}
	for range 200 {
		h.one(last)
	}
	h.clean()
}

// TestCase19: completions of commands that are none. The queue is given up, and
// with it the connection; after the reset all is well.
func TestCase19(t *testing.T) {
	for _, r := range []pcietest.Rule{
		{Action: pcietest.WrongCID, Value: 0xffff}, {Action: pcietest.WrongCID, Value: 200}, {Action: pcietest.WrongSQID, Value: 0xfff},
		{Action: pcietest.Duplicate},
	} {
		t.Run(fmt.Sprintf("%d %#x", r.Action, r.Value), func(t *testing.T) {
			h := mustOpen(t, pcietest.Config{})
			ns := h.namespace(1)
			h.roundTrip(ns, 0, 4096)
			before := h.c.Stats().Resets
			r.Count = 1
			i := h.c.Inject(r)
			h.roundTrip(ns, 8192, 64<<10)
			h.roundTrip(ns, 8192, 64<<10)
			if i.Hits() != 1 || h.c.Stats().Resets == before {
				t.Errorf("%d hits, %d resets", i.Hits(), h.c.Stats().Resets-before)
			}
			h.clean()
		})
	}
}

// TestCase20: the device goes, noticed or not. What is under way fails.
func TestCase20(t *testing.T) {
	for name, leave := range map[string]func(*pcietest.Controller){
		"removed":  func(c *pcietest.Controller) { c.Remove() },
		"all ones": func(c *pcietest.Controller) { c.Vanish(true) },
	} {
		t.Run(name, func(t *testing.T) {
			h, err := open(t, pcietest.Config{}, nvme.Config{
				KeepAlive: 500 * time.Millisecond, IOTimeout: 200 * time.Millisecond, AdminTimeout: 200 * time.Millisecond, CtrlLossTimeout: time.Second,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ns := h.namespace(1)
			h.roundTrip(ns, 0, 4096)
			h.c.Inject(pcietest.Rule{Action: pcietest.Hold})
			done := make(chan error, 1)
			go func() {
				_, err := ns.ReadAtContext(testContext(t), make([]byte, 4096), 0)
				done <- err
			}()
			leave(h.c)
			if err := <-done; err == nil {
				t.Error("a read of a device that is gone succeeded")
			}
			if _, err := ns.ReadAtContext(testContext(t), make([]byte, 512), 0); err == nil {
				t.Error("another read succeeded")
			}
			h.clean()
		})
	}
}

// TestRecovery: a command that is lost is aborted, then the controller is
// reset, and in the end the data is right.
func TestRecovery(t *testing.T) {
	for _, a := range []pcietest.Action{pcietest.Drop, pcietest.Mute, pcietest.StuckPhase, pcietest.Die} {
		h, err := open(t, pcietest.Config{}, nvme.Config{IOTimeout: 50 * time.Millisecond, KeepAlive: 200 * time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ns := h.namespace(1)
		h.roundTrip(ns, 0, 4096)
		i := h.c.Inject(pcietest.Rule{Action: a, Count: 1})
		h.roundTrip(ns, 4096, 8192)
		if i.Hits() != 1 {
			t.Errorf("action %d: %d hits", a, i.Hits())
		}
		h.clean()
	}
}

// TestAbort: a command that the controller sits on is aborted, without a reset.
func TestAbort(t *testing.T) {
	h, err := open(t, pcietest.Config{}, nvme.Config{IOTimeout: time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ns := h.namespace(1)
	h.roundTrip(ns, 0, 4096)
	resets := h.c.Stats().Resets
	i := h.c.Inject(pcietest.Rule{Action: pcietest.Hold, Count: 1})
	if err := ns.Flush(testContext(t)); err != nil && !errors.Is(err, nvme.StatusAbortRequested) {
		t.Error(err)
	}
	h.roundTrip(ns, 0, 4096)
	if n := h.c.Stats().Resets - resets; n != 0 || i.Hits() != 1 {
		t.Errorf("%d resets, %d hits", n, i.Hits())
	}
	h.clean()
}

// TestNamespacesChange: namespaces come and go while the controller is in use.
func TestNamespacesChange(t *testing.T) {
	h := mustOpen(t, pcietest.Config{})
	id, err := h.c.AddNamespace(pcietest.NamespaceConfig{Size: 1 << 20, BlockSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	var ns *nvme.Namespace
	for ns == nil {
		if ns, err = h.n.Namespace(ctx, id); err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			ns = nil
			time.Sleep(time.Millisecond)
		}
	}
	h.roundTrip(ns, 4096, 64<<10)
	if err := h.c.RemoveNamespace(id); err != nil {
		t.Fatal(err)
	}
	for !ns.Gone() {
		if ctx.Err() != nil {
			t.Fatal("the namespace is not gone")
		}
		time.Sleep(time.Millisecond)
	}
	h.clean()
}
