package target_test

import (
	"errors"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// listen asks for events, and posts a request for one.
func (h *host) listen(events uint32) {
	h.t.Helper()
	h.ok(h.do(setFeature(nvme.FeatAsyncEventConfiguration, events), nil))
	h.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
}

// quiet fails the test if the target has sent something.
func (h *host) quiet() {
	h.t.Helper()
	for range 20 {
		h.l.step()
	}
	// A command's response comes next, and nothing before it.
	cid := h.post(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil, 0)
	if cpl := h.completion(); cpl.CID != cid {
		h.t.Fatalf("unexpected response to command %d: %v", cpl.CID, nvme.AsyncEvent(cpl.Result))
	}
}

// event receives an event.
func (h *host) event(want uint8) {
	h.t.Helper()
	e := nvme.AsyncEvent(h.ok(h.completion()).Result)
	if e.Type() != nvme.AsyncNotice || e.Info() != want {
		h.t.Fatalf("event %v, want information %#x", e, want)
	}
}

func (h *host) changedNamespaces(retain bool) []uint32 {
	h.t.Helper()
	b, cpl := h.log(nvme.GetLogPageCommand{LID: nvme.LogChangedNamespaces, Length: 4096, Retain: retain})
	h.ok(cpl)
	ids, _, err := nvme.ParseChangedNamespaces(b)
	must(h.t, err)
	return ids
}

// TestNamespaceEvents adds, resizes and removes namespaces under a host.
func TestNamespaceEvents(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewHeap(1<<20)))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	deaf := l.admin(connectOptions{})
	deaf.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
	admin.listen(nvme.AsyncConfigNamespaceAttribute)
	admin.quiet()

	sub := l.subsystem()
	big, err := backend.NewMemory(backend.MemoryConfig{Size: 1 << 20, MaxSize: 4 << 20, Heap: true})
	must(t, err)
	n, err := sub.AddNamespace(target.NamespaceConfig{NSID: 7, Backend: big})
	must(t, err)
	admin.event(nvme.NoticeNamespaceAttributeChanged)
	far := read(3000, 1)
	far.NSID = 7
	_, cpl := q.in(far, 512)
	q.is(cpl, nvme.StatusLBAOutOfRange|dnr)

	// Masked until the log page was read without retaining the event.
	admin.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
	must(t, n.Resize(2<<20))
	admin.quiet()
	if got := admin.changedNamespaces(true); len(got) != 1 || got[0] != 7 {
		t.Errorf("changed namespaces %v", got)
	}
	must(t, n.Resize(3<<20))
	admin.quiet()
	_, cpl = q.in(far, 512)
	q.ok(cpl)
	admin.changedNamespaces(false)
	if got := admin.changedNamespaces(false); len(got) != 0 {
		t.Errorf("changed namespaces %v after they were read", got)
	}
	admin.quiet()
	sub.Namespace(1).SetReadOnly(true)
	admin.event(nvme.NoticeNamespaceAttributeChanged)
	q.is(q.do(write(0, 1), make([]byte, 512)), nvme.StatusNamespaceWriteProtected|dnr)
	n.Remove()
	n.Remove()
	if got := admin.changedNamespaces(false); len(got) != 2 || got[0] != 1 || got[1] != 7 {
		t.Errorf("changed namespaces %v", got)
	}
	_, cpl = q.in(far, 512)
	q.is(cpl, nvme.StatusInvalidNamespace|dnr)
	if err := n.Resize(1 << 20); !errors.Is(err, target.ErrClosed) {
		t.Errorf("Resize of a removed namespace: %v", err)
	}
	if _, err := sub.AddNamespace(target.NamespaceConfig{NSID: 1, Backend: backend.NewNull(512)}); !errors.Is(err, target.ErrExists) {
		t.Errorf("second namespace 1: %v", err)
	}
	deaf.quiet()
}

