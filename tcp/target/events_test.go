package target_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// TestEvents follows a host through the listener and the logger.
func TestEvents(t *testing.T) {
	var told []string
	say := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	var logged bytes.Buffer
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	cfg.Events = &target.Events{
		Connect: func(s *target.Subsystem, controller, qid uint16, host string) {
			say("connect %s %d %d %s", s.NQN(), controller, qid, host)
		},
		Disconnect: func(_ *target.Subsystem, controller, qid uint16, err error) {
			say("disconnect %d %d %v", controller, qid, err != nil)
		},
		Refuse:    func(_ netip.AddrPort, err error) { say("refuse %v", strings.Contains(err.Error(), "no subsystem")) },
		Terminate: func(_ netip.AddrPort, err error) { say("terminate %v", errors.As(err, new(*pdu.Error))) },
	}
	l := newLab(t, cfg)
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	h := l.dial()
	h.initialise(pdu.ICReqFields{})
	h.connect(connectOptions{nqn: nqn + "x"})
	h.send(set(make([]byte, 24), 0, 0x0a))
	h.terminated()
	h.close()
	q.close()
	l.await("the queue is gone", func() bool { return l.subsystem().Stats().Queues == 0 })
	must(t, sys.SetLinger(admin.fd, 0)) // the connection is reset
	admin.close()
	l.await("the controller is gone", func() bool { return l.subsystem().Stats().Controllers == 0 })
	want := []string{
		"connect " + nqn + " 1 0 " + hostNQN, "connect " + nqn + " 1 1 " + hostNQN,
		"refuse true", "terminate true", "disconnect 1 1 true", "disconnect 1 0 true",
	}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told\n%q\nwant\n%q", told, want)
	}
	for _, word := range []string{"msg=controller ", "msg=queue ", "Connect refused", "connection terminated", "controller ended", "connection reset"} {
		if !strings.Contains(logged.String(), word) {
			t.Errorf("the log does not say %q:\n%s", word, logged.String())
		}
	}
}

// TestSocketOptions sets the options of sockets, also to what the system does
// not know.
func TestSocketOptions(t *testing.T) {
	for _, name := range []string{"reno", "no such thing"} {
		var logged bytes.Buffer
		cfg := oneNamespace(backend.NewHeap(1 << 20))
		cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		cfg.Transport = target.Transport{Congestion: name, SendBuffer: 64 << 10, RecvBuffer: 64 << 10}
		_, q := newLab(t, cfg).io(connectOptions{}, pdu.ICReqFields{})
		got, cpl := q.in(read(0, 2048), 1<<20)
		q.ok(cpl)
		same(t, "data", got, make([]byte, 1<<20))
		if failed := strings.Contains(logged.String(), "socket option"); failed != (name != "reno") {
			t.Errorf("%s: %s", name, logged.String())
		}
	}
}

// custom is a backend of a user's own, which cannot be opened at first, and
// then finishes what it gets in the next pass.
type custom struct{ broken bool }

var errBroken = errors.New("broken")

func (*custom) Info() backend.Info { return backend.Info{Size: 1 << 20} }
func (*custom) Close() error       { return errBroken }

func (b *custom) Open(*poller.Poller) (backend.Channel, error) {
	if b.broken {
		return nil, errBroken
	}
	return &customChannel{}, nil
}

type customChannel struct{ ops []*backend.Op }

func (c *customChannel) Submit(op *backend.Op) bool {
	op.Keep()
	c.ops = append(c.ops, op)
	return false
}

func (c *customChannel) Poll(int64) int {
	ops := c.ops
	c.ops = nil
	for _, op := range ops {
		for i := range op.Data {
			if op.Kind == backend.Read {
				op.Data[i] = 0x5a
			}
		}
		op.Finish(nvme.StatusSuccess)
	}
	return len(ops)
}

func (c *customChannel) Arm(int64) (int64, bool) { return 0, len(c.ops) == 0 }
func (c *customChannel) Cancel(*backend.Op) bool { return false }
func (c *customChannel) Close()                  {}

