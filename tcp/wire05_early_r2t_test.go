package tcp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// clog fills the way to the peer: a large write, whose data was asked for, and
// which the peer does not read. The write is returned.
func clog(r *rig, size int) (o *op, q *tcptest.Request, data []byte) {
	r.t.Helper()
	data = pattern(make([]byte, size), uint64(size))
	o = r.write(data, 0)
	q = r.command(nvme.OpWrite)
	r.feed(r.peer.R2T(q.Cmd.CID, 0x10, 0, uint32(size)))
	before := -1
	r.until("the socket to be full", func() bool { // nothing goes any more
		n := tcp.Pending(r.qp)
		same := n == before
		before = n
		return same && n > 0
	})
	return o, q, data
}

// sink is what the peer takes in: the data of writes, by command, each checked
// to come in order and to be what it should.
type sink struct {
	c     *tcptest.Conn
	seen  []uint16 // commands whose capsules came
	parts map[uint16]*part
}

// part is the data of one write that R2Ts have asked for.
type part struct {
	data  []byte
	ttags []uint16 // of the R2Ts, in order
	ends  []uint32 // where each ends
	off   uint32
}

func (s *sink) expect(cid uint16, data []byte, ttag uint16, n uint32) {
	if s.parts == nil {
		s.parts = map[uint16]*part{}
	}
	p := s.parts[cid]
	if p == nil {
		p = &part{data: data}
		s.parts[cid] = p
	}
	p.ttags = append(p.ttags, ttag)
	p.ends = append(p.ends, n)
}

// take reads one PDU.
func (s *sink) take() error {
	p, err := s.c.Next()
	if err != nil {
		return err
	}
	if p.Type() == pdu.TypeCapsuleCmd {
		s.seen = append(s.seen, tcptest.Command(&p).CID)
		return nil
	}
	if p.Type() != pdu.TypeH2CData {
		return fmt.Errorf("unexpected %v", p.Type())
	}
	cid := (*pdu.H2CData)(p.Header).CCCID()
	x := s.parts[cid]
	if x == nil || len(x.ttags) == 0 {
		return fmt.Errorf("H2CData for command %#x, which no R2T asked for", cid)
	}
	n := uint32(len(p.Data))
	last := x.off+n == x.ends[0]
	for _, check := range []tcptest.Check{tcptest.H2C(cid, x.ttags[0], x.off, n, last), tcptest.Data(x.data[x.off : x.off+n])} {
		if err := check(&p); err != nil {
			return err
		}
	}
	if x.off += n; last {
		x.ttags, x.ends = x.ttags[1:], x.ends[1:]
	}
	return nil
}

// takeAll reads until all data that was asked for is there.
func (s *sink) takeAll() error {
	for cid, p := range s.parts {
		for len(p.ttags) > 0 {
			if err := s.take(); err != nil {
				return fmt.Errorf("waiting for the data of command %#x: %w", cid, err)
			}
		}
	}
	return nil
}

// clogSize is more than the send queue and the sockets' buffers hold together.
const clogSize = tcp.TxEnough + 1<<20

func clogRig(cfg rigConfig) rigConfig {
	cfg.tcp.SendBuffer = 128 << 10
	cfg.peerBuffer = 64 << 10
	cfg.icresp.MAXH2CDATA = 128 << 10
	return cfg
}

// cid returns the identifier of the outstanding command for an LBA. The peer
// cannot know it before it has the capsule.
func (r *rig) cid(lba uint64) uint16 {
	r.t.Helper()
	for i := range r.qp.Trackers() {
		q := r.qp.Tracker(i)
		if l, _ := tcptest.LBA(&q.Cmd); l == lba && r.qp.Find(q.Cmd.CID) != nil {
			return q.Cmd.CID
		}
	}
	r.t.Fatalf("no command for LBA %d is outstanding", lba)
	return 0
}