// TestChangedOverflow changes more namespaces than the list can name.
func TestChangedOverflow(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].MaxNamespaces = 2000
	l := newLab(t, cfg)
	admin := l.admin(connectOptions{})
	for range 1100 {
		_, err := l.subsystem().AddNamespace(target.NamespaceConfig{Backend: backend.NewNull(1 << 20)})
		must(t, err)
	}
	b, cpl := admin.log(nvme.GetLogPageCommand{LID: nvme.LogChangedNamespaces, Length: 4096})
	admin.ok(cpl)
	if _, overflow, err := nvme.ParseChangedNamespaces(b); err != nil || !overflow {
		t.Errorf("overflow %v, %v", overflow, err)
	}
	first := nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespaces}
	b, cpl = admin.identify(first)
	admin.ok(cpl)
	ids, err := nvme.ParseNamespaceList(b, 0)
	if err != nil || len(ids) != 1024 {
		t.Fatalf("%d namespaces, %v", len(ids), err)
	}
	first.NSID = 1024
	b, cpl = admin.identify(first)
	admin.ok(cpl)
	if ids, err = nvme.ParseNamespaceList(b, 1024); err != nil || len(ids) != 77 {
		t.Errorf("%d more namespaces, %v", len(ids), err)
	}
}

func TestEventLimit(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin := l.admin(connectOptions{})
	aer := nvme.Command{Opcode: nvme.AdminAsyncEvent}
	for range 16 {
		admin.post(aer, nil, 0)
	}
	admin.is(admin.do(aer, nil), nvme.StatusAsyncEventLimitExceeded|dnr)
	for i := range 20 {
		if n := l.subsystem().Notify(nvme.MakeAsyncEvent(nvme.AsyncVendor, uint8(i), 0, 0)); n != 1 {
			t.Fatalf("%d controllers", n)
		}
		l.step()
	}
	for i := range 20 {
		if i >= 16 {
			admin.post(aer, nil, 0)
		}
		if e := nvme.AsyncEvent(admin.ok(admin.completion()).Result); e.Type() != nvme.AsyncVendor || int(e.Info()) != i {
			t.Fatalf("event %v, want %d", e, i)
		}
	}
}