func TestCustomBackend(t *testing.T) {
	b := &custom{broken: true}
	l := newLab(t, oneNamespace(b))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	_, cpl := q.in(read(0, 1), 512)
	q.is(cpl, nvme.StatusNamespaceNotReady)
	b.broken = false
	l.subsystem().Namespace(1).SetReadOnly(false) // has it tried again
	got, cpl := q.in(read(0, 1), 512)
	q.ok(cpl)
	same(t, "data", got, bytes.Repeat([]byte{0x5a}, 512))
	q.ok(q.do(write(0, 1), pattern(1, 512)))
	flush := rw(nvme.OpFlush, 0, 1)
	flush.NSID = nvme.NSIDAll
	q.ok(q.do(flush, nil))
	dsm, err := nvme.DSMCommand{NSID: 1, Ranges: 2, Deallocate: true}.Command()
	must(t, err)
	q.ok(q.do(dsm, nvme.AppendDSMRanges(nil, []nvme.DSMRange{{Length: 1}, {LBA: 9, Length: 2}})))
	n := l.subsystem().Namespaces()[0]
	if n.ID() != 1 || n.Blocks() != 2048 {
		t.Errorf("namespace %d of %d blocks", n.ID(), n.Blocks())
	}
	if err := n.Resize(1 << 20); !errors.Is(err, target.ErrConfig) {
		t.Errorf("Resize: %v", err)
	}
	// A connection that is terminated with a command under way.
	q.post(read(0, 1), nil, 512)
	q.send(set(make([]byte, 24), 0, 0x0a))
	q.terminated()
	q.close()
	l.await("the queue is forgotten", func() bool { all, _ := l.target.Connections(); return all == 1 })
	admin.property(nvme.RegVS)
}

// TestStarvedReads has reads wait for memory: to read into, and to keep what a
// digest was computed of.
func TestStarvedReads(t *testing.T) {
	for _, b := range []backend.Backend{&custom{}, backend.NewHeap(1 << 20)} {
		cfg := oneNamespace(b)
		cfg.Limits.ConnectionBuffers = 1 // that is, what one command may need
		cfg.Subsystems[0].MaxTransfer = 1 << 20
		cfg.Transport.SendBuffer = 4 << 10
		l := newLab(t, cfg)
		admin, q := l.io(connectOptions{sqSize: 15}, pdu.ICReqFields{DDGST: true})
		var cids []uint16
		for range 8 {
			cids = append(cids, q.post(read(0, 2048), nil, 1<<20))
		}
		total := map[uint16]int{}
		for done := 0; done < len(cids); {
			switch p := q.next(); p.Type() {
			case pdu.TypeC2HData:
				total[(*pdu.C2HData)(p.Header).CCCID()] += len(p.Data)
			case pdu.TypeCapsuleResp:
				done++
			}
		}
		for _, cid := range cids {
			if total[cid] != 1<<20 {
				t.Errorf("%d bytes for command %d", total[cid], cid)
			}
		}
		// And with the connection closed while they wait.
		for range 8 {
			q.post(read(0, 2048), nil, 1<<20)
		}
		for range 10 {
			l.step()
		}
		q.close()
		l.await("the queue is forgotten", func() bool { all, _ := l.target.Connections(); return all == 1 })
		admin.property(nvme.RegVS)
	}
}

// TestTerminateUnderWay terminates a connection whose commands are in every
// state that they can be in.
func TestTerminateUnderWay(t *testing.T) {
	slow := backend.NewLatency(backend.NewHeap(16<<20), time.Millisecond)
	cfg := oneNamespace(slow)
	cfg.Limits.ConnectionBuffers = 4 << 20
	cfg.Subsystems[0].QuiesceTime = time.Second
	l := newLab(t, cfg)
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	for range 6 {
		q.post(write(0, 2048), nil, 1<<20) // waits for data, or for memory
	}
	q.post(read(0, 2048), nil, 1<<20) // is held in the backend
	fused := rw(nvme.OpCompare, 0, 1)
	fused.Flags = nvme.FlagFuseFirst
	q.post(fused, make([]byte, 512), 0) // waits for its second half
	for range 4 {
		q.nextOf(pdu.TypeR2T)
	}
	q.send(set(make([]byte, 24), 0, 0x0a))
	q.terminated()
	q.close()
	for range 30 {
		l.advance(100 * time.Millisecond)
	}
	if all, _ := l.target.Connections(); all != 1 {
		t.Errorf("%d connections", all)
	}
}

// TestAddressOfAll gives an address to connect to for a port that listens at
// all addresses.
func TestAddressOfAll(t *testing.T) {
	for listen, want := range map[string]string{"0.0.0.0:0": "traddr:127.0.0.1 ", "[::]:0": "traddr:::1 "} {
		cfg := oneNamespace(backend.NewNull(1 << 20))
		cfg.Ports = []target.PortConfig{{Address: mustAddr(listen)}}
		l := newLab(t, cfg)
		if got := l.target.Address(nqn); !strings.Contains(got, want) || !strings.HasSuffix(got, nqn) {
			t.Errorf("%s: %q", listen, got)
		}
		if got := l.target.DiscoveryAddress(); !strings.HasSuffix(got, nvme.DiscoveryNQN) {
			t.Errorf("%s: %q", listen, got)
		}
	}
	tgt, err := target.New(target.Config{Ports: []target.PortConfig{}, Subsystems: []target.SubsystemConfig{}})
	must(t, err)
	if a := tgt.Addr(); a.IsValid() {
		t.Errorf("address %v without ports", a)
	}
	must(t, tgt.Close())
}