// The R2T of a command is there while the command's own capsule is still in
// the send queue. The data follows the capsule.
func TestWireCase05R2TBeforeCapsuleSent(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		r := newRig(t, clogRig(cfg))
		large, q, data := clog(r, clogSize)
		second := pattern(make([]byte, 64<<10), 2)
		o := r.write(second, 100)
		cid := r.cid(100)
		r.feed(r.peer.R2T(cid, 1, 0, 4096))
		r.feed(r.peer.R2T(cid, 2, 4096, uint32(len(second)-4096)))
		in := sink{c: r.peer}
		in.expect(q.Cmd.CID, data, 0x10, clogSize)
		in.expect(cid, second, 1, 4096)
		in.expect(cid, second, 2, uint32(len(second)))
		r.while(func(context.Context) error {
			for len(in.seen) == 0 {
				if err := in.take(); err != nil {
					return err
				}
			}
			if in.seen[0] != cid || in.parts[cid].off != 0 {
				return fmt.Errorf("data before the capsule of command %#x", cid)
			}
			return in.takeAll()
		})
		r.feed(q.Response(0, 0))
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid}))
		r.until("completions", func() bool { return large.isDone() && o.isDone() })
		large.want(t, nvme.StatusSuccess)
		o.want(t, nvme.StatusSuccess)
	})
}

// A command that is not even in the send queue cannot be known to the
// controller: whatever comes for it ends the connection.
func TestWireCase05PDUBeforeCapsuleQueued(t *testing.T) {
	t.Parallel()
	builds := map[pdu.Type]func(c *tcptest.Conn, cid uint16) []byte{
		pdu.TypeR2T:         func(c *tcptest.Conn, cid uint16) []byte { return c.R2T(cid, 1, 0, 512) },
		pdu.TypeC2HData:     func(c *tcptest.Conn, cid uint16) []byte { return c.C2HData(pdu.LastPDU, cid, 0, make([]byte, 512)) },
		pdu.TypeCapsuleResp: func(c *tcptest.Conn, cid uint16) []byte { return c.CapsuleResp(&nvme.Completion{CID: cid}) },
	}
	for typ, build := range builds {
		t.Run(typ.String(), func(t *testing.T) {
			r := newRig(t, clogRig(rigConfig{size: 1024, inCapsule: 512}))
			clog(r, clogSize)
			buf := make([]byte, 512)
			lba := uint64(1000)
			for ; tcp.Backlog(r.qp) == 0; lba++ {
				r.write(buf, lba)
			}
			o := r.write(buf, lba)
			if typ == pdu.TypeC2HData {
				lba++
				o = r.read(buf, lba)
			}
			r.feed(build(r.peer, r.cid(lba)))
			fei := uint32(pdu.OffCCCID)
			if typ == pdu.TypeCapsuleResp {
				fei = 20
			}
			wantPDUError(t, r.lost(), typ, pdu.FESInvalidHeaderField, fei)
			o.want(t, nvme.StatusCommandAbortedByHost)
			wantAborted(r)
		})
	}
}

// A command that ends in an error while its data is in the send queue: the
// stream needs the data, so the memory stays the queue's until it has gone,
// and the command completes then.
func TestWireCase05ErrorWhileDataQueued(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		r := newRig(t, clogRig(cfg))
		o, q, data := clog(r, clogSize)
		r.feed(q.Response(nvme.StatusWriteFault, 0))
		for range 100 {
			r.poll()
		}
		if o.isDone() {
			t.Fatal("completed while its data is in the send queue")
		}
		// What is queued of the answer to the R2T comes, whole PDUs of it; the
		// rest is not worth sending.
		small := pattern(make([]byte, 512), 5)
		next := r.write(small, 7)
		in := sink{c: r.peer}
		in.expect(q.Cmd.CID, data, 0x10, clogSize)
		r.while(func(context.Context) error {
			for len(in.seen) == 0 {
				if err := in.take(); err != nil {
					return err
				}
			}
			cid := in.seen[0]
			in.parts = nil
			in.expect(cid, small, 1, 512)
			in.c.Send(in.c.R2T(cid, 1, 0, 512))
			if err := in.takeAll(); err != nil {
				return err
			}
			in.c.Send(in.c.CapsuleResp(&nvme.Completion{CID: cid}))
			return nil
		})
		r.until("completions", func() bool { return o.isDone() && next.isDone() })
		o.want(t, nvme.StatusWriteFault)
		next.want(t, nvme.StatusSuccess)
	})
}