// TestANA changes the states of ANA groups at one of two ports.
func TestANA(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	s := &cfg.Subsystems[0]
	s.Namespaces = append(s.Namespaces,
		target.NamespaceConfig{NSID: 4, Backend: backend.NewHeap(1 << 20), ANAGroup: 2},
		target.NamespaceConfig{NSID: 9, Backend: backend.NewHeap(1 << 20)})
	cfg.Ports = []target.PortConfig{{}, {ANA: map[uint32]nvme.ANAState{2: nvme.ANANonOptimized}}}
	l := newLab(t, cfg)
	ports := l.target.Ports()
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	other := l.adminAt(ports[1], connectOptions{}, pdu.ICReqFields{})
	anaLog := func(h *host, lsp uint8) nvme.ANALog {
		t.Helper()
		n := uint64(nvme.ANALogSize(2, 3))
		b, cpl := h.log(nvme.GetLogPageCommand{LID: nvme.LogANA, NSID: nvme.NSIDAll, Length: n, LSP: lsp})
		h.ok(cpl)
		var log nvme.ANALog
		must(t, log.UnmarshalBinary(b))
		return log
	}
	states := func(log nvme.ANALog) [2]nvme.ANAState {
		t.Helper()
		if len(log.Groups) != 2 || log.Groups[0].ID != 1 || log.Groups[1].ID != 2 {
			t.Fatalf("groups %+v", log.Groups)
		}
		return [2]nvme.ANAState{log.Groups[0].State, log.Groups[1].State}
	}
	log := anaLog(admin, 0)
	if got := states(log); got != [2]nvme.ANAState{nvme.ANAOptimized, nvme.ANAOptimized} {
		t.Errorf("states %v", got)
	}
	if g := log.Groups[0].NSIDs; len(g) != 2 || g[0] != 1 || g[1] != 9 {
		t.Errorf("namespaces of group 1: %v", g)
	}
	if g := anaLog(admin, nvme.LSPANAGroupsOnly).Groups[0].NSIDs; len(g) != 0 {
		t.Errorf("namespaces though groups only: %v", g)
	}
	if got := states(anaLog(other, 0)); got != [2]nvme.ANAState{nvme.ANAOptimized, nvme.ANANonOptimized} {
		t.Errorf("states at the other port %v", got)
	}
	admin.listen(nvme.AsyncConfigANAChange)
	other.listen(nvme.AsyncConfigANAChange)
	before := log.ChangeCount
	for _, c := range []struct {
		state nvme.ANAState
		want  nvme.Status
	}{
		{nvme.ANAInaccessible, nvme.StatusANAInaccessible},
		{nvme.ANAPersistentLoss, nvme.StatusANAPersistentLoss},
		{nvme.ANAChange, nvme.StatusANATransition},
		{nvme.ANANonOptimized, 0},
	} {
		must(t, ports[0].SetANA(1, c.state))
		if ports[0].ANA(1) != c.state || ports[1].ANA(1) != nvme.ANAOptimized {
			t.Errorf("states %v and %v", ports[0].ANA(1), ports[1].ANA(1))
		}
		_, cpl := q.in(read(0, 1), 512)
		q.is(cpl, c.want)
		q.is(q.do(write(0, 1), make([]byte, 512)), c.want)
		q.is(q.do(rw(nvme.OpFlush, 0, 1), nil), c.want)
		cmd := read(0, 1)
		cmd.NSID = 4
		_, cpl = q.in(cmd, 512)
		q.ok(cpl)
		admin.event(nvme.NoticeANAChange)
		log := anaLog(admin, 0)
		if got := states(log); got != [2]nvme.ANAState{c.state, nvme.ANAOptimized} {
			t.Errorf("states %v, want %v", got, c.state)
		}
		if log.ChangeCount <= before {
			t.Errorf("change count %d after %d", log.ChangeCount, before)
		}
		before = log.ChangeCount
		admin.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
	}
	must(t, ports[0].SetANA(1, nvme.ANANonOptimized)) // is no change
	admin.quiet()
	other.quiet()
	must(t, l.subsystem().Namespace(9).SetANAGroup(2))
	admin.event(nvme.NoticeANAChange)
	other.event(nvme.NoticeANAChange)
	if g := anaLog(admin, 0).Groups[1].NSIDs; len(g) != 2 {
		t.Errorf("namespaces of group 2: %v", g)
	}
	// That is no change of an attribute of the namespace.
	admin.listen(nvme.AsyncConfigANAChange | nvme.AsyncConfigNamespaceAttribute)
	admin.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
	must(t, l.subsystem().Namespace(9).SetANAGroup(1))
	admin.event(nvme.NoticeANAChange)
	admin.quiet()
	for _, err := range []error{
		ports[0].SetANA(0, nvme.ANAOptimized), ports[0].SetANA(1, 7), l.subsystem().Namespace(9).SetANAGroup(33),
	} {
		if !errors.Is(err, target.ErrConfig) {
			t.Errorf("error %v", err)
		}
	}
}

func TestNoANA(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Subsystems[0].NoANA = true
	admin := newLab(t, cfg).admin(connectOptions{})
	b, cpl := admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSController})
	admin.ok(cpl)
	var id nvme.IdentifyController
	must(t, id.UnmarshalBinary(b))
	if id.ReportsANA() || id.NANAGRPID != 0 || id.OAES != nvme.AsyncConfigNamespaceAttribute {
		t.Error("ANA is reported")
	}
	_, cpl = admin.log(nvme.GetLogPageCommand{LID: nvme.LogANA, Length: 64})
	admin.is(cpl, nvme.StatusInvalidLogPage|dnr)
}

