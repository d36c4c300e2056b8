//go:build guest

package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
)

// busy is a controller with a verifying load on two queues.
type busy struct {
	*host
	ns    *nvme.Namespace
	loads []*load
}

// work connects to the first port of e and begins to work on its namespace 1.
func (e *exported) work(t *testing.T, cfg nvme.Config, tolerate func(error) bool) *busy {
	t.Helper()
	return workAt(t, address(e.ports[0], e.sub.NQN()), cfg, tolerate)
}

func workAt(t *testing.T, addr string, cfg nvme.Config, tolerate func(error) bool) *busy {
	t.Helper()
	cfg.IOQueues = 3
	b := &busy{host: open(t, addr, cfg)}
	b.ns = b.namespace(t, 1)
	models := share(2, int(b.ns.Size()), b.ns.BlockSize())
	for i, p := range []*poller.Poller{newPoller(t, "p0"), newPoller(t, "p1")} {
		s := shape{blocks: []uint64{1, 7, 8, 16, 33}, depth: 16, vector: i == 1, tolerate: tolerate}
		b.loads = append(b.loads, startLoad(t, b.queue(t, 1, p), models[i], s, uint64(i)))
	}
	b.progress(t)
	return b
}

// progress waits until much has been done on each queue.
func (b *busy) progress(t *testing.T) {
	t.Helper()
	for _, l := range b.loads {
		l.progress(t, 200)
	}
}

// finish ends the loads, in which nothing may have failed, and reads back all
// that was acknowledged.
func (b *busy) finish(t *testing.T) {
	t.Helper()
	for _, l := range b.loads {
		l.stop()
	}
	for _, l := range b.loads {
		l.wait(t)
		readBack(t, b.ns, l.m)
	}
}

// testRestart has the target go and come back in several ways, under a load of
// which nothing may fail.
func testRestart(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 8}})
	b := e.work(t, nvme.Config{}, nil)
	live := 1
	down := func(what string, begin, end func()) {
		t.Helper()
		begin()
		b.rec.waitCount(t, nvme.StateConnecting, live)
		b.rec.wait(t, what+": a failed attempt", func() bool {
			n := len(b.rec.attempts)
			return n > 0 && b.rec.attempts[n-1] != nil
		})
		end()
		live++
		b.rec.waitCount(t, nvme.StateLive, live)
		b.progress(t)
	}
	down("port stopped", func() { check(t, e.ports[0].Stop(ctx)) }, func() { check(t, e.ports[0].Start(ctx)) })
	down("port removed", func() { check(t, e.ports[0].Remove(ctx)) }, func() {
		var err error
		e.ports[0], err = k.tgt.AddPort(ctx, nvmet.PortConfig{
			ID: e.ports[0].ID(), Trsvcid: e.ports[0].Trsvcid(), InlineData: 4096, Subsystems: []*nvmet.Subsystem{e.sub},
		})
		check(t, err)
	})
	// QEMU still listens, so that connections come about and end at once.
	down("subsystem unlinked", func() { check(t, e.ports[0].Unlink(ctx, e.sub)) }, func() { check(t, e.ports[0].Link(ctx, e.sub)) })
	check(t, b.Reset(ctx))
	live++
	b.rec.waitCount(t, nvme.StateLive, live)
	b.progress(t)
	b.finish(t)
	// A port that has other subsystems says that there is no such one, and that
	// there is no use in trying again.
	other := k.export(t, nil)
	check(t, e.ports[0].Link(ctx, other.sub))
	t.Cleanup(func() { check(t, e.ports[0].Unlink(context.Background(), other.sub)) })
	check(t, e.ports[0].Unlink(ctx, e.sub))
	b.rec.waitCount(t, nvme.StateDead, 1)
	_, err := b.ns.ReadAt(make([]byte, 512), 0)
	if !errors.Is(err, nvme.ErrDead) || !errors.Is(err, nvme.StatusConnectInvalidParameters) {
		t.Errorf("read after the subsystem has left the port: %v", err)
	}
}

// testCuts has connections end wherever in a PDU they are, at first one by one
// and then all of them again and again, also while they are made.
func testCuts(t *testing.T, k *kernelTarget) {
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.Loop{MiB: 8}})
	r := newRelay(t, e.ports[0].HostAddr(), server)
	b := workAt(t, fmt.Sprintf("trtype:tcp traddr:127.0.0.1 trsvcid:%d subnqn:%s", r.port(), e.sub.NQN()),
		nvme.Config{Retries: 255, ReconnectDelay: 20 * time.Millisecond, Transport: tcp.Config{DataDigest: true}}, nil)
	for live := 2; live < 7; live++ {
		r.cut()
		b.rec.waitCount(t, nvme.StateLive, live)
		b.progress(t)
	}
	r.limit(1 << 20)
	r.cut()
	ended := r.ended()
	eventually(t, "many cuts", func() bool { return r.ended() > ended+40 })
	r.limit(0)
	for range 3 { // those that are still limited go, too
		b.progress(t)
	}
	b.finish(t)
}

