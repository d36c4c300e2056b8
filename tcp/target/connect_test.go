package target_test

import (
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

const stranger = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555"

func inData(at uint16) uint64 { return nvme.InvalidParameter{Offset: at, InData: true}.Result() }

func inCommand(at uint16) uint64 { return nvme.InvalidParameter{Offset: at}.Result() }

// TestConnectRefused has one thing wrong with a Connect command at a time.
func TestConnectRefused(t *testing.T) {
	const bad = nvme.StatusConnectInvalidParameters | nvme.StatusDNR
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].Hosts = []string{hostNQN}
	cfg.Subsystems[0].IOQueues = 4
	cfg.Subsystems[0].QueueEntries = 64
	l := newLab(t, cfg)
	admin := l.admin(connectOptions{})
	admin.queue(connectOptions{qid: 2}, pdu.ICReqFields{})
	disabled := l.dial()
	disabled.initialise(pdu.ICReqFields{})
	id := nvme.ParseConnectResponse(disabled.ok(disabled.connect(connectOptions{})).Result).ControllerID

	for _, c := range []struct {
		name   string
		o      connectOptions
		status nvme.Status
		result uint64
	}{
		{"no such subsystem", connectOptions{nqn: "nqn.2026-01.io.example:other"}, bad, inData(256)},
		{"host not allowed", connectOptions{host: stranger}, nvme.StatusConnectInvalidHost | nvme.StatusDNR, 0},
		{"static controller", connectOptions{controller: nvme.ControllerIDStaticAny}, bad, inData(16)},
		{"admin queue of a controller", connectOptions{controller: admin.ctrl}, bad, inData(16)},
		{"queue too large", connectOptions{sqSize: 64}, bad, inCommand(44)},
		{"no such controller", connectOptions{qid: 1, controller: 77}, bad, inData(16)},
		{"controller of another host identifier", connectOptions{qid: 1, controller: admin.ctrl, id: [16]byte{9}}, bad, inData(0)},
		{"queue identifier too large", connectOptions{qid: 5, controller: admin.ctrl}, bad, inCommand(42)},
		{"queue connected already", connectOptions{qid: 2, controller: admin.ctrl}, nvme.StatusCommandSequenceError | nvme.StatusDNR, 0},
		{"controller not enabled", connectOptions{qid: 1, controller: id}, nvme.StatusCommandSequenceError | nvme.StatusDNR, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := l.dial()
			h.t = t
			h.initialise(pdu.ICReqFields{})
			cpl := h.is(h.connect(c.o), c.status)
			if cpl.Result != c.result {
				t.Errorf("result %#x, want %#x", cpl.Result, c.result)
			}
			h.ok(h.connect(connectOptions{})) // may try again
		})
	}
}

// TestConnectMalformed is about commands that a proper host cannot even make.
func TestConnectMalformed(t *testing.T) {
	d, err := nvme.NewConnectData(hostID, nvme.ControllerIDDynamic, nqn, hostNQN)
	must(t, err)
	good, err := d.AppendBinary(nil)
	must(t, err)
	unterminated := make([]byte, 256)
	for i := range unterminated {
		unterminated[i] = 'x'
	}
	for _, c := range []struct {
		name   string
		change func(*nvme.Command)
		data   []byte
		status nvme.Status
		result uint64
	}{
		{name: "record format", change: func(c *nvme.Command) { c.CDW10 |= 1 }, status: nvme.StatusConnectIncompatibleFormat},
		{name: "queue of one entry", change: func(c *nvme.Command) { c.CDW11 = 0 }, status: nvme.StatusConnectInvalidParameters, result: inCommand(44)},
		{name: "subsystem NQN without end", data: set(good, 256, unterminated...), status: nvme.StatusConnectInvalidParameters, result: inData(256)},
		{name: "no subsystem NQN", data: set(good, 256, 0), status: nvme.StatusConnectInvalidParameters, result: inData(256)},
		{name: "host NQN without end", data: set(good, 512, unterminated...), status: nvme.StatusConnectInvalidParameters, result: inData(512)},
		{name: "data too short", data: good[:1020], status: nvme.StatusDataSGLLengthInvalid},
		{name: "PRP", change: func(c *nvme.Command) { c.Flags = 0 }, status: nvme.StatusInvalidField},
		{name: "SGL outside of the capsule", change: func(c *nvme.Command) { c.SetSGL(nvme.SGLInCapsule(1, 1024)) }, status: nvme.StatusSGLOffsetInvalid},
		{name: "SGL of another type", change: func(c *nvme.Command) { c.SetSGL(nvme.SGLDataBlock(0, 1024)) }, status: nvme.StatusSGLTypeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newLab(t, oneNamespace(backend.NewNull(1<<20))).dial()
			h.initialise(pdu.ICReqFields{})
			data := c.data
			if data == nil {
				data = good
			}
			cmd := nvme.ConnectCommand{SQSize: 31}.Command()
			cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(data))))
			if c.change != nil {
				c.change(&cmd)
			}
			h.send(h.capsule(&cmd, data))
			cpl := h.is(h.completion(), c.status|nvme.StatusDNR)
			if cpl.Result != c.result {
				t.Errorf("result %#x, want %#x", cpl.Result, c.result)
			}
		})
	}
}

// TestConnectByR2T has the data of the Connect command asked for.
func TestConnectByR2T(t *testing.T) {
	h := newLab(t, oneNamespace(backend.NewNull(1<<20))).dial()
	h.initialise(pdu.ICReqFields{})
	d, err := nvme.NewConnectData(hostID, nvme.ControllerIDDynamic, nqn, hostNQN)
	must(t, err)
	raw, err := d.AppendBinary(nil)
	must(t, err)
	h.ok(h.out(nvme.ConnectCommand{SQSize: 31}.Command(), raw))
	h.property(nvme.RegVS)
}