// TestKeepAlive lets the keep alive timer run out, and keeps it from that.
func TestKeepAlive(t *testing.T) {
	for _, c := range []struct {
		name    string
		ka      target.KeepAlive
		asked   time.Duration
		do      func(admin, q *host)
		lives   bool
		timeout uint32 // ms, as reported
	}{
		{name: "silent", asked: 2 * time.Second, timeout: 2000},
		{name: "keep alive", asked: 2 * time.Second, timeout: 2000, lives: true,
			do: func(admin, _ *host) { admin.ok(admin.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil)) }},
		{name: "other commands", asked: 2 * time.Second, timeout: 2000,
			do: func(admin, _ *host) { admin.property(nvme.RegCSTS) }},
		{name: "I/O without TBKAS", asked: 2 * time.Second, timeout: 2000,
			do: func(_, q *host) { q.in(read(0, 1), 512) }},
		{name: "I/O with TBKAS", ka: target.KeepAlive{Traffic: true}, asked: 2 * time.Second, timeout: 2000, lives: true,
			do: func(_, q *host) { q.in(read(0, 1), 512) }},
		{name: "admin with TBKAS", ka: target.KeepAlive{Traffic: true}, asked: 2 * time.Second, timeout: 2000, lives: true,
			do: func(admin, _ *host) { admin.do(getFeature(nvme.FeatKeepAliveTimer, 0), nil) }},
		{name: "none", lives: true},
		{name: "none, but there is a maximum", ka: target.KeepAlive{Max: time.Second}, timeout: 1000},
		{name: "ignored", ka: target.KeepAlive{Ignore: true}, asked: time.Second, timeout: 1000, lives: true},
		{name: "rounded up", ka: target.KeepAlive{Granularity: time.Second}, asked: 1001 * time.Millisecond, timeout: 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := oneNamespace(backend.NewNull(1 << 20))
			cfg.Subsystems[0].KeepAlive = c.ka
			l := newLab(t, cfg)
			admin := l.admin(connectOptions{kato: c.asked})
			q := admin.queue(connectOptions{}, pdu.ICReqFields{})
			if v := uint32(admin.ok(admin.do(getFeature(nvme.FeatKeepAliveTimer, 0), nil)).Result); v != c.timeout {
				t.Errorf("timeout %d ms", v)
			}
			for range 6 {
				l.advance(700 * time.Millisecond)
				if c.do != nil && len(l.subsystem().Controllers()) == 1 {
					c.do(admin, q)
				}
			}
			if lives := len(l.subsystem().Controllers()) == 1; lives != c.lives {
				t.Fatalf("lives: %v", lives)
			}
			if !c.lives {
				admin.closed()
				q.closed()
			}
		})
	}
}

