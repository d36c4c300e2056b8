package tcp_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// Nothing allocates from submission to completion, at any depth, with any
// digests.
func TestNoAllocations(t *testing.T) {
	for _, op := range []nvme.Opcode{nvme.OpRead, nvme.OpWrite} {
		for _, digests := range []bool{false, true} {
			for _, size := range []int{512, 4096, 64 << 10} {
				for _, depth := range []int{1, 32} {
					t.Run(fmt.Sprintf("%#x,digests=%v,size=%d,depth=%d", uint8(op), digests, size, depth), func(t *testing.T) {
						e := newEcho(t, digests, digests, op, size)
						buf := make([]byte, size)
						run := func() {
							if err := e.batch(op, buf, depth); err != nil {
								t.Error(err)
							}
						}
						run()
						if n := testing.AllocsPerRun(20, run); n != 0 {
							t.Errorf("%v allocations for %d commands", n, depth)
						}
					})
				}
			}
		}
	}
}

// Nor does anything allocate for writes whose data the controller asks for, in
// several R2Ts and several H2CData each.
func TestNoAllocationsR2T(t *testing.T) {
	const size, parts, limit = 64 << 10, 4, 4096
	for _, digests := range []bool{false, true} {
		cfg := digestRig(digests, digests)
		cfg.icresp.MAXH2CDATA = limit
		cfg.tcp.SendBuffer = 128 << 10 // all of it
		r := newRig(t, cfg)
		e := &echo{r: r, nc: r.peer.NetConn(), now: r.now}
		params := r.peer.Params()
		capsule, data := params.Layout(pdu.TypeCapsuleCmd), params.Layout(pdu.TypeH2CData)
		r2t, resp := params.Layout(pdu.TypeR2T), params.Layout(pdu.TypeCapsuleResp)
		buf, in, out := make([]byte, size), make([]byte, size+size/limit*pdu.MaxPDO), make([]byte, 0, 4096)
		send := func() {
			want := tcp.Received(r.qp) + uint64(len(out))
			if _, err := e.nc.Write(out); err != nil {
				t.Error(err)
			}
			for tcp.Received(r.qp) < want {
				e.poll()
			}
		}
		receive := func(n int) {
			for tcp.Pending(r.qp) > 0 || tcp.Waiting(r.qp) > 0 {
				e.poll()
			}
			if _, err := io.ReadFull(e.nc, in[:n]); err != nil {
				t.Error(err)
			}
		}
		run := func() {
			want := e.ended + 1
			if err := r.q.Write(buf, 0, size/512, countDone, e); err != nil {
				t.Error(err)
			}
			receive(int(capsule.PLEN(0)))
			cid := (*pdu.CapsuleCmd)(in).CID()
			out = out[:0]
			for i := range uint32(parts) {
				out = pdu.AppendR2T(out, &r2t, pdu.R2TFields{CCCID: cid, TTAG: uint16(i), R2TO: i * size / parts, R2TL: size / parts})
			}
			send()
			receive(size / limit * int(data.PLEN(limit)))
			out = pdu.AppendCapsuleResp(out[:0], &resp, &nvme.Completion{CID: cid})
			send()
			if e.ended != want {
				t.Errorf("%d commands have completed, want %d", e.ended, want)
			}
		}
		run()
		if n := testing.AllocsPerRun(20, run); n != 0 || !e.failed.OK() {
			t.Errorf("digests %v: %v allocations, status %v", digests, n, e.failed)
		}
	}
}

// Vectored transfers that fit into one command do not allocate either.
func TestNoAllocationsVectored(t *testing.T) {
	e := newEcho(t, false, true, nvme.OpRead, 4096)
	buf := make([]byte, 4096)
	vec := [][]byte{buf[:7], buf[7:9], buf[9:]}
	run := func() {
		want := e.ended + 1
		if err := e.r.q.ReadV(vec, 0, 8, countDone, e); err != nil {
			t.Error(err)
		}
		if err := e.turn(want, 1); err != nil {
			t.Error(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The commands of a whole day leave no more behind than the first ones: the
// send queue keeps its size.
func TestSendQueueStaysSmall(t *testing.T) {
	r := newRig(t, rigConfig{inCapsule: 1 << 20})
	vec := make([][]byte, 0, 700)
	buf := pattern(make([]byte, 700*512), 1)
	for i := range 700 {
		vec = append(vec, buf[i*512:(i+1)*512])
	}
	round := func() {
		o := r.writeV(vec, 0)
		var q *tcptest.Request
		r.play(func(c *tcptest.Conn) { q = c.ExpectCommand(nvme.OpWrite, tcptest.Data(buf)) })
		r.feed(q.Response(nvme.StatusSuccess, 0))
		o.want(t, nvme.StatusSuccess)
	}
	round()
	size := tcp.Pieces(r.qp)
	for range 50 {
		round()
	}
	if n := tcp.Pieces(r.qp); n != size {
		t.Errorf("room for %d pieces, %d in the beginning", n, size)
	}
}
