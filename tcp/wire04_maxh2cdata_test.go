package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// receiveR2T asks for n bytes at off of a write and checks each H2CData of the
// answer: none above limit, in order, the last one marked.
func receiveR2T(c *tcptest.Conn, cid, ttag uint16, off, n, limit uint32, want []byte) {
	c.Send(c.R2T(cid, ttag, off, n))
	expectR2T(c, cid, ttag, off, n, limit, want)
}

func expectR2T(c *tcptest.Conn, cid, ttag uint16, off, n, limit uint32, want []byte) {
	for end := off + n; off < end; {
		k := min(limit, end-off)
		c.Expect(pdu.TypeH2CData, tcptest.H2C(cid, ttag, off, k, off+k == end), tcptest.Data(want[off:off+k]))
		off += k
	}
}

// R2Ts larger than MAXH2CDATA are answered in pieces of that size.
func TestWireCase04Split(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		for _, limit := range []uint32{4096, 4100, 8192, 64 << 10, 1<<32 - 4} {
			cfg.icresp.MAXH2CDATA = limit
			t.Run(fmt.Sprintf("MAXH2CDATA=%d", limit), func(t *testing.T) { splitWrites(t, cfg, limit) })
		}
	})
}

func splitWrites(t *testing.T, cfg rigConfig, limit uint32) {
	r := newRig(t, cfg)
	rnd := rand.New(rand.NewPCG(uint64(limit), 1))
	for i, size := range []uint32{512, 4096, 4608, 24 << 10, 128 << 10, 32 << 10, 1 << 10} {
		data := pattern(make([]byte, size), uint64(size))
		var o *op
		if i%2 == 1 {
			o = r.writeV(cutUp(rnd, data), 0)
		} else {
			o = r.write(data, 0)
		}
		cid := r.command(nvme.OpWrite, tcptest.DataLen(0)).Cmd.CID
		// The controller asks for it in one R2T, then in pieces of odd lengths.
		r.play(func(c *tcptest.Conn) {
			half := size / 2 / 4 * 4
			receiveR2T(c, cid, 0xffff, 0, half, limit, data)
			receiveR2T(c, cid, 0, half, 4, limit, data)
			if rest := size - half - 4; rest > 0 {
				receiveR2T(c, cid, 7, half+4, rest, limit, data)
			}
		})
		if o.isDone() {
			t.Fatal("completed without a response")
		}
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid}))
		o.want(t, nvme.StatusSuccess)
	}
}

// Values of MAXH2CDATA that the specification does not allow.
func TestWireCase04BadMaxH2CData(t *testing.T) {
	t.Parallel()
	for _, v := range []uint32{1, 4, 512, 4092, 4095, 4097, 4098, 4099, 8190, 65537, 1<<31 + 1, 1<<32 - 1} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			var sent []byte
			connectError(t, rigConfig{}, func(c *tcptest.Conn) {
				c.ExpectICReq()
				sent = pdu.AppendICResp(nil, pdu.ICRespFields{MAXH2CDATA: v})
				c.Send(sent)
				wantHeader(t, c.ExpectTermReq(pdu.FESInvalidHeaderField, 12), sent)
			}, func(err error) { wantPDUError(t, err, pdu.TypeICResp, pdu.FESInvalidHeaderField, 12) })
		})
	}
	t.Run("0", func(t *testing.T) { // which SendICResp takes for a default
		connectError(t, rigConfig{}, func(c *tcptest.Conn) {
			c.ExpectICReq()
			b := pdu.AppendICResp(nil, pdu.ICRespFields{})
			c.Send(b)
			c.ExpectTermReq(pdu.FESInvalidHeaderField, 12)
		}, func(err error) { wantPDUError(t, err, pdu.TypeICResp, pdu.FESInvalidHeaderField, 12) })
	})
}

// Other fields of the ICResp that cannot be.
func TestWireCase04BadICResp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		f    pdu.ICRespFields
		fes  pdu.FES
		fei  uint32
	}{
		{"PFV 1", pdu.ICRespFields{PFV: 1}, pdu.FESUnsupportedParameter, 8},
		{"PFV 0xffff", pdu.ICRespFields{PFV: 0xffff}, pdu.FESUnsupportedParameter, 8},
		{"CPDA 32", pdu.ICRespFields{CPDA: 32}, pdu.FESInvalidHeaderField, 10},
		{"CPDA 255", pdu.ICRespFields{CPDA: 255}, pdu.FESInvalidHeaderField, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			connectError(t, rigConfig{}, func(c *tcptest.Conn) {
				c.Handshake(tt.f)
				c.ExpectTermReq(tt.fes, tt.fei)
			}, func(err error) { wantPDUError(t, err, pdu.TypeICResp, tt.fes, tt.fei) })
		})
	}
}

