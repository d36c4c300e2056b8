package tcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// rigConfig holds what can be chosen about a rig.
type rigConfig struct {
	tcp       tcp.Config
	icresp    pdu.ICRespFields
	size      int // entries of the queue; 0: 32
	inCapsule int // bytes of in-capsule data that the controller takes
	mdts      uint8
	icdoff    uint16
	script    tcptest.Script // plays the I/O connections; nil: handshake, then the test
	broken    bool           // no queue is opened
	config    func(*nvme.Config)

	peerBuffer int // bytes that the peer's socket receives before they are read
}

// rig is an I/O queue whose poller and peer are both moved by the test, step by
// step, so that it decides what arrives together and when.
type rig struct {
	t    testing.TB
	p    *poller.Poller
	now  int64
	srv  *tcptest.Server
	peer *tcptest.Conn
	c    *nvme.Controller
	q    *nvme.NamespaceQueue
	qp   *nvme.QueuePair
	ops  ops

	losses chan error // that the queue was lost with
}

const rigBlocks = 1 << 20 // of 512 bytes

func newRig(t testing.TB, cfg rigConfig) *rig {
	t.Helper()
	r := &rig{t: t, p: steppedPoller(t), losses: make(chan error, 16)}
	script := cfg.script
	if script == nil {
		script = func(c *tcptest.Conn) {
			if cfg.peerBuffer > 0 {
				_ = c.NetConn().SetReadBuffer(cfg.peerBuffer)
			}
			c.Handshake(cfg.icresp)
			c.AcceptConnect(1)
			c.HandOver()
		}
	}
	r.srv = tcptest.New(t, script, nil)
	nc := &nvme.Config{
		Poller: r.p, HostNQN: hostNQN, KeepAlive: -1, IOTimeout: nvme.Forever, ReconnectDelay: time.Hour,
		Retries: -1, QueueSize: 32, Transport: cfg.tcp,
		Events: &nvme.Events{Queue: func(_ *nvme.Controller, _ uint16, err error) {
			if err != nil {
				r.losses <- err
			}
		}},
	}
	if cfg.size != 0 {
		nc.QueueSize = cfg.size
	}
	if cfg.config != nil {
		cfg.config(nc)
	}
	id := &nvme.IdentifyController{
		CNTRLTYPE: nvme.ControllerTypeIO, VER: nvme.Version20, MDTS: cfg.mdts, ICDOFF: cfg.icdoff,
		IOCCSZ: uint32(nvme.CommandSize+cfg.inCapsule) / 16, ONCS: nvme.ONCSCompare | nvme.ONCSDatasetManagement,
	}
	tr := newAdminless(t, r.srv.Address(subNQN), nc, id, rigBlocks)
	t.Cleanup(r.close)
	r.while(func(ctx context.Context) (err error) {
		if r.c, err = nvme.NewController(ctx, tr, nc); err != nil {
			return err
		}
		ns, err := r.c.Namespace(ctx, 1)
		if err != nil || cfg.broken {
			return err
		}
		r.q, err = ns.Queue(ctx, r.p, nvme.QueueConfig{})
		return err
	})
	if cfg.broken {
		return r
	}
	r.qp = r.q.QueuePair()
	if cfg.script == nil {
		r.peer = r.srv.Accept(t)
	}
	return r
}

// poll makes one pass of the poller.
func (r *rig) poll() int {
	r.now += 25_000 // more than an idle connection waits between looks
	return r.p.Poll(r.now)
}

