package tcp_test

import (
	"bytes"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// LAST_PDU says that no more data comes, and no more than that.
func TestWireCase03LastIsNotSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigConfig{})
	buf, data := make([]byte, 4096), pattern(make([]byte, 4096), 1)
	o := r.read(buf, 0)
	q := r.command(nvme.OpRead)
	r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, data))
	for range 10 {
		r.poll()
	}
	if o.isDone() {
		t.Fatal("completed without a response")
	}
	r.feed(q.Response(nvme.StatusSuccess, 0))
	o.want(t, nvme.StatusSuccess)
	if !bytes.Equal(buf, data) {
		t.Error("data differs")
	}
	// A status after all data counts.
	o = r.read(buf, 0)
	q = r.command(nvme.OpRead)
	r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, data))
	r.feed(q.Response(nvme.StatusUnrecoveredReadError|nvme.StatusDNR, 0))
	o.want(t, nvme.StatusUnrecoveredReadError)
	// A controller that forgets the flag has still sent all data.
	o = r.read(buf, 0)
	q = r.command(nvme.OpRead)
	r.feed(r.peer.C2HData(0, q.Cmd.CID, 0, data))
	r.feed(q.Response(nvme.StatusSuccess, 0))
	o.want(t, nvme.StatusSuccess)
}

// SUCCESS with LAST_PDU stands for the response, at any split of the stream and
// with any digests.
func TestWireCase03Success(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		r := newRig(t, cfg)
		for _, size := range []int{512, 4096, 64 << 10} {
			data := pattern(make([]byte, size), uint64(size))
			for _, chunk := range []int{1 << 20, 20, 1000, 17000} {
				if chunk < 100 && size > 512 {
					continue
				}
				buf := make([]byte, size)
				o := r.read(buf, 0)
				q := r.command(nvme.OpRead)
				first := r.peer.C2HData(0, q.Cmd.CID, 0, data[:size/2])
				last := r.peer.C2HData(pdu.LastPDU|pdu.Success, q.Cmd.CID, uint32(size/2), data[size/2:])
				r.pieces(first, chunk)
				if o.isDone() {
					t.Fatal("completed with the first half")
				}
				r.pieces(last, chunk)
				o.want(t, nvme.StatusSuccess)
				if !bytes.Equal(buf, data) {
					t.Fatalf("%d bytes in pieces of %d: data differs", size, chunk)
				}
			}
		}
	})
}

// A response after SUCCESS is one for no command.
func TestWireCase03ResponseAfterSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigConfig{})
	o := r.read(make([]byte, 512), 0)
	q := r.command(nvme.OpRead)
	r.feed(r.peer.C2HData(pdu.LastPDU|pdu.Success, q.Cmd.CID, 0, make([]byte, 512)))
	o.want(t, nvme.StatusSuccess)
	r.ops = r.ops[:0]
	outstanding(r)
	r.feed(q.Response(nvme.StatusSuccess, 0))
	wantPDUError(t, r.lost(), pdu.TypeCapsuleResp, pdu.FESInvalidHeaderField, 20)
	r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 20)
	wantAborted(r)
}

// SUCCESS where it cannot be: not on the last PDU, not with all data, not with
// submission queue flow control.
func TestWireCase03SuccessRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		flowControl bool
		flags       pdu.Flags
		length      int
	}{
		{"without LAST_PDU, all data", false, pdu.Success, 4096},
		{"without LAST_PDU, half of the data", false, pdu.Success, 2048},
		{"half of the data", false, pdu.Success | pdu.LastPDU, 2048},
		{"flow control", true, pdu.Success | pdu.LastPDU, 4096},
		{"flow control and without LAST_PDU", true, pdu.Success, 4096},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var cfg rigConfig
			cfg.tcp.SQFlowControl = tt.flowControl
			r := newRig(t, cfg)
			r.read(make([]byte, 4096), 0)
			q := r.command(nvme.OpRead)
			r.feed(r.peer.C2HData(tt.flags, q.Cmd.CID, 0, make([]byte, tt.length)))
			wantPDUError(t, r.lost(), pdu.TypeC2HData, pdu.FESInvalidHeaderField, 1)
			r.peer.ExpectTermReq(pdu.FESInvalidHeaderField, 1)
			wantAborted(r)
		})
	}
}

// Data after LAST_PDU contradicts it.
func TestWireCase03DataAfterLast(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigConfig{})
	r.read(make([]byte, 4096), 0)
	q := r.command(nvme.OpRead)
	r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, make([]byte, 2048)))
	r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 2048, make([]byte, 2048)))
	wantPDUError(t, r.lost(), pdu.TypeC2HData, pdu.FESSequenceError, 0)
	r.peer.ExpectTermReq(pdu.FESSequenceError, 0)
	wantAborted(r)
}

// The host asks for what its configuration says, on every queue.
func TestWireCase03ConnectAttributes(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		attrs := make(chan nvme.ConnectAttributes, 1)
		cfg := rigConfig{script: func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{})
			attrs <- c.AcceptConnect(1).Attributes
			c.HandOver()
		}}
		cfg.tcp.SQFlowControl = on
		newRig(t, cfg)
		if got := <-attrs&nvme.ConnectDisableFlowControl == 0; got != on {
			t.Errorf("flow control asked for: %v, want %v", got, on)
		}
	}
}
