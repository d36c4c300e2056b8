package tcp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// odd are types that a host never gets, in the order of the byte: those that
// only a controller gets, and those that nobody knows.
var odd = []pdu.Type{
	0x00, 0x02, 0x04, 0x06, 0x08, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x13, 0x15, 0x17, 0x19,
	0x20, 0x3f, 0x41, 0x7f, 0x80, 0x81, 0x83, 0x85, 0x87, 0x89, 0xf0, 0xf7, 0xfe, 0xff,
}

// oddPDU is a PDU of a type, well formed as far as there is a form for it.
func oddPDU(t pdu.Type) []byte {
	n := t.HeaderLen()
	if n == 0 {
		n = 24
	}
	b := make([]byte, n)
	h := (*pdu.Common)(b)
	h.SetType(t)
	h.SetHLEN(uint8(n))
	h.SetPLEN(uint32(n))
	return b
}

// outstanding submits one command of each kind and returns when the peer has
// them: nothing of them is answered, but the data of one write is asked for.
func outstanding(r *rig) {
	r.read(make([]byte, 4096), 0)
	r.read(make([]byte, 128<<10), 8)
	r.write(make([]byte, 512), 16)
	r.write(make([]byte, 64<<10), 24)
	r.readV([][]byte{make([]byte, 100), make([]byte, 412)}, 3)
	o := r.ops.add("flush")
	r.must(r.q.Flush(opDone, o))
	for range 6 {
		r.flush()
		r.peer.Expect(pdu.TypeCapsuleCmd)
	}
}

// wantAborted checks that all commands were given up by the host.
func wantAborted(r *rig) {
	r.t.Helper()
	for _, o := range r.ops {
		o.want(r.t, nvme.StatusCommandAbortedByHost)
	}
}

// wantPDUError checks that err is an error about a PDU.
func wantPDUError(t testing.TB, err error, typ pdu.Type, fes pdu.FES, fei uint32) {
	t.Helper()
	var e *pdu.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want a *pdu.Error", err)
	}
	if e.PDU != typ || e.FES != fes || e.FEI != fei {
		t.Errorf("the error is %v (type %#x, FES %#x, FEI %#x), want type %#x, FES %#x, FEI %#x",
			e, uint8(e.PDU), uint16(e.FES), e.FEI, uint8(typ), uint16(fes), fei)
	}
}

// wantHeader checks which header a TermReq brings back.
func wantHeader(t testing.TB, e *pdu.PeerError, sent []byte) {
	t.Helper()
	if n := len(e.Header); n < pdu.CommonSize || n > len(sent) || string(e.Header) != string(sent[:n]) {
		t.Errorf("the H2CTermReq brings back % x, sent was % x", e.Header, sent)
	}
}

// A PDU of a type that does not belong there, with commands outstanding: the
// controller is told, the connection ends, no command hangs.
func TestWireCase01UnknownPDU(t *testing.T) {
	t.Parallel()
	for _, typ := range odd {
		for _, digests := range []bool{false, true} {
			t.Run(fmt.Sprintf("%#02x digests %v", uint8(typ), digests), func(t *testing.T) {
				r := newRig(t, digestRig(digests, digests))
				outstanding(r)
				b := oddPDU(typ)
				r.feed(b)
				wantPDUError(t, r.lost(), typ, pdu.FESInvalidHeaderField, 0)
				wantHeader(t, r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 0), b)
				wantAborted(r)
			})
		}
	}
}

// The same before the connection is ready: the attempt to connect fails with
// the reason.
func TestWireCase01UnknownPDUWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"handshake", "connect"} {
		for _, typ := range odd {
			t.Run(fmt.Sprintf("%s %#02x", phase, uint8(typ)), func(t *testing.T) {
				b := oddPDU(typ)
				connectError(t, rigConfig{}, func(c *tcptest.Conn) {
					if phase == "connect" {
						c.Handshake(pdu.ICRespFields{})
						c.ExpectCommand(nvme.OpFabrics)
					} else {
						c.ExpectICReq()
					}
					c.Send(b)
					wantHeader(t, c.ExpectTermReq(pdu.FESInvalidHeaderField, 0), b)
				}, func(err error) { wantPDUError(t, err, typ, pdu.FESInvalidHeaderField, 0) })
			})
		}
	}
}

