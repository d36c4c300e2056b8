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

// Parameters that the host asks for, and what it takes when it asks for them.
func TestICReq(t *testing.T) {
	t.Parallel()
	for _, cfg := range []tcp.Config{{}, {HPDA: 31, MaxR2T: 1}, {HPDA: 7, MaxR2T: 128, HeaderDigest: true}, {DataDigest: true, MaxR2T: 2}} {
		reqs := make(chan pdu.ICReqFields, 1)
		newRig(t, rigConfig{tcp: cfg, script: func(c *tcptest.Conn) {
			reqs <- c.Handshake(pdu.ICRespFields{HDGST: cfg.HeaderDigest, DDGST: cfg.DataDigest})
			c.AcceptConnect(1)
			c.HandOver()
		}})
		r2ts := uint32(7) // the default is 8
		if cfg.MaxR2T != 0 {
			r2ts = uint32(cfg.MaxR2T - 1)
		}
		want := pdu.ICReqFields{HPDA: cfg.HPDA, HDGST: cfg.HeaderDigest, DDGST: cfg.DataDigest, MAXR2T: r2ts}
		if got := <-reqs; got != want {
			t.Errorf("ICReq %+v, want %+v", got, want)
		}
	}
}

// Data to the host has to lie as HPDA says; more padding than needed is
// allowed.
func TestAlignmentToHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hpda uint8
		pdo  int
		ok   bool
	}{
		{0, 24, true}, {0, 28, true}, {0, 144, true}, {0, 26, false}, {0, 20, false}, {0, 148, false},
		{7, 32, true}, {7, 64, true}, {7, 128, true}, {7, 24, false}, {7, 36, false}, {7, 160, false},
		{31, 128, true}, {31, 64, false}, {31, 0, false},
	} {
		t.Run(fmt.Sprintf("HPDA=%d,PDO=%d", tt.hpda, tt.pdo), func(t *testing.T) {
			r := newRig(t, rigConfig{tcp: tcp.Config{HPDA: tt.hpda}})
			buf, data := make([]byte, 512), pattern(make([]byte, 512), 1)
			o := r.read(buf, 0)
			q := r.command(nvme.OpRead)
			b := r.peer.C2HData(pdu.LastPDU|pdu.Success, q.Cmd.CID, 0, data)
			h := (*pdu.Common)(b)
			// The header, as much padding as it takes, and the data.
			head := append([]byte(nil), b[:24]...)
			(*pdu.Common)(head).SetPDO(uint8(tt.pdo))
			(*pdu.Common)(head).SetPLEN(h.PLEN() - uint32(h.PDO()) + uint32(tt.pdo))
			stream := append(head, make([]byte, max(tt.pdo-24, 0))...)
			stream = append(stream, data...)
			if !tt.ok {
				r.feed(stream[:24])
				wantPDUError(t, r.lost(), pdu.TypeC2HData, pdu.FESInvalidHeaderField, 3)
				r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 3)
				wantAborted(r)
				return
			}
			r.feed(stream, 10, 25, 30)
			o.want(t, nvme.StatusSuccess)
			if string(buf) != string(data) {
				t.Error("data differs")
			}
		})
	}
}

// The controller may have as many R2Ts outstanding for a command as MAXR2T
// says, for each of several commands, and no more.
func TestMaxR2T(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 8, 128} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			r := newRig(t, clogRig(rigConfig{tcp: tcp.Config{MaxR2T: limit}}))
			large, q, data := clog(r, clogSize) // so that answers wait
			in := sink{c: r.peer}
			in.expect(q.Cmd.CID, data, 0x10, clogSize)
			var cids []uint16
			for i := range 3 {
				small := pattern(make([]byte, 129*512), uint64(i))
				lba := uint64(1000 * (i + 1))
				r.write(small, lba)
				cid := r.cid(lba)
				cids = append(cids, cid)
				for n := range limit {
					r.feed(r.peer.R2T(cid, uint16(n), uint32(n*512), 512))
					in.expect(cid, small, uint16(n), uint32((n+1)*512))
				}
				if limit < 129 && i == 2 {
					break
				}
			}
			if limit == 2 { // one more than that
				r.feed(r.peer.R2T(cids[1], 77, 1024, 512))
				wantPDUError(t, r.lost(), pdu.TypeR2T, pdu.FESR2TLimitExceeded, 0)
				wantAborted(r)
				return
			}
			r.while(func(context.Context) error { return in.takeAll() })
			if len(in.seen) != 3 {
				t.Errorf("%d capsules", len(in.seen))
			}
			// With all of them answered, there is room for as many again.
			for i, cid := range cids {
				for n := range limit {
					if at := limit + n; at < 129 {
						r.feed(r.peer.R2T(cid, uint16(at), uint32(at*512), 512))
						in.expect(cid, pattern(make([]byte, 129*512), uint64(i)), uint16(at), uint32((at+1)*512))
					}
				}
			}
			r.while(func(context.Context) error { return in.takeAll() })
			for _, cid := range cids {
				r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid, StatusPhase: uint16(nvme.StatusWriteFault) << 1}))
			}
			r.feed(q.Response(0, 0))
			large.want(t, nvme.StatusSuccess)
			for _, o := range r.ops[1:] {
				o.want(t, nvme.StatusWriteFault)
			}
		})
	}
}
