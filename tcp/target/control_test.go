package target_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// TestZeroConfig uses a target without configuring anything.
func TestZeroConfig(t *testing.T) {
	l := newLab(t, target.Config{})
	admin := l.admin(connectOptions{nqn: target.DefaultNQN})
	q := admin.queue(connectOptions{nqn: target.DefaultNQN}, pdu.ICReqFields{})
	q.ok(q.do(write(target.DefaultSize/512-1, 1), pattern(1, 512)))
	got, _ := q.in(read(target.DefaultSize/512-1, 1), 512)
	same(t, "data", got, pattern(1, 512))
	if a, want := l.target.Address(""), "trtype:tcp traddr:127.0.0.1 trsvcid:"; len(a) < len(want) || a[:len(want)] != want {
		t.Errorf("address %q", a)
	}
}

// TestStopRestart stops a target and starts it again at the same address.
func TestStopRestart(t *testing.T) {
	l := newLabOn(t, oneNamespace(backend.NewHeap(1<<20)), 2)
	if err := l.target.Start(l.pollers...); !errors.Is(err, target.ErrState) {
		t.Errorf("second Start: %v", err)
	}
	if err := l.target.Restart(); !errors.Is(err, target.ErrState) {
		t.Errorf("Restart of a running target: %v", err)
	}
	addr := l.target.Addr()
	for i := range 3 {
		admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
		if i > 0 {
			got, _ := q.in(read(0, 1), 512)
			same(t, "data", got, pattern(byte(i-1), 512))
		}
		q.ok(q.do(write(0, 1), pattern(byte(i), 512)))
		must(t, l.target.Stop())
		if err := l.target.Stop(); !errors.Is(err, target.ErrState) {
			t.Errorf("second Stop: %v", err)
		}
		admin.closed()
		q.closed()
		must(t, l.target.Restart())
		if l.target.Addr() != addr {
			t.Fatalf("address %v, was %v", l.target.Addr(), addr)
		}
	}
}

// TestPausePort takes one of two ports down and up again.
func TestPausePort(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Ports = []target.PortConfig{{}, {}}
	l := newLab(t, cfg)
	ports := l.target.Ports()
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	other := l.adminAt(ports[1], connectOptions{}, pdu.ICReqFields{})
	if err := ports[0].Resume(); !errors.Is(err, target.ErrState) {
		t.Errorf("Resume of a port that listens: %v", err)
	}
	ports[0].Pause()
	admin.closed()
	q.closed()
	other.property(nvme.RegVS)
	must(t, ports[0].Resume())
	admin = l.admin(connectOptions{})
	if n := ports[0].Kill(); n != 1 {
		t.Errorf("%d connections killed", n)
	}
	admin.closed()
	ports[1].Remove()
	ports[1].Remove()
	other.closed()
	if err := ports[1].Resume(); !errors.Is(err, target.ErrState) {
		t.Errorf("Resume of a removed port: %v", err)
	}
	l.admin(connectOptions{})
}

// TestKill ends queues and controllers.
func TestKill(t *testing.T) {
	l := newLabOn(t, oneNamespace(backend.NewHeap(1<<20)), 2)
	sub := l.subsystem()
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	if sub.KillQueue(admin.ctrl, 9) || sub.KillQueue(99, 0) || sub.KillController(99) {
		t.Error("killed what is not there")
	}
	if !sub.KillQueue(admin.ctrl, 1) {
		t.Error("queue 1 not found")
	}
	q.closed()
	admin.property(nvme.RegVS)
	q = admin.queue(connectOptions{}, pdu.ICReqFields{})
	if !sub.KillController(admin.ctrl) {
		t.Error("controller not found")
	}
	admin.closed()
	q.closed()
	admin, q = l.io(connectOptions{}, pdu.ICReqFields{})
	sub.KillQueue(admin.ctrl, 0)
	admin.closed()
	q.closed()
}