// PDUs that a host knows, but not now.
func TestWireCase01OutOfPhase(t *testing.T) {
	t.Parallel()
	for _, typ := range []pdu.Type{pdu.TypeCapsuleResp, pdu.TypeC2HData, pdu.TypeR2T} {
		t.Run(typ.String(), func(t *testing.T) {
			connectError(t, rigConfig{}, func(c *tcptest.Conn) {
				c.ExpectICReq()
				c.Send(oddPDU(typ))
				c.ExpectTermReq(pdu.FESSequenceError, 0)
			}, func(err error) { wantPDUError(t, err, typ, pdu.FESSequenceError, 0) })
		})
	}
	t.Run("second ICResp", func(t *testing.T) {
		connectError(t, rigConfig{}, func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{})
			c.ExpectCommand(nvme.OpFabrics)
			c.SendICResp(pdu.ICRespFields{})
			c.ExpectTermReq(pdu.FESSequenceError, 0)
		}, func(err error) { wantPDUError(t, err, pdu.TypeICResp, pdu.FESSequenceError, 0) })
	})
	t.Run("ICResp when ready", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		outstanding(r)
		r.feed(pdu.AppendICResp(nil, pdu.ICRespFields{MAXH2CDATA: 4096}))
		wantPDUError(t, r.lost(), pdu.TypeICResp, pdu.FESSequenceError, 0)
		r.peer.ExpectTermReq(pdu.FESSequenceError, 0)
		wantAborted(r)
	})
}

// Header fields that cannot be, in every PDU that a host takes: the TermReq
// names the field.
func TestWireCase01BadHeaderField(t *testing.T) {
	t.Parallel()
	type change struct {
		name string
		fei  uint32
		bad  func(b []byte)
	}
	changes := []change{
		{"HLEN", 2, func(b []byte) { b[2]++ }},
		{"PLEN short", 4, func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 8) }},
		{"PLEN 0", 4, func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 0) }},
		{"header digest", 1, func(b []byte) { b[1] |= uint8(pdu.HDGSTF) }},
	}
	data := append(changes[:len(changes):len(changes)],
		change{"data digest", 1, func(b []byte) { b[1] |= uint8(pdu.DDGSTF) }},
		change{"PDO inside of the header", 3, func(b []byte) { b[3] = 20 }},
		change{"PDO not aligned", 3, func(b []byte) { b[3] = 25 }},
		change{"DATAL", 16, func(b []byte) { b[16]++ }},
	)
	long := change{"PLEN long", 4, func(b []byte) { b[4]++ }}
	for _, typ := range []pdu.Type{pdu.TypeCapsuleResp, pdu.TypeC2HData, pdu.TypeR2T} {
		list := append(changes[:len(changes):len(changes)], long)
		if typ == pdu.TypeC2HData {
			list = data
		}
		for _, ch := range list {
			t.Run(typ.String()+" "+ch.name, func(t *testing.T) {
				r := newRig(t, rigConfig{})
				r.read(make([]byte, 512), 0)
				q := r.command(nvme.OpRead)
				var b []byte
				switch typ {
				case pdu.TypeCapsuleResp:
					b = q.Response(nvme.StatusInternalError, 0)
				case pdu.TypeC2HData:
					b = r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, make([]byte, 512))
				case pdu.TypeR2T:
					b = r.peer.R2T(q.Cmd.CID, 1, 0, 512)
				}
				ch.bad(b)
				r.feed(b)
				wantPDUError(t, r.lost(), typ, pdu.FESInvalidHeaderField, ch.fei)
				wantHeader(t, r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, ch.fei), b)
				wantAborted(r)
			})
		}
	}
}

