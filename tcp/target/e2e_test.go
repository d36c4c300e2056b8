package target_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// running is a target on pollers that run by themselves, and a controller that
// our own initiator has there.
type running struct {
	target *target.Target
	ctrl   *nvme.Controller
	ns     *nvme.Namespace
	ctx    context.Context
}

// run starts a target and connects to it.
func run(t *testing.T, cfg target.Config, host *nvme.Config) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	r := &running{ctx: ctx}
	var pollers []*poller.Poller
	for range 2 {
		p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
		must(t, err)
		must(t, p.Start())
		pollers = append(pollers, p)
	}
	var err error
	r.target, err = target.New(cfg)
	must(t, err)
	must(t, r.target.Start(pollers...))
	r.ctrl, err = nvme.Open(ctx, r.target.Address(""), host)
	must(t, err)
	r.ns, err = r.ctrl.Namespace(ctx, 1)
	must(t, err)
	t.Cleanup(func() {
		must(t, r.ctrl.Close(ctx))
		must(t, r.target.Close())
		for _, p := range pollers {
			must(t, p.Close())
		}
		cancel()
	})
	return r
}

// exercise writes and reads pieces of random length at random offsets, and
// compares with what was written.
func (r *running) exercise(t *testing.T, rounds int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(7, 8))
	bs, size := r.ns.BlockSize(), int(r.ns.Size())
	blocks := size / bs
	span := func(most int) (off, n int) {
		n = 1 + rnd.IntN(min(most/bs, blocks))
		return rnd.IntN(blocks-n+1) * bs, n * bs
	}
	want := make([]byte, size)
	for i := range rounds {
		most := 24 << 10
		if i%8 == 0 {
			most = size
		}
		off, n := span(most)
		data := pattern(byte(i), n)
		_, err := r.ns.WriteAtContext(r.ctx, data, int64(off))
		must(t, err)
		copy(want[off:], data)
		off, n = span(32 << 10)
		got := make([]byte, n)
		_, err = r.ns.ReadAtContext(r.ctx, got, int64(off))
		must(t, err)
		same(t, "data", got, want[off:off+n])
	}
	must(t, r.ns.Flush(r.ctx))
	got := make([]byte, size)
	_, err := r.ns.ReadAtContext(r.ctx, got, 0)
	must(t, err)
	same(t, "everything", got, want)
}

// TestInitiator has our own initiator as the host, over all kinds of
// connections.
func TestInitiator(t *testing.T) {
	for _, c := range []struct {
		name string
		tr   target.Transport
		host tcp.Config
		bs   uint32
		mdts uint32
	}{
		{name: "plain"},
		{name: "digests", host: tcp.Config{HeaderDigest: true, DataDigest: true}},
		{name: "flow control", host: tcp.Config{SQFlowControl: true, DataDigest: true}},
		{name: "pieces", tr: target.Transport{MaxH2CData: 4096, R2TLength: 12288, MaxR2T: 4, MaxC2HData: 8192, InCapsule: 512, CPDA: 15},
			host: tcp.Config{HPDA: 7, MaxR2T: 4, HeaderDigest: true}, mdts: 64 << 10},
		{name: "4 KiB blocks", bs: 4096, tr: target.Transport{InCapsule: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := oneNamespace(backend.NewHeap(2 << 20))
			cfg.Transport = c.tr
			cfg.Subsystems[0].MaxTransfer = c.mdts
			cfg.Subsystems[0].Namespaces[0].BlockSize = c.bs
			run(t, cfg, &nvme.Config{Transport: c.host}).exercise(t, 100)
		})
	}
}

// TestInitiatorReconnects stops and restarts the target while the initiator
// works, through a backend that holds commands for a while.
func TestInitiatorReconnects(t *testing.T) {
	cfg := oneNamespace(backend.NewLatency(backend.NewHeap(256<<10), 200*time.Microsecond))
	r := run(t, cfg, &nvme.Config{ReconnectDelay: 10 * time.Millisecond})
	r.exercise(t, 1) // which connects the queue
	for range 8 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(2 * time.Millisecond) // somewhere within the exercise
			if err := r.target.Stop(); err != nil {
				t.Error(err)
			}
			if err := r.target.Restart(); err != nil {
				t.Error(err)
			}
		}()
		r.exercise(t, 10)
		<-done
	}
}

// TestInitiatorLetsTargetQuiesce loses the connection while a write is held in the
// backend, where it is executed later although its association has ended. It must
// not undo what is written after it was sent again.
func TestInitiatorLetsTargetQuiesce(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	slow := backend.NewLatency(backend.NewHeap(1<<20), 0)
	slow.SetDistribution(func(op *backend.Op, _ *rand.Rand) time.Duration {
		if op.Kind == backend.Write && held.CompareAndSwap(false, true) {
			return 200 * time.Millisecond
		}
		return 0
	})
	cfg := oneNamespace(slow)
	cfg.Subsystems[0].QuiesceTime = 3 * time.Second // far more than even a slow machine holds it
	r := run(t, cfg, &nvme.Config{ReconnectDelay: time.Millisecond})
	first := make(chan error, 1)
	go func() {
		_, err := r.ns.WriteAt(pattern(1, 512), 0)
		first <- err
	}()
	for !held.Load() {
		time.Sleep(time.Millisecond)
	}
	sub := r.target.Subsystem("")
	if n := sub.KillHost(sub.Controllers()[0].Host); n != 1 {
		t.Fatalf("%d controllers", n)
	}
	must(t, <-first)
	_, err := r.ns.WriteAt(pattern(2, 512), 0)
	must(t, err)
	time.Sleep(400 * time.Millisecond) // until what was held is over, in any case
	got := make([]byte, 512)
	_, err = r.ns.ReadAt(got, 0)
	must(t, err)
	same(t, "the later write", got, pattern(2, 512))
}

