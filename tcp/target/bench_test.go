package target

import (
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// bareQueue is an I/O queue without a socket: what it is to send is counted as
// sent.
func bareQueue(tb testing.TB, b backend.Backend, p pdu.Params) *conn {
	tb.Helper()
	const nqn = "nqn.2026-01.io.github.qpoll:bare"
	t, err := New(Config{Subsystems: []SubsystemConfig{{NQN: nqn, Namespaces: []NamespaceConfig{{Backend: b}}}}})
	if err != nil {
		tb.Fatal(err)
	}
	plr, err := poller.New(poller.Config{Unpinned: true})
	if err != nil {
		tb.Fatal(err)
	}
	w, err := newWorker(t, plr, 64<<20)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		w.close()
		w.tidyUp()
		if err := plr.Close(); err != nil {
			tb.Error(err)
		}
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	t.workers = []*worker{w}
	c := &conn{w: w, fd: -1}
	c.cold.port = t.ports[0]
	c.cold.sub = t.subsystem(nqn)
	c.tx.grow(handshakeHeaders, handshakePieces)
	c.makeRequests(1)
	c.initialised(p, pdu.ICReqFields{})
	ctrl, _ := c.cold.sub.newController(c, "host", [16]byte{})
	c.ctrl = ctrl
	c.view = w.viewOf(c.cold.sub, c.cold.port)
	c.becomeQueue(c.take(), nvme.ConnectCommand{QID: 1, SQSize: 127})
	c.sent()
	return c
}

// sent counts all that is queued as sent.
func (c *conn) sent() {
	for c.tx.pending() {
		c.tx.consume(int(c.tx.queued - c.tx.sent))
		c.freeSent()
		c.encodeWaiting()
	}
	for i := range c.w.unsent {
		c.w.unsent[i].unsent = false
	}
	c.w.unsent = c.w.unsent[:0]
}

// batch is the capsules of n commands, with data in them or without.
func batch(p pdu.Params, cmd nvme.Command, n int, data []byte, length uint32) (b []byte) {
	l := p.Layout(pdu.TypeCapsuleCmd)
	cmd.SetSGL(nvme.SGLTransport(length))
	if data != nil {
		cmd.SetSGL(nvme.SGLInCapsule(0, length))
	}
	for i := range n {
		cmd.CID, cmd.CDW10 = uint16(i), uint32(i)*8
		b = pdu.AppendCapsuleCmd(b, &l, &cmd, data)
	}
	return b
}

const benchDepth = 32

// command is one kind of command to execute.
type command struct {
	name string
	op   nvme.Opcode
	n    int
	p    pdu.Params
	back backend.Backend
}

func commands() []command {
	digests := pdu.Params{HDGST: true, DDGST: true}
	return []command{
		{"null/read4k", nvme.OpRead, 4096, pdu.Params{}, backend.NewNull(1 << 30)},
		{"null/read512", nvme.OpRead, 512, pdu.Params{}, backend.NewNull(1 << 30)},
		{"null/write4k", nvme.OpWrite, 4096, pdu.Params{}, backend.NewNull(1 << 30)},
		{"heap/read4k", nvme.OpRead, 4096, pdu.Params{}, backend.NewHeap(1 << 20)},
		{"heap/write4k", nvme.OpWrite, 4096, pdu.Params{}, backend.NewHeap(1 << 20)},
		{"digests/read4k", nvme.OpRead, 4096, digests, backend.NewHeap(1 << 20)},
		{"digests/write4k", nvme.OpWrite, 4096, digests, backend.NewHeap(1 << 20)},
		{"latency/read4k", nvme.OpRead, 4096, pdu.Params{}, backend.NewLatency(backend.NewHeap(1<<20), 1)},
		{"latency/write4k", nvme.OpWrite, 4096, pdu.Params{}, backend.NewLatency(backend.NewHeap(1<<20), 1)},
	}
}

// run returns a function that executes benchDepth commands.
func (k *command) run(tb testing.TB) func() {
	q := bareQueue(tb, k.back, k.p)
	cmd := nvme.Command{Opcode: k.op, NSID: 1, CDW12: uint32(k.n)/512 - 1}
	var data []byte
	if k.op == nvme.OpWrite {
		data = make([]byte, k.n)
	}
	bytes := batch(k.p, cmd, benchDepth, data, uint32(k.n))
	now := int64(0)
	return func() {
		q.parse(bytes)
		now += 1000
		q.w.p.Poll(now) // for the clock alone: the worker is no source
		for _, ch := range q.w.channels {
			ch.ch.Poll(now)
		}
		q.sent()
		if q.used != 0 || q.state != connReady {
			tb.Fatalf("%d commands are not done", q.used)
		}
	}
}

func allocCases(t *testing.T) map[string]func() {
	m := map[string]func(){}
	for _, k := range commands() {
		m[k.name] = k.run(t)
	}
	return m
}

// BenchmarkCommand is the cost of a command without that of the kernel.
func BenchmarkCommand(b *testing.B) {
	for _, k := range commands() {
		b.Run(k.name, func(b *testing.B) {
			run := k.run(b)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += benchDepth {
				run()
			}
		})
	}
}