// PDUs that are right by themselves, but not for any command: of no command,
// of the wrong direction, of a command that has completed.
func TestWireCase01NoSuchCommand(t *testing.T) {
	t.Parallel()
	type build func(c *tcptest.Conn, cid uint16) []byte
	response := func(c *tcptest.Conn, cid uint16) []byte { return c.CapsuleResp(&nvme.Completion{CID: cid}) }
	c2h := func(c *tcptest.Conn, cid uint16) []byte { return c.C2HData(pdu.LastPDU, cid, 0, make([]byte, 512)) }
	r2t := func(c *tcptest.Conn, cid uint16) []byte { return c.R2T(cid, 1, 0, 512) }
	kinds := []struct {
		typ   pdu.Type
		fei   uint32
		build build
	}{{pdu.TypeCapsuleResp, 20, response}, {pdu.TypeC2HData, 8, c2h}, {pdu.TypeR2T, 8, r2t}}
	for _, kind := range kinds {
		// The command identifiers that the peer might take for one of ours.
		for _, which := range []string{"next", "past the last", "0xffff", "completed"} {
			t.Run(kind.typ.String()+" "+which, func(t *testing.T) {
				r := newRig(t, rigConfig{})
				r.read(make([]byte, 512), 0)
				done := r.command(nvme.OpRead)
				r.feed(done.Response(nvme.StatusInternalError, 0))
				r.ops[0].want(t, nvme.StatusInternalError)
				r.ops = r.ops[:0]
				outstanding(r)
				cid := map[string]uint16{"next": done.Cmd.CID + 7, "past the last": done.Cmd.CID | 31, "0xffff": 0xffff, "completed": done.Cmd.CID}[which]
				r.feed(kind.build(r.peer, cid))
				wantPDUError(t, r.lost(), kind.typ, pdu.FESInvalidHeaderField, kind.fei)
				r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, kind.fei)
				wantAborted(r)
				if n := r.qp.Stats().Spurious; n != 1 {
					t.Errorf("%d spurious PDUs counted, want 1", n)
				}
			})
		}
	}
	t.Run("C2HData for a write", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		r.write(make([]byte, 4096), 0)
		q := r.command(nvme.OpWrite)
		r.feed(c2h(r.peer, q.Cmd.CID))
		wantPDUError(t, r.lost(), pdu.TypeC2HData, pdu.FESInvalidHeaderField, 8)
		r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 8)
		wantAborted(r)
	})
	t.Run("R2T for a read", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		r.read(make([]byte, 4096), 0)
		q := r.command(nvme.OpRead)
		r.feed(r2t(r.peer, q.Cmd.CID))
		wantPDUError(t, r.lost(), pdu.TypeR2T, pdu.FESInvalidHeaderField, 8)
		r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 8)
		wantAborted(r)
	})
}

// A wrong header digest ends the connection; the TermReq brings the digest that
// was received.
func TestWireCase01HeaderDigest(t *testing.T) {
	t.Parallel()
	for _, typ := range []pdu.Type{pdu.TypeCapsuleResp, pdu.TypeC2HData, pdu.TypeR2T} {
		t.Run(typ.String(), func(t *testing.T) {
			r := newRig(t, digestRig(true, false))
			r.write(make([]byte, 4096), 0)
			q := r.command(nvme.OpWrite)
			outstanding(r)
			b := map[pdu.Type][]byte{
				pdu.TypeCapsuleResp: q.Response(nvme.StatusInternalError, 0),
				pdu.TypeC2HData:     r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, make([]byte, 512)),
				pdu.TypeR2T:         r.peer.R2T(q.Cmd.CID, 1, 0, 512),
			}[typ]
			b = tcptest.CorruptHeaderDigest(b)
			got := pdu.GetDigest(b[24:])
			r.feed(b)
			wantPDUError(t, r.lost(), typ, pdu.FESHeaderDigestError, got)
			wantHeader(t, r.peer.ExpectTermReq(pdu.FESHeaderDigestError, got), b)
			wantAborted(r)
		})
	}
}

// digestRig is a rig with digests.
func digestRig(header, data bool) rigConfig {
	var cfg rigConfig
	cfg.tcp.HeaderDigest, cfg.tcp.DataDigest = header, data
	cfg.icresp.HDGST, cfg.icresp.DDGST = header, data
	return cfg
}

// connectError has the peer play script to the connection of an I/O queue, and
// gives check the error with which opening the queue fails.
func connectError(t *testing.T, cfg rigConfig, script tcptest.Script, check func(error)) {
	t.Helper()
	cfg.script = script
	cfg.broken = true
	r := newRig(t, cfg)
	err := r.whileErr(func(ctx context.Context) error {
		_, err := r.c.OpenQueue(ctx, r.p, nvme.QueueConfig{})
		return err
	})
	if err == nil {
		t.Fatal("the queue was opened")
	}
	var op *nvme.OpError
	if !errors.As(err, &op) || op.Queue != 1 {
		t.Errorf("the error is %v, want an *nvme.OpError for queue 1", err)
	}
	check(err)
}