// TestDiscovery reads the discovery log and follows its changes.
func TestDiscovery(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].Hosts = []string{hostNQN}
	l := newLab(t, cfg)
	connect := connectOptions{nqn: nvme.DiscoveryNQN, kato: 5 * time.Second}
	h := l.admin(connect)
	connect.host = stranger
	s := l.admin(connect)
	discover := func(h *host, lsp uint8) nvme.DiscoveryLog {
		t.Helper()
		b, cpl := h.log(nvme.GetLogPageCommand{LID: nvme.LogDiscovery, Length: 1024, LSP: lsp, Retain: true})
		h.ok(cpl)
		var header nvme.DiscoveryHeader
		must(t, header.UnmarshalBinary(b))
		size, err := header.Size(100)
		must(t, err)
		b, cpl = h.log(nvme.GetLogPageCommand{LID: nvme.LogDiscovery, Length: size, LSP: lsp})
		h.ok(cpl)
		var log nvme.DiscoveryLog
		must(t, log.UnmarshalBinary(b))
		return log
	}
	names := func(log nvme.DiscoveryLog) (list []string) {
		for _, e := range log.Entries {
			name, err := e.SubsystemNQN()
			must(t, err)
			list = append(list, e.SUBTYPE.String()+" "+name)
		}
		return list
	}
	log := discover(h, 0)
	if len(log.Entries) != 2 {
		t.Fatalf("entries %v", names(log))
	}
	port := l.target.Ports()[0]
	e := log.Entries[1]
	if name, _ := e.SubsystemNQN(); name != nqn || e.SUBTYPE != nvme.SubTypeNVM || e.TRTYPE != nvme.TRTypeTCP || e.ADRFAM != nvme.ADRFamIPv4 ||
		e.TransportAddress() != "127.0.0.1" || e.ServiceID() != port.Addr().String()[len("127.0.0.1:"):] || e.PORTID != port.ID() ||
		e.ControllerID != nvme.ControllerIDDynamic || e.TREQ&nvme.TREQDisableFlow == 0 {
		t.Errorf("entry %q, %v %v %s %s", name, e.SUBTYPE, e.TRTYPE, e.TransportAddress(), e.ServiceID())
	}
	if got := discover(s, 0); len(got.Entries) != 1 {
		t.Errorf("a stranger sees %v", names(got))
	}
	if got := discover(s, nvme.LSPDiscoveryAll); len(got.Entries) != 2 {
		t.Errorf("of all subsystems a stranger sees %v", names(got))
	}

	h.listen(nvme.AsyncConfigDiscovery)
	h.quiet()
	second, err := l.target.AddPort(target.PortConfig{Advertise: mustAddr("192.0.2.1:4420")})
	must(t, err)
	h.event(nvme.NoticeDiscoveryLogChange)
	next := discover(h, 0)
	if next.Generation <= log.Generation || len(next.Entries) != 4 || next.Entries[3].TransportAddress() != "192.0.2.1" {
		t.Errorf("generation %d after %d, entries %v", next.Generation, log.Generation, names(next))
	}
	if got := discover(h, nvme.LSPDiscoveryPortLocal); len(got.Entries) != 2 {
		t.Errorf("of this port: %v", names(got))
	}
	for _, change := range []func(){
		second.Remove,
		func() {
			must(t, l.target.SetReferrals([]target.Referral{{Address: mustAddr("[2001:db8::1]:8009"), ID: 5}}))
		},
		func() {
			_, err := l.target.AddSubsystem(target.SubsystemConfig{NQN: nqn + "2"})
			must(t, err)
		},
		func() { must(t, l.target.RemoveSubsystem(nqn+"2")) },
		func() { must(t, l.subsystem().SetHosts(nil)) },
	} {
		h.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
		change()
		h.event(nvme.NoticeDiscoveryLogChange)
		discover(h, 0)
	}
	last := discover(s, 0)
	if r := last.Entries[len(last.Entries)-1]; len(last.Entries) != 3 || r.SUBTYPE != nvme.SubTypeReferral || r.ADRFAM != nvme.ADRFamIPv6 ||
		r.TransportAddress() != "2001:db8::1" || r.ServiceID() != "8009" || r.PORTID != 5 {
		t.Errorf("entries %v", names(last))
	}

	// What discovery controllers are not.
	h.is(h.do(nvme.Command{Opcode: nvme.AdminAbort}, nil), nvme.StatusInvalidOpcode|dnr)
	_, cpl := h.identify(nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespaces})
	h.is(cpl, nvme.StatusInvalidField|dnr)
	b, cpl := h.identify(nvme.IdentifyCommand{CNS: nvme.CNSController})
	h.ok(cpl)
	var id nvme.IdentifyController
	must(t, id.UnmarshalBinary(b))
	if !id.IsDiscovery() || id.OAES != nvme.AsyncConfigDiscovery {
		t.Errorf("type %d, events %#x", id.CNTRLTYPE, id.OAES)
	}
	h.is(h.do(getFeature(nvme.FeatNumberOfQueues, 0), nil), nvme.StatusInvalidField|dnr)
	_, cpl = h.log(nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 512})
	h.is(cpl, nvme.StatusInvalidLogPage|dnr)
	io := l.dial()
	io.initialise(pdu.ICReqFields{})
	cpl = io.is(io.connect(connectOptions{nqn: nvme.DiscoveryNQN, qid: 1, controller: h.ctrl}), nvme.StatusConnectInvalidParameters|dnr)
	if cpl.Result != inCommand(42) {
		t.Errorf("result %#x", cpl.Result)
	}
	l.advance(6 * time.Second)
	h.closed()
}

func TestNoDiscovery(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.NoDiscovery = true
	h := newLab(t, cfg).dial()
	h.initialise(pdu.ICReqFields{})
	h.is(h.connect(connectOptions{nqn: nvme.DiscoveryNQN}), nvme.StatusConnectInvalidParameters|dnr)
}
