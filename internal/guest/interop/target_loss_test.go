//go:build guest

package interop

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// testFailover takes one path after the other from a load.
func testFailover(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	check(t, nvmehost.SetIOPolicy(ctx, k.g, s.sub.NQN(), nvmehost.PolicyRoundRobin))
	dev := s.device(t, 1)
	w := k.work(t, dev)
	w.progress(t)
	for i, p := range s.ports {
		// Connections are cut, and come again.
		if n := p.Kill(); n != 3 {
			t.Errorf("port %d had %d connections", i, n)
		}
		w.progress(t)
		check(t, c[i].WaitState(ctx, nvmehost.Live))
		check(t, c[i].WaitANA(ctx, 1, nvme.ANAOptimized.String()))
		// The port is away for a while.
		p.Pause()
		check(t, c[i].WaitState(ctx, nvmehost.Connecting))
		w.progress(t)
		check(t, p.Resume())
		check(t, c[i].WaitState(ctx, nvmehost.Live))
		check(t, c[i].WaitANA(ctx, 1, nvme.ANAOptimized.String()))
		// The port cannot serve the group.
		check(t, p.SetANA(1, nvme.ANAInaccessible))
		check(t, c[i].WaitANA(ctx, 1, nvme.ANAInaccessible.String()))
		w.progress(t)
		check(t, p.SetANA(1, nvme.ANAOptimized))
		check(t, c[i].WaitANA(ctx, 1, nvme.ANAOptimized.String()))
		w.progress(t)
	}
	// A single queue is cut.
	ctrl := s.sub.Controllers()[0]
	if !s.sub.KillQueue(ctrl.ID, ctrl.Queues[0]) {
		t.Error("no such queue")
	}
	w.progress(t)
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelCuts has connections end wherever in a PDU they are, at first one by
// one and then all of them again and again, also while they are made.
func testKernelCuts(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	r := newRelay(t, s.ports[0].Addr().String(), client)
	cfg := s.options(0, nvmehost.ConnectConfig{HeaderDigest: true, DataDigest: true})
	cfg.Trsvcid = r.port()
	c, err := nvmehost.Connect(ctx, k.g, cfg)
	check(t, err)
	t.Cleanup(func() { check(t, c.Disconnect(context.Background())) })
	dev := s.device(t, 1)
	w := k.work(t, dev)
	for range 3 {
		w.progress(t)
		r.cut()
		w.progress(t)
	}
	r.limit(1 << 20)
	r.cut()
	ended := r.ended()
	eventually(t, "many cuts", func() bool { return r.ended() > ended+9 })
	r.limit(0)
	for range 3 {
		w.progress(t)
	}
	check(t, c.WaitState(ctx, nvmehost.Live))
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelRestart stops the target and starts it again.
func testKernelRestart(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	dev := s.device(t, 1)
	w := k.work(t, dev)
	for range 2 {
		w.progress(t)
		check(t, s.target.Stop())
		for i := range c {
			check(t, c[i].WaitState(ctx, nvmehost.Connecting))
		}
		check(t, s.target.Restart())
		for i := range c {
			check(t, c[i].WaitState(ctx, nvmehost.Live))
		}
		w.progress(t)
	}
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelReset has the kernel reset the controllers under load.
func testKernelReset(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	dev := s.device(t, 1)
	w := k.work(t, dev)
	for i := range c {
		w.progress(t)
		check(t, c[i].Reset(ctx))
		check(t, c[i].WaitState(ctx, nvmehost.Live))
		check(t, c[i].Rescan(ctx))
	}
	w.progress(t)
	check(t, c[0].Disconnect(ctx))
	w.progress(t)
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelStall holds commands in the backend until the kernel loses patience.
func testKernelStall(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	m, err := backend.NewMemory(backend.MemoryConfig{Size: 16 << 20})
	check(t, err)
	slow := backend.NewLatency(m, 0)
	stall := backend.NewStall(slow)
	s := k.serve(t, target.SubsystemConfig{Namespaces: []target.NamespaceConfig{{Backend: stall}}}, target.Transport{})
	const timeout = "/sys/module/nvme_core/parameters/io_timeout"
	usual, err := k.g.ReadAttr(ctx, timeout)
	check(t, err)
	check(t, k.g.WriteFile(ctx, timeout, "3"))
	defer k.g.WriteFile(ctx, timeout, usual)
	c := s.connect(t, 0, nvmehost.ConnectConfig{})
	dev := s.device(t, 1)
	w := k.work(t, dev)
	w.progress(t)
	slow.Set(20 * time.Millisecond)
	w.progress(t)
	stall.Stop()
	eventually(t, "commands that wait", func() bool { return stall.Waiting() > 0 })
	check(t, c.WaitInfo(ctx, "being reset", func(i nvmehost.ControllerInfo) bool { return i.State != nvmehost.Live }))
	stall.Resume()
	check(t, c.WaitState(ctx, nvmehost.Live))
	slow.Set(0)
	w.progress(t)
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelLink pulls the cable of one path, which both sides notice by their
// keep-alive timers.
func testKernelLink(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{KeepAlive: 2 * time.Second})
	dev := s.device(t, 1)
	w := k.work(t, dev)
	w.progress(t)
	check(t, k.g.SetLink(ctx, 1, false))
	check(t, c[1].WaitState(ctx, nvmehost.Connecting))
	eventually(t, "the target to miss the host", func() bool { return len(s.sub.Controllers()) == 1 })
	w.progress(t)
	check(t, k.g.SetLink(ctx, 1, true))
	check(t, c[1].WaitState(ctx, nvmehost.Live))
	w.progress(t)
	w.stop(t)
	s.sameAsHost(t, dev)
}

// testKernelRefused has the kernel ask for what it does not get.
func testKernelRefused(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	refused := func(name string, c nvmehost.ConnectConfig, want syscall.Errno) {
		t.Helper()
		if _, err := nvmehost.Connect(ctx, k.g, c); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	wrong := s.options(0, nvmehost.ConnectConfig{NQN: "nqn.2014-08.org.qpoll:wrong"})
	refused("wrong NQN", wrong, syscall.EIO)
	check(t, s.sub.SetHosts([]string{"nqn.2014-08.org.qpoll:host:other"}))
	refused("host not allowed", s.options(0, nvmehost.ConnectConfig{}), syscall.EIO)
	check(t, s.sub.SetHosts([]string{hostNQN}))
	c := s.connect(t, 0, nvmehost.ConnectConfig{})
	s.copyAndCompare(t, s.device(t, 1))
	check(t, c.Disconnect(ctx))
	var reasons []string
	s.mu.Lock()
	for _, err := range s.refused {
		reasons = append(reasons, err.Error())
	}
	s.mu.Unlock()
	if len(reasons) != 2 || !strings.Contains(reasons[0], "wrong") || !strings.Contains(reasons[1], hostNQN) {
		t.Errorf("the target has refused %q", reasons)
	}
}

// idle connects with a short keep-alive timeout, and returns a test that this
// connection has lived all the while.
func (k *kernelHost) idle(t *testing.T) func(*testing.T, *kernelHost) {
	const kato = 4 * time.Second
	s := k.simple(t)
	c := s.connect(t, 0, nvmehost.ConnectConfig{KeepAlive: kato})
	since := time.Now()
	return func(t *testing.T, _ *kernelHost) {
		time.Sleep(time.Until(since.Add(3 * kato)))
		check(t, c.WaitState(t.Context(), nvmehost.Live))
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.ended) > 0 {
			t.Errorf("queues have ended: %v", s.ended)
		}
	}
}