// Once a command has ended, nothing more may come for it, even if the host has
// not yet told its owner.
func TestWireCase05PDUAfterEarlyError(t *testing.T) {
	t.Parallel()
	for _, typ := range []pdu.Type{pdu.TypeCapsuleResp, pdu.TypeR2T} {
		t.Run(typ.String(), func(t *testing.T) {
			r := newRig(t, clogRig(rigConfig{}))
			o, q, _ := clog(r, clogSize)
			resp := q.Response(nvme.StatusWriteFault, 0)
			r.feed(resp)
			fei := uint32(20)
			if typ == pdu.TypeR2T {
				resp, fei = r.peer.R2T(q.Cmd.CID, 3, clogSize, 4), pdu.OffCCCID
			}
			r.feed(resp)
			wantPDUError(t, r.lost(), typ, pdu.FESInvalidHeaderField, fei)
			o.want(t, nvme.StatusCommandAbortedByHost)
		})
	}
}

// A controller cannot have written data that was not yet sent to it.
func TestWireCase05SuccessWhileDataQueued(t *testing.T) {
	t.Parallel()
	t.Run("asked for", func(t *testing.T) {
		r := newRig(t, clogRig(rigConfig{}))
		clog(r, clogSize)
		data := make([]byte, 8192)
		r.write(data, 100)
		cid := r.cid(100)
		r.feed(r.peer.R2T(cid, 1, 0, 8192))
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid}))
		wantPDUError(t, r.lost(), pdu.TypeCapsuleResp, pdu.FESSequenceError, 0)
		wantAborted(r)
	})
	t.Run("in capsule", func(t *testing.T) {
		r := newRig(t, clogRig(rigConfig{inCapsule: 8192}))
		clog(r, clogSize)
		r.write(make([]byte, 8192), 100)
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: r.cid(100)}))
		wantPDUError(t, r.lost(), pdu.TypeCapsuleResp, pdu.FESSequenceError, 0)
		wantAborted(r)
	})
}

// Commands that end in an error while their R2Ts wait for room give their
// trackers to others, whose R2Ts wait as well. Nobody's turn gets lost.
func TestWireCase05R2TTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t, clogRig(rigConfig{size: 5}))
	large, q, data := clog(r, clogSize)
	if tcp.Waiting(r.qp) == 0 {
		t.Fatal("the large write does not wait")
	}
	small := pattern(make([]byte, 4096), 4)
	for i := range uint64(20) {
		lba := 1000 + i
		o := r.write(small, lba)
		r.feed(r.peer.R2T(r.cid(lba), 1, 0, 4096))
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: r.cid(lba), StatusPhase: uint16(nvme.StatusWriteFault) << 1}))
		o.want(t, nvme.StatusWriteFault)
	}
	last := r.write(small, 5000)
	cid := r.cid(5000)
	r.feed(r.peer.R2T(cid, 2, 0, 4096))
	in := sink{c: r.peer}
	in.expect(q.Cmd.CID, data, 0x10, clogSize)
	in.expect(cid, small, 2, 4096)
	r.while(func(context.Context) error { return in.takeAll() })
	r.feed(q.Response(0, 0))
	r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid}))
	r.until("completions", func() bool { return large.isDone() && last.isDone() })
	large.want(t, nvme.StatusSuccess)
	last.want(t, nvme.StatusSuccess)
}