// TestSpread connects queues to a target on two pollers, which get one each.
func TestSpread(t *testing.T) {
	l := newLabOn(t, oneNamespace(backend.NewHeap(1<<20)), 2)
	var queues []*host
	for range 2 {
		admin := l.admin(connectOptions{})
		for qid := range uint16(2) {
			queues = append(queues, admin.queue(connectOptions{qid: qid + 1}, pdu.ICReqFields{}))
		}
	}
	for i, q := range queues {
		q.ok(q.do(write(uint64(i), 1), pattern(byte(i), 512)))
	}
	// With one poller at rest, half of the queues are.
	served := 0
	for _, q := range queues {
		q.post(read(0, 1), nil, 512)
	}
	for range 50 {
		l.now += 1000
		l.pollers[0].Poll(l.now)
	}
	l.now += 2e6
	l.pollers[0].Poll(l.now)
	served = int(l.subsystem().Stats().Reads)
	if served != 2 {
		t.Errorf("one poller serves %d of 4 queues", served)
	}
	for _, q := range queues {
		got, cpl := q.collect(q.cid, 512)
		q.ok(cpl)
		same(t, "data", got, pattern(0, 512))
	}
}

// TestIPv6 listens at all addresses, and advertises the one that a host has
// used.
func TestIPv6(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Ports = []target.PortConfig{{Address: netip.MustParseAddrPort("[::]:0")}}
	l := newLab(t, cfg)
	p := l.target.Ports()[0]
	h := l.dialAddr(netip.AddrPortFrom(netip.IPv6Loopback(), p.Addr().Port()))
	h.initialise(pdu.ICReqFields{})
	h.ok(h.connect(connectOptions{nqn: nvme.DiscoveryNQN}))
	h.setCC(enabled)
	b, cpl := h.log(nvme.GetLogPageCommand{LID: nvme.LogDiscovery, Length: 3072})
	h.ok(cpl)
	var log nvme.DiscoveryLog
	must(t, log.UnmarshalBinary(b))
	if e := log.Entries[1]; e.ADRFAM != nvme.ADRFamIPv6 || e.TransportAddress() != "::1" {
		t.Errorf("%v %s", e.ADRFAM, e.TransportAddress())
	}
}

