package tcp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

var fesCodes = []pdu.FES{0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x7f, 0x80, 0xff, 0x100, 0x106, 0x7fff, 0x8000, 0xffff}

// wantTerminated checks the error that a C2HTermReq leads to.
func wantTerminated(t *testing.T, err error, fes pdu.FES, fei uint32, header []byte) {
	t.Helper()
	var e *pdu.PeerError
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want a *pdu.PeerError", err)
	}
	if e.From != pdu.Controller || e.FES != fes || e.FEI != fei || string(e.Header) != string(header) {
		t.Errorf("the error is %+v, want FES %#x, FEI %#x, header % x", *e, uint16(fes), fei, header)
	}
	reserved := fes == 0 || fes > pdu.FESUnsupportedParameter
	if strings.Contains(err.Error(), "reserved") != reserved {
		t.Errorf("%q says reserved: %v, want %v", err, !reserved, reserved)
	}
}

// A C2HTermReq with any status: the connection ends with an error that has it,
// and is not answered.
func TestWireCase07TermReq(t *testing.T) {
	t.Parallel()
	for i, fes := range fesCodes {
		t.Run(fmt.Sprintf("%#x", uint16(fes)), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			outstanding(r)
			header := pattern(make([]byte, []int{0, 8, 24, 72, 127, 128}[i%6]), uint64(fes))
			fei := uint32(fes) * 0x01010101
			b := tcptest.TermReq(fes, fei, header)
			r.feed(b)
			wantTerminated(t, r.lost(), fes, fei, header)
			r.peer.ExpectEnd()
			wantAborted(r)
		})
	}
}

// The same at every split of the stream.
func TestWireCase07TermReqSplit(t *testing.T) {
	t.Parallel()
	header := pattern(make([]byte, 20), 1)
	b := tcptest.TermReq(pdu.FESDataOutOfRange, 0, header)
	for cut := 1; cut < len(b); cut++ {
		r := newRig(t, rigConfig{})
		r.read(make([]byte, 512), 0)
		r.command(nvme.OpRead)
		r.feed(b, cut)
		wantTerminated(t, r.lost(), pdu.FESDataOutOfRange, 0, header)
		r.peer.ExpectEnd()
		wantAborted(r)
	}
}

// While connecting, the error is why connecting failed. The connection has no
// digests yet, or has them; a TermReq never does.
func TestWireCase07TermReqWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"handshake", "connect", "connect with digests"} {
		for _, fes := range fesCodes {
			t.Run(fmt.Sprintf("%s %#x", phase, uint16(fes)), func(t *testing.T) {
				on := phase == "connect with digests"
				connectError(t, digestRig(on, on), func(c *tcptest.Conn) {
					if phase == "handshake" {
						c.ExpectICReq()
					} else {
						c.Handshake(pdu.ICRespFields{HDGST: on, DDGST: on})
						c.ExpectCommand(nvme.OpFabrics)
					}
					c.Send(tcptest.TermReq(fes, 11, nil))
					c.ExpectEnd()
				}, func(err error) { wantTerminated(t, err, fes, 11, nil) })
			})
		}
	}
}

// A TermReq that is itself malformed ends the connection as well, without an
// answer.
func TestWireCase07Malformed(t *testing.T) {
	t.Parallel()
	plen := func(n uint32) func([]byte) { return func(b []byte) { binary.LittleEndian.PutUint32(b[4:], n) } }
	tests := []struct {
		name string
		fei  uint32
		bad  func(b []byte)
	}{
		{"HLEN 23", 2, func(b []byte) { b[2] = 23 }},
		{"HLEN 25", 2, func(b []byte) { b[2] = 25 }},
		{"PLEN 0", 4, plen(0)},
		{"PLEN 8", 4, plen(8)},
		{"PLEN 23", 4, plen(23)},
		{"PLEN 153", 4, plen(153)},
		{"PLEN 64 Ki", 4, plen(64 << 10)},
		{"PLEN huge", 4, plen(1<<32 - 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, rigConfig{})
			outstanding(r)
			b := tcptest.TermReq(pdu.FESInvalidHeaderField, 0, nil)
			tt.bad(b)
			r.feed(b)
			wantPDUError(t, r.lost(), pdu.TypeC2HTermReq, pdu.FESInvalidHeaderField, tt.fei)
			r.peer.ExpectEnd()
			wantAborted(r)
		})
	}
}

// A TermReq of which the end never comes.
func TestWireCase07Truncated(t *testing.T) {
	t.Parallel()
	b := tcptest.TermReq(pdu.FESInvalidHeaderField, 3, make([]byte, 72))
	for _, n := range []int{1, 7, 8, 9, 23, 24, 25, len(b) - 1} {
		r := newRig(t, rigConfig{})
		outstanding(r)
		r.feed(b[:n])
		r.peer.CloseWrite()
		wantClosed(t, r.lost())
		r.peer.ExpectEnd()
		wantAborted(r)
	}
}