// TestInitiatorSeesChanges has the initiator told of what happens to
// namespaces and their ANA states.
func TestInitiatorSeesChanges(t *testing.T) {
	namespaces := make(chan []uint32, 10)
	ana := make(chan *nvme.ANALog, 10)
	host := &nvme.Config{Events: &nvme.Events{
		NamespacesChanged: func(_ *nvme.Controller, nsids []uint32) { namespaces <- nsids },
		ANAChanged:        func(_ *nvme.Controller, log *nvme.ANALog) { ana <- log },
	}}
	m, err := backend.NewMemory(backend.MemoryConfig{Size: 1 << 20, MaxSize: 2 << 20})
	must(t, err)
	r := run(t, oneNamespace(m), host)
	sub := r.target.Subsystem("")
	must(t, sub.Namespace(1).Resize(2<<20))
	if got := <-namespaces; len(got) != 1 || got[0] != 1 {
		t.Errorf("changed namespaces %v", got)
	}
	if got := r.ns.Size(); got != 2<<20 {
		t.Errorf("size %d", got)
	}
	must(t, r.target.Ports()[0].SetANA(1, nvme.ANANonOptimized))
	if log := <-ana; len(log.Groups) != 1 || log.Groups[0].State != nvme.ANANonOptimized {
		t.Errorf("ANA log %+v", log)
	}
	must(t, sub.Namespace(1).SetANAGroup(3))
	if log := <-ana; len(log.Groups) != 1 || log.Groups[0].ID != 3 || r.ns.ANAGroup() != 3 {
		t.Errorf("ANA log %+v, group %d", log, r.ns.ANAGroup())
	}
	r.exercise(t, 20)
	log, err := r.ctrl.DiscoveryLog(r.ctx)
	if err == nil {
		t.Errorf("an I/O controller has a discovery log: %+v", log)
	}
	disc, err := nvme.Open(r.ctx, r.target.DiscoveryAddress(), nil)
	must(t, err)
	log, err = disc.DiscoveryLog(r.ctx)
	must(t, err)
	if len(log.Entries) != 2 {
		t.Errorf("%d entries", len(log.Entries))
	}
	must(t, disc.Close(r.ctx))
}

// TestInitiatorDiscovers follows a referral, connects to what it has found, and
// stays with the discovery service to be told of changes.
func TestInitiatorDiscovers(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Subsystems[0].NQN = nqn + ":far"
	far := run(t, cfg, nil)
	cfg = oneNamespace(backend.NewHeap(1 << 20))
	cfg.Referrals = []target.Referral{{Address: far.target.Addr()}}
	near := run(t, cfg, nil)
	// In a circle, which is not to be followed for ever.
	must(t, far.target.SetReferrals([]target.Referral{{Address: near.target.Addr()}}))
	ctx := near.ctx
	found, err := nvme.Discover(ctx, fmt.Sprintf("trtype:tcp traddr:127.0.0.1 trsvcid:%d", near.target.Addr().Port()), nil)
	must(t, err)
	var names []string
	for _, d := range found {
		if d.Entry.SUBTYPE != nvme.SubTypeNVM {
			continue
		}
		c, err := nvme.OpenAddress(ctx, d.Addr, nil)
		must(t, err)
		ns, err := c.Namespace(ctx, 1)
		must(t, err)
		_, err = ns.ReadAt(make([]byte, 512), 0)
		must(t, err)
		must(t, c.Close(ctx))
		names = append(names, d.Addr.SubNQN)
	}
	if !slices.Equal(names, []string{nqn, nqn + ":far"}) {
		t.Errorf("found %q", names)
	}

	news := make(chan struct{}, 10)
	disc, err := nvme.Open(ctx, near.target.DiscoveryAddress(), &nvme.Config{
		Events: &nvme.Events{DiscoveryChanged: func(*nvme.Controller) { news <- struct{}{} }},
	})
	must(t, err)
	for i := range 3 {
		log, err := disc.DiscoveryLog(ctx)
		must(t, err)
		if want := 3 + i; len(log.Entries) != want { // itself, the subsystem, the referral
			t.Errorf("%d entries, want %d", len(log.Entries), want)
		}
		_, err = near.target.AddSubsystem(target.SubsystemConfig{NQN: fmt.Sprintf("%s:%d", nqn, i)})
		must(t, err)
		<-news
	}
	must(t, disc.Close(ctx))
}

// TestInitiatorAborts has a command aborted that is held for ever.
func TestInitiatorAborts(t *testing.T) {
	stall := backend.NewStall(backend.NewHeap(1 << 20))
	r := run(t, oneNamespace(stall), &nvme.Config{IOTimeout: 50 * time.Millisecond})
	stall.Stop()
	_, err := r.ns.ReadAtContext(r.ctx, make([]byte, 512), 0)
	if err == nil {
		t.Error("the read has succeeded")
	}
	stall.Resume()
	r.exercise(t, 5)
}