// TestAddressTaken starts a target where another one listens.
func TestAddressTaken(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewHeap(1<<20)))
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Ports = []target.PortConfig{{}, {Address: l.target.Addr()}}
	other, err := target.New(cfg)
	must(t, err)
	if err := other.Start(l.pollers...); err == nil {
		t.Error("started")
	}
	must(t, other.Close())
	if err := other.Start(l.pollers...); !errors.Is(err, target.ErrState) {
		t.Errorf("Start after Close: %v", err)
	}
	if _, err := l.target.AddPort(target.PortConfig{Address: l.target.Addr()}); err == nil {
		t.Error("second port at the same address")
	}
	if _, err := l.target.AddPort(target.PortConfig{ID: l.target.Ports()[0].ID()}); !errors.Is(err, target.ErrExists) {
		t.Errorf("second port of the same identifier: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	null := backend.NewNull(1 << 20)
	for name, cfg := range map[string]target.Config{
		"NQN":                {Subsystems: []target.SubsystemConfig{{}}},
		"discovery NQN":      {Subsystems: []target.SubsystemConfig{{NQN: nvme.DiscoveryNQN}}},
		"same NQN":           {Subsystems: []target.SubsystemConfig{{NQN: nqn}, {NQN: nqn}}},
		"MDTS":               {Subsystems: []target.SubsystemConfig{{NQN: nqn, MaxTransfer: 5000}}},
		"queue entries":      {Subsystems: []target.SubsystemConfig{{NQN: nqn, QueueEntries: 1}}},
		"controllers":        {Subsystems: []target.SubsystemConfig{{NQN: nqn, FirstController: 0xfff0}}},
		"CQT":                {Subsystems: []target.SubsystemConfig{{NQN: nqn, QuiesceTime: 1e12}}},
		"KAS":                {Subsystems: []target.SubsystemConfig{{NQN: nqn, KeepAlive: target.KeepAlive{Granularity: 1}}}},
		"no backend":         {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{}}}}},
		"block size":         {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: null, BlockSize: 520}}}}},
		"no blocks":          {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: backend.NewNull(100)}}}}},
		"NSID":               {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: null, NSID: 2000}}}}},
		"same NSID":          {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: null, NSID: 1}, {Backend: null, NSID: 1}}}}},
		"too many":           {Subsystems: []target.SubsystemConfig{{NQN: nqn, MaxNamespaces: 1, Namespaces: []target.NamespaceConfig{{Backend: null}, {Backend: null}}}}},
		"ANA group":          {Subsystems: []target.SubsystemConfig{{NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: null, ANAGroup: 99}}}}},
		"ANA state":          {Ports: []target.PortConfig{{ANA: map[uint32]nvme.ANAState{1: 9}}}},
		"in-capsule data":    {Transport: target.Transport{InCapsule: 17}},
		"MAXH2CDATA":         {Transport: target.Transport{MaxH2CData: 4095}},
		"C2HData":            {Transport: target.Transport{MaxC2HData: 3}},
		"R2T":                {Transport: target.Transport{MaxR2T: 99}},
		"R2T length":         {Transport: target.Transport{R2TLength: 5}},
		"CPDA":               {Transport: target.Transport{CPDA: 32}},
		"digest":             {Transport: target.Transport{DataDigest: 9}},
		"staging":            {Transport: target.Transport{Staging: 100}},
		"referral":           {Referrals: []target.Referral{{}}},
		"backlog":            {Ports: []target.PortConfig{{Backlog: -1}}},
		"host NQN":           {Subsystems: []target.SubsystemConfig{{NQN: nqn, Hosts: []string{""}}}},
		"transition time":    {Subsystems: []target.SubsystemConfig{{NQN: nqn, TransitionTime: 1e12}}},
		"socket buffers":     {Transport: target.Transport{SendBuffer: -1}},
		"I/O queues":         {Subsystems: []target.SubsystemConfig{{NQN: nqn, IOQueues: 1 << 16}}},
		"namespaces":         {Subsystems: []target.SubsystemConfig{{NQN: nqn, MaxNamespaces: -1}}},
		"keep alive timeout": {Subsystems: []target.SubsystemConfig{{NQN: nqn, KeepAlive: target.KeepAlive{Max: -1}}}},
	} {
		if _, err := target.New(cfg); !errors.Is(err, target.ErrConfig) && !errors.Is(err, target.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tgt, err := target.New(target.Config{})
	must(t, err)
	if err := tgt.Start(); !errors.Is(err, target.ErrConfig) {
		t.Errorf("no pollers: %v", err)
	}
	must(t, tgt.Close())
	must(t, tgt.Close())
	if _, err := tgt.AddPort(target.PortConfig{}); !errors.Is(err, target.ErrClosed) {
		t.Errorf("AddPort after Close: %v", err)
	}
	if _, err := tgt.AddSubsystem(target.SubsystemConfig{NQN: nqn}); !errors.Is(err, target.ErrClosed) {
		t.Errorf("AddSubsystem after Close: %v", err)
	}
}

// TestRunning drives a target on running pollers, that sleep when there is
// nothing to do, from several goroutines, and changes it under them.
func TestRunning(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Subsystems[0].Namespaces = append(cfg.Subsystems[0].Namespaces,
		target.NamespaceConfig{NSID: 2, Backend: backend.NewLatency(backend.NewHeap(1<<20), 1e5)})
	tgt, err := target.New(cfg)
	must(t, err)
	var pollers []*poller.Poller
	for range 2 {
		p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
		must(t, err)
		must(t, p.Start())
		pollers = append(pollers, p)
	}
	must(t, tgt.Start(pollers...))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { hammer(t, tgt, i) })
	}
	sub := tgt.Subsystem("")
	for i := range 20 {
		n, err := sub.AddNamespace(target.NamespaceConfig{NSID: 9, Backend: backend.NewNull(1 << 20)})
		must(t, err)
		must(t, tgt.Ports()[0].SetANA(9, nvme.ANAState(1+i%2)))
		sub.Stats()
		sub.Controllers()
		n.Remove()
	}
	wg.Wait()
	must(t, tgt.Close())
	for _, p := range pollers {
		must(t, p.Close())
	}
}

// hammer is one host with an association of its own, on its own blocks.
func hammer(t *testing.T, tgt *target.Target, i int) {
	l := &lab{t: t, target: tgt}
	admin := l.adminOf(tgt)
	defer admin.close()
	q := admin.queue(connectOptions{}, pdu.ICReqFields{DDGST: i%2 == 0})
	defer q.close()
	for round := range byte(10) {
		data := pattern(round, 8*512)
		w, r := write(uint64(i)*8, 8), read(uint64(i)*8, 8)
		w.NSID, r.NSID = 1+uint32(round%2), 1+uint32(round%2)
		q.ok(q.do(w, data))
		got, cpl := q.in(r, len(data))
		q.ok(cpl)
		same(t, "data", got, data)
	}
	admin.property(nvme.RegCSTS)
}
