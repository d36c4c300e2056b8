package tcp_test

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// echo answers commands of one kind, without allocating: what it sends is made
// beforehand, but for the command identifier.
type echo struct {
	r       *rig
	nc      net.Conn
	capsule int    // length of a command capsule
	in      []byte // room for a batch of them
	answer  []byte // to one command
	out     []byte // room for a batch of those
	cids    []int  // where the command identifier stands in an answer
	now     int64
	ended   int // commands
	failed  nvme.Status
}

const maxDepth = 128

// newEcho makes a rig for commands of size bytes. Writes go in the capsule.
func newEcho(tb testing.TB, header, data bool, op nvme.Opcode, size int) *echo {
	cfg := digestRig(header, data)
	cfg.size, cfg.inCapsule = maxDepth+2, size
	r := newRig(tb, cfg)
	e := &echo{r: r, nc: r.peer.NetConn(), now: r.now}
	params := r.peer.Params()
	capsule, resp, c2h := params.Layout(pdu.TypeCapsuleCmd), params.Layout(pdu.TypeCapsuleResp), params.Layout(pdu.TypeC2HData)
	switch op {
	case nvme.OpRead:
		e.capsule = int(capsule.PLEN(0))
		e.answer = pdu.AppendC2HData(nil, &c2h, pdu.LastPDU|pdu.Success, pdu.C2HDataFields{}, make([]byte, size))
		e.cids = []int{pdu.OffCCCID}
	case nvme.OpWrite:
		e.capsule = int(capsule.PLEN(uint32(size)))
		e.answer = pdu.AppendCapsuleResp(nil, &resp, &nvme.Completion{})
		e.cids = []int{20}
	}
	e.in, e.out = make([]byte, maxDepth*e.capsule), make([]byte, 0, maxDepth*len(e.answer))
	return e
}

// countDone is the completion of the echo's commands.
func countDone(arg any, st nvme.Status) {
	e := arg.(*echo)
	e.ended++
	if !st.OK() {
		e.failed = st
	}
}

func (e *echo) poll() {
	e.now += 25_000
	e.r.p.Poll(e.now)
}

// collect reads n capsules. While the initiator cannot send all of them, there
// is something to read; so neither waits for the other.
func (e *echo) collect(n int) error {
	in, got := e.in[:n*e.capsule], 0
	for {
		e.poll()
		if tcp.Pending(e.r.qp) == 0 {
			break
		}
		k, err := e.nc.Read(in[got:])
		if err != nil {
			return err
		}
		got += k
	}
	_, err := io.ReadFull(e.nc, in[got:])
	return err
}

// serve answers the n capsules that were collected.
func (e *echo) serve(n int) error {
	out := e.out[:0]
	for in := e.in[:n*e.capsule]; len(in) > 0; in = in[e.capsule:] {
		cid := binary.LittleEndian.Uint16(in[10:])
		at := len(out)
		out = append(out, e.answer...)
		for _, off := range e.cids {
			binary.LittleEndian.PutUint16(out[at+off:], cid)
		}
		if e.r.peer.Params().HDGST {
			head := out[at:]
			hlen := int((*pdu.Common)(head).HLEN())
			pdu.PutDigest(head[hlen:], pdu.Digest(head[:hlen]))
		}
	}
	const step = 128 << 10 // which any socket takes, if nothing is in it
	for len(out) > 0 {
		k := min(step, len(out))
		want := tcp.Received(e.r.qp) + uint64(k)
		if _, err := e.nc.Write(out[:k]); err != nil {
			return err
		}
		out = out[k:]
		for len(out) > 0 && tcp.Received(e.r.qp) < want {
			e.poll()
		}
	}
	return nil
}

// batch passes depth commands from submission to completion.
func (e *echo) batch(op nvme.Opcode, buf []byte, depth int) error {
	want := e.ended + depth
	for i := range depth {
		var err error
		if op == nvme.OpRead {
			err = e.r.q.Read(buf, uint64(i), uint32(len(buf)/512), countDone, e)
		} else {
			err = e.r.q.Write(buf, uint64(i), uint32(len(buf)/512), countDone, e)
		}
		if err != nil {
			return err
		}
	}
	return e.turn(want, depth)
}

// turn answers the depth commands that were submitted.
func (e *echo) turn(want, depth int) error {
	if err := e.collect(depth); err != nil {
		return err
	}
	if err := e.serve(depth); err != nil {
		return err
	}
	for e.ended < want {
		e.poll()
	}
	if !e.failed.OK() {
		return e.failed
	}
	return nil
}

// unixPair makes a connected pair of Unix stream sockets, which cost less than
// TCP. The first is used by its descriptor.
func unixPair(tb testing.TB) (fd int, peer net.Conn) {
	tb.Helper()
	l, err := net.Listen("unix", filepath.Join(tb.TempDir(), "s"))
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		a.Close()
		b.Close()
	})
	_ = a.(*net.UnixConn).SetWriteBuffer(4 << 20)
	_ = b.(*net.UnixConn).SetWriteBuffer(4 << 20)
	raw, err := a.(*net.UnixConn).SyscallConn()
	if err != nil {
		tb.Fatal(err)
	}
	if err := raw.Control(func(v uintptr) { fd = int(v) }); err != nil {
		tb.Fatal(err)
	}
	return fd, b
}
