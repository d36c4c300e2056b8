package target_test

import (
	"slices"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// TestAbortStorm aborts one command after the other while they wait for memory:
// the connection has one place in the queue for it.
func TestAbortStorm(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(16 << 20))
	cfg.Limits.ConnectionBuffers = 4 << 20
	l := newLab(t, cfg)
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	for range 4 {
		q.post(write(0, 2048), nil, 1<<20)
		q.nextOf(pdu.TypeR2T)
	}
	for range 8 {
		cid := q.post(write(0, 2048), nil, 1<<20)
		l.await("it waits", func() bool { return l.target.Starving() > 0 })
		l.step()
		if cpl := admin.ok(admin.do(abort(1, cid), nil)); cpl.Result&1 != 0 {
			t.Fatal("not aborted")
		}
		q.is(q.completion(), nvme.StatusAbortRequested)
	}
	if n := l.target.Starving(); n > 1 {
		t.Errorf("%d places taken by one connection", n)
	}
}

// TestLeaveWhileMoving ends queues right behind their Connect command, before
// they have moved to the poller that they are counted for.
func TestLeaveWhileMoving(t *testing.T) {
	l := newLabOn(t, oneNamespace(backend.NewHeap(1<<20)), 2)
	admin := l.admin(connectOptions{})
	admin.queue(connectOptions{qid: 2}, pdu.ICReqFields{})
	l.dial().initialise(pdu.ICReqFields{})
	// The next connection is for the poller with fewer of them, and with more
	// I/O queues.
	before := l.target.IOQueues()
	for range 4 {
		q := l.dial()
		q.initialise(pdu.ICReqFields{})
		d, err := nvme.NewConnectData(hostID, admin.ctrl, nqn, hostNQN)
		must(t, err)
		raw, err := d.AppendBinary(nil)
		must(t, err)
		cmd := nvme.ConnectCommand{QID: 1, SQSize: 31}.Command()
		cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(raw))))
		q.send(append(q.capsule(&cmd, raw), pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{}, nil)...))
		l.await("it is gone", func() bool { all, _ := l.target.Connections(); return all == 3 })
	}
	if after := l.target.IOQueues(); !slices.Equal(after, before) {
		t.Errorf("pollers are thought to have %d I/O queues, want %d", after, before)
	}
}

// TestStalledHosts has hosts take all the memory and never send the data, or
// never read it: they go when another one needs it, and no sooner.
func TestStalledHosts(t *testing.T) {
	for _, cmd := range []nvme.Command{write(0, 2048), read(0, 2048)} {
		cfg := oneNamespace(backend.NewHeap(16 << 20))
		cfg.Limits.BufferMemory = 8 << 20
		cfg.Limits.ConnectionBuffers = 4 << 20
		cfg.Transport.SendBuffer = 8 << 10
		l := newLab(t, cfg)
		for range 2 {
			_, q := l.io(connectOptions{}, pdu.ICReqFields{DDGST: true}) // so that reads take memory
			for range 4 {
				q.post(cmd, nil, 1<<20)
			}
		}
		for range 100 {
			l.step()
		}
		l.advance(time.Hour)
		admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
		if n := l.subsystem().Stats().Queues; n != 3 {
			t.Fatalf("%d queues, want all 3", n)
		}
		q.post(write(0, 8), nil, 4096)
		for range 100 {
			l.step()
		}
		l.advance(31 * time.Second)
		r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
		q.answer(r.CCCID(), r.TTAG(), 0, make([]byte, 4096))
		q.ok(q.completion())
		if n := l.subsystem().Stats().Queues; n != 1 {
			t.Errorf("%d queues, want 1: the hosts that hold memory are to go", n)
		}
		admin.ok(admin.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil))
	}
}