// R2Ts that ask for what is not there, or was asked for already, or leave
// something out.
func TestWireCase04BadR2T(t *testing.T) {
	t.Parallel()
	const n = 8192
	tests := []struct {
		name   string
		first  uint32 // bytes asked for, and got, before
		off    uint32
		length uint32
		fes    pdu.FES
		fei    uint32
	}{
		{"nothing", 0, 0, 0, pdu.FESInvalidHeaderField, 16},
		{"more than the write", 0, 0, n + 4, pdu.FESDataOutOfRange, 0},
		{"beyond the end", n, n, 4, pdu.FESDataOutOfRange, 0},
		{"end beyond the end", 4096, 4096, 4100, pdu.FESDataOutOfRange, 0},
		{"far beyond the end", 0, 1 << 31, 4096, pdu.FESDataOutOfRange, 0},
		{"end beyond 4 GiB", 0, 1<<32 - 4, 8, pdu.FESDataOutOfRange, 0},
		{"once more", 4096, 0, 4096, pdu.FESDataOutOfRange, 0},
		{"overlap", 4096, 4092, 8, pdu.FESDataOutOfRange, 0},
		{"gap at the start", 0, 4096, 4096, pdu.FESDataOutOfRange, 0},
		{"gap", 2048, 4096, 4096, pdu.FESDataOutOfRange, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, rigConfig{})
			data := pattern(make([]byte, n), 9)
			r.write(data, 0)
			q := r.command(nvme.OpWrite)
			if tt.first > 0 {
				r.play(func(c *tcptest.Conn) { receiveR2T(c, q.Cmd.CID, 1, 0, tt.first, n, data) })
			}
			b := r.peer.R2T(q.Cmd.CID, 2, tt.off, tt.length)
			r.feed(b)
			wantPDUError(t, r.lost(), pdu.TypeR2T, tt.fes, tt.fei)
			wantHeader(t, r.peer.ExpectTermReq(tt.fes, tt.fei), b)
			wantAborted(r)
		})
	}
}

// A write that succeeds without its data having been asked for did not happen.
func TestWireCase04SuccessWithoutAllData(t *testing.T) {
	t.Parallel()
	for _, asked := range []uint32{0, 4096} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			data := make([]byte, 8192)
			r.write(data, 0)
			q := r.command(nvme.OpWrite)
			if asked > 0 {
				r.play(func(c *tcptest.Conn) { receiveR2T(c, q.Cmd.CID, 1, 0, asked, 4096, data) })
			}
			r.feed(q.Response(nvme.StatusSuccess, 0))
			wantPDUError(t, r.lost(), pdu.TypeCapsuleResp, pdu.FESSequenceError, 0)
			r.peer.ExpectTermReq(pdu.FESSequenceError, 0)
			wantAborted(r)
		})
	}
}

// A controller may end a write with an error at any time, data asked for or
// not, and the connection goes on.
func TestWireCase04ErrorBeforeAllData(t *testing.T) {
	t.Parallel()
	for _, asked := range []uint32{0, 4096, 8192} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			data := pattern(make([]byte, 8192), 2)
			o := r.write(data, 0)
			q := r.command(nvme.OpWrite)
			if asked > 0 {
				r.play(func(c *tcptest.Conn) { receiveR2T(c, q.Cmd.CID, 1, 0, asked, asked, data) })
			}
			r.feed(q.Response(nvme.StatusWriteFault, 0))
			o.want(t, nvme.StatusWriteFault)
			o = r.write(data, 0)
			q = r.command(nvme.OpWrite)
			var got []byte
			r.play(func(*tcptest.Conn) { got = q.Receive(4096, 1) })
			r.feed(q.Response(nvme.StatusSuccess, 0))
			o.want(t, nvme.StatusSuccess)
			if !bytes.Equal(got, data) {
				t.Error("data differs")
			}
		})
	}
}