// until polls until ok.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	start := time.Now()
	for n := 0; !ok(); n++ {
		if r.poll() == 0 && n%4 == 3 {
			time.Sleep(10 * time.Microsecond)
		}
		if n%1024 == 1023 && time.Since(start) > patience {
			r.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// while polls while f runs on a goroutine of its own.
func (r *rig) while(f func(ctx context.Context) error) {
	r.t.Helper()
	if err := r.whileErr(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) whileErr(f func(ctx context.Context) error) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = f(ctx)
	}()
	r.until("a call", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	return err
}

// play has the peer do something while the poller runs.
func (r *rig) play(f func(c *tcptest.Conn)) {
	r.t.Helper()
	r.while(func(context.Context) error {
		f(r.peer)
		return nil
	})
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// close ends it all, and checks that every command has completed once.
func (r *rig) close() {
	if r.c != nil {
		if err := r.whileErr(r.c.Close); err != nil {
			r.t.Error(err)
		}
	}
	r.p.Close()
	r.ops.checkOnce(r.t)
}

// flush polls until all that is queued was sent.
func (r *rig) flush() {
	r.t.Helper()
	r.until("sending", func() bool { return tcp.Pending(r.qp) == 0 && tcp.Backlog(r.qp) == 0 && tcp.Waiting(r.qp) == 0 })
}

// feed sends b to the initiator, in pieces that end before the given offsets,
// and has it receive each piece before the next is sent.
func (r *rig) feed(b []byte, offsets ...int) {
	r.t.Helper()
	from := 0
	for _, to := range append(offsets[:len(offsets):len(offsets)], len(b)) {
		if to <= from || to > len(b) || !r.qp.Live() {
			continue
		}
		want := tcp.Received(r.qp) + uint64(to-from)
		r.peer.Send(b[from:to])
		r.until("the initiator to receive", func() bool { return tcp.Received(r.qp) >= want || !r.qp.Live() })
		from = to
	}
}

// pieces feeds b in pieces of n bytes.
func (r *rig) pieces(b []byte, n int) {
	r.t.Helper()
	var offsets []int
	for off := n; off < len(b); off += n {
		offsets = append(offsets, off)
	}
	r.feed(b, offsets...)
}

func (r *rig) blocks(n int) uint32 {
	if n%512 != 0 {
		r.t.Fatalf("%d bytes are no blocks", n)
	}
	return uint32(n / 512)
}

// read submits a read into buf.
func (r *rig) read(buf []byte, lba uint64) *op {
	r.t.Helper()
	o := r.ops.add("read %d of %d bytes at %d", len(r.ops), len(buf), lba)
	r.must(r.q.Read(buf, lba, r.blocks(len(buf)), opDone, o))
	return o
}

// write submits a write from buf.
func (r *rig) write(buf []byte, lba uint64) *op {
	r.t.Helper()
	o := r.ops.add("write %d of %d bytes at %d", len(r.ops), len(buf), lba)
	r.must(r.q.Write(buf, lba, r.blocks(len(buf)), opDone, o))
	return o
}

func total(vec [][]byte) (n int) {
	for _, b := range vec {
		n += len(b)
	}
	return n
}

// readV and writeV do the same with vectors.
func (r *rig) readV(vec [][]byte, lba uint64) *op {
	r.t.Helper()
	o := r.ops.add("vectored read %d of %d bytes at %d", len(r.ops), total(vec), lba)
	r.must(r.q.ReadV(vec, lba, r.blocks(total(vec)), opDone, o))
	return o
}

func (r *rig) writeV(vec [][]byte, lba uint64) *op {
	r.t.Helper()
	o := r.ops.add("vectored write %d of %d bytes at %d", len(r.ops), total(vec), lba)
	r.must(r.q.WriteV(vec, lba, r.blocks(total(vec)), opDone, o))
	return o
}

// raw submits a raw command.
func (r *rig) raw(cmd nvme.Command, d nvme.Data) *op {
	r.t.Helper()
	o := r.ops.add("command %d, opcode %#x", len(r.ops), uint8(cmd.Opcode))
	r.must(r.q.Submit(&cmd, d, commandDone, o))
	return o
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// command sends what is queued and returns the next command that the peer
// sees.
func (r *rig) command(o nvme.Opcode, checks ...tcptest.Check) *tcptest.Request {
	r.t.Helper()
	r.flush()
	return r.peer.ExpectCommand(o, checks...)
}

// lost returns the error that has ended the connection.
func (r *rig) lost() (err error) {
	r.t.Helper()
	r.until("the connection to fail", func() bool {
		select {
		case err = <-r.losses:
			return true
		default:
			return false
		}
	})
	return err
}