func TestBeforeConnect(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	h := l.dial()
	h.initialise(pdu.ICReqFields{})
	const want = nvme.StatusCommandSequenceError | nvme.StatusDNR
	h.is(h.do(nvme.NewPropertyGet(nvme.RegVS).Command(), nil), want)
	h.is(h.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil), want)
	h.is(h.do(read(0, 1), nil), want)
	h.ok(h.connect(connectOptions{}))
	h.is(h.connect(connectOptions{}), want)                                            // is one already
	h.is(h.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil), want)                   // not enabled
	h.is(h.do(nvme.DisconnectCommand(), nil), nvme.StatusInvalidOpcode|nvme.StatusDNR) // an admin queue
}

// TestSQHead follows the submission queue head that responses report.
func TestSQHead(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin := l.admin(connectOptions{})
	q := l.dial()
	q.initialise(pdu.ICReqFields{})
	cpl := q.ok(q.connect(connectOptions{qid: 1, controller: admin.ctrl, sqSize: 3}))
	for i := range 10 {
		if want := uint16(i+1) % 4; cpl.SQHead != want || cpl.SQID != 1 {
			t.Fatalf("response %d: head %d of queue %d, want %d", i, cpl.SQHead, cpl.SQID, want)
		}
		_, cpl = q.in(read(0, 1), 512)
	}
	off := l.dial()
	off.initialise(pdu.ICReqFields{})
	cpl = off.ok(off.connect(connectOptions{qid: 2, controller: admin.ctrl, flags: nvme.ConnectDisableFlowControl}))
	if cpl.SQHead != nvme.SQHeadNoFlowControl {
		t.Errorf("head %#x, want 0xffff", cpl.SQHead)
	}
}

func TestDisconnect(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	bad := nvme.DisconnectCommand()
	bad.CDW10 = 1
	q.is(q.do(bad, nil), nvme.StatusConnectIncompatibleFormat|dnr)
	q.ok(q.do(nvme.DisconnectCommand(), nil))
	again := admin.queue(connectOptions{}, pdu.ICReqFields{}) // with the old connection still open
	_, cpl := again.in(read(0, 1), 512)
	again.ok(cpl)
	q.closed()
	q.close()
	l.await("the old connection is gone", func() bool { all, _ := l.target.Connections(); return all == 2 })
	_, cpl = again.in(read(0, 1), 512)
	again.ok(cpl)
}

// TestLargeCapsule sends more data than an admin capsule needs to carry, in two
// pieces.
func TestLargeCapsule(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin := l.admin(connectOptions{})
	cmd := nvme.Command{Opcode: nvme.AdminKeepAlive}
	b := admin.capsule(&cmd, make([]byte, 16<<10))
	admin.send(b[:9000])
	l.step()
	admin.send(b[9000:])
	admin.ok(admin.completion())
}

// TestAssociation ends the admin queue's connection, which ends the controller.
func TestAssociation(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	if n := len(l.subsystem().Controllers()); n != 1 {
		t.Fatalf("%d controllers", n)
	}
	admin.close()
	q.closed()
	if n := len(l.subsystem().Controllers()); n != 0 {
		t.Errorf("%d controllers are left", n)
	}
	late := l.dial()
	late.initialise(pdu.ICReqFields{})
	late.is(late.connect(connectOptions{qid: 1, controller: admin.ctrl}), nvme.StatusConnectInvalidParameters|nvme.StatusDNR)
}

func TestControllerLimit(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].Controllers = 2
	cfg.Subsystems[0].FirstController = 10
	l := newLab(t, cfg)
	a := l.admin(connectOptions{})
	b := l.admin(connectOptions{})
	if a.ctrl != 10 || b.ctrl != 11 {
		t.Errorf("controllers %d and %d", a.ctrl, b.ctrl)
	}
	c := l.dial()
	c.initialise(pdu.ICReqFields{})
	c.is(c.connect(connectOptions{}), nvme.StatusConnectControllerBusy|nvme.StatusDNR)
	a.close()
	l.await("the controller is gone", func() bool { return len(l.subsystem().Controllers()) == 1 })
	c.ok(c.connect(connectOptions{}))
}

// TestNewHosts changes who may connect.
func TestNewHosts(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	l.admin(connectOptions{host: stranger})
	must(t, l.subsystem().SetHosts([]string{hostNQN}))
	h := l.dial()
	h.initialise(pdu.ICReqFields{})
	h.is(h.connect(connectOptions{host: stranger}), nvme.StatusConnectInvalidHost|nvme.StatusDNR)
	h.ok(h.connect(connectOptions{}))
	if n := l.subsystem().KillHost(stranger); n != 1 {
		t.Errorf("%d controllers killed", n)
	}
	l.await("the stranger is gone", func() bool { return len(l.subsystem().Controllers()) == 1 })
}

// TestPortSubsystems offers subsystems at some ports only.
func TestPortSubsystems(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Ports = []target.PortConfig{{Subsystems: []string{}}, {}}
	l := newLab(t, cfg)
	h := l.dialPort(l.target.Ports()[0])
	h.initialise(pdu.ICReqFields{})
	cpl := h.is(h.connect(connectOptions{}), nvme.StatusConnectInvalidParameters|nvme.StatusDNR)
	if cpl.Result != inData(256) {
		t.Errorf("result %#x", cpl.Result)
	}
	l.adminAt(l.target.Ports()[1], connectOptions{}, pdu.ICReqFields{})
}