// notLive says whether an error is of those that commands fail with while the
// controller is away.
func notLive(err error) bool {
	return errors.Is(err, nvme.StatusHostPathError) || errors.Is(err, nvme.ErrNotLive) || errors.Is(err, nvme.ErrDead)
}

// testFastFail lets commands fail soon after a loss while reconnects go on.
func testFastFail(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 8}})
	b := e.work(t, nvme.Config{FastIOFailTimeout: 300 * time.Millisecond, CtrlLossTimeout: nvme.Forever}, notLive)
	for live := 2; live < 4; live++ {
		check(t, e.ports[0].Stop(ctx))
		for _, l := range b.loads {
			l.failures(t, 50)
		}
		// The first time, the queue of the blocking calls is not even open.
		if _, err := b.ns.ReadAt(make([]byte, 512), 0); !notLive(err) {
			t.Errorf("read while the controller is away: %v", err)
		}
		check(t, e.ports[0].Start(ctx))
		b.rec.waitCount(t, nvme.StateLive, live)
		b.progress(t)
		_, err := b.ns.ReadAt(make([]byte, 512), 0)
		check(t, err)
	}
	b.finish(t)
}

// testCtrlLoss gives a controller up that does not come back.
func testCtrlLoss(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 8}})
	b := e.work(t, nvme.Config{CtrlLossTimeout: time.Second}, notLive)
	check(t, e.ports[0].Stop(ctx))
	// Until then, commands wait.
	b.rec.waitCount(t, nvme.StateConnecting, 1)
	waiting := make(chan error, 1)
	go func() {
		_, err := b.ns.ReadAt(make([]byte, 512), 0)
		waiting <- err
	}()
	b.rec.waitCount(t, nvme.StateDead, 1)
	if err := <-waiting; !notLive(err) {
		t.Errorf("read that waited: %v", err)
	}
	if n := len(b.rec.attempts); n < 2 {
		t.Errorf("%d attempts to reconnect", n)
	}
	if _, err := b.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, nvme.ErrDead) {
		t.Errorf("read: %v", err)
	}
	if _, err := b.ActiveNamespaces(ctx); !errors.Is(err, nvme.ErrDead) {
		t.Errorf("admin command: %v", err)
	}
	for _, l := range b.loads {
		l.failures(t, 1)
		l.stop()
		l.wait(t)
	}
	// What was acknowledged is there when somebody comes who can look.
	check(t, e.ports[0].Start(ctx))
	later := e.connect(t, 0, nvme.Config{})
	for _, l := range b.loads {
		readBack(t, later.namespace(t, 1), l.m)
	}
}

// testStall stops the guest for a while, with all that is in it.
func testStall(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 8}})
	// The one notices by its commands, the other, which is idle, by its keep-alive.
	short := 3 * time.Second // of attempts to connect
	b := e.work(t, nvme.Config{IOTimeout: time.Second, ConnectTimeout: short}, nil)
	idle := e.connect(t, 0, nvme.Config{KeepAlive: 2 * time.Second, IOTimeout: nvme.Forever, ConnectTimeout: short})
	idle.namespace(t, 1)
	check(t, k.g.QMP().Execute(ctx, "stop", nil, nil))
	for _, h := range []*host{b.host, idle} {
		h.rec.waitCount(t, nvme.StateConnecting, 1)
		h.rec.wait(t, "a failed attempt", func() bool { return len(h.rec.attempts) > 0 })
	}
	check(t, k.g.QMP().Execute(ctx, "cont", nil, nil))
	for _, h := range []*host{b.host, idle} {
		eventually(t, "the connection", func() bool { return h.State() == nvme.StateLive })
	}
	b.progress(t)
	b.finish(t)
	b.rec.mu.Lock()
	if len(b.rec.actions) < 2 || b.rec.actions[0] != "abort" {
		t.Errorf("overdue commands led to %q", b.rec.actions)
	}
	b.rec.mu.Unlock()
	_, err := idle.namespace(t, 1).ReadAt(make([]byte, 512), 0)
	check(t, err)
}
