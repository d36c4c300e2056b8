package tcp_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// Reads into more elements than one call of readv is given, of any size, also
// across pieces of a transfer that is split into several commands.
func TestReadManyElements(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 7, 100, 511, 4096, 60_000} {
		for _, ddgst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,ddgst=%v", size, ddgst), func(t *testing.T) {
				cfg := digestRig(false, ddgst)
				cfg.mdts = 6 // 256 KiB
				r := newRig(t, cfg)
				n := min(600*size, 1<<20)
				n -= n % 512
				buf, data := make([]byte, n), pattern(make([]byte, n), 1)
				var vec [][]byte
				for rest := buf; len(rest) > 0; {
					k := min(size, len(rest))
					vec = append(vec, rest[:k:k])
					rest = rest[k:]
				}
				o := r.readV(vec, 0)
				for !o.isDone() {
					q := r.command(nvme.OpRead)
					lba, blocks := tcptest.LBA(&q.Cmd)
					part := data[lba*512 : (lba+blocks)*512]
					b := answer(r, q.Cmd.CID, part, len(part)/2, len(part)-len(part)/2)
					r.feed(b, 24, 50, 1000, 30_000, 70_000, len(b)-30)
				}
				o.want(t, nvme.StatusSuccess)
				if !bytes.Equal(buf, data) {
					t.Error("data differs")
				}
			})
		}
	}
}

// Large reads land in the user's buffer with few calls, past the staging
// memory.
func TestReadDirect(t *testing.T) {
	t.Parallel()
	for _, vectored := range []bool{false, true} {
		r := newRig(t, rigConfig{tcp: tcp.Config{ReceiveBuffer: 16 << 10}})
		buf, data := make([]byte, 4<<20), pattern(make([]byte, 4<<20), 1)
		var o *op
		if vectored {
			o = r.readV([][]byte{buf[:1], buf[1 : 3<<20], buf[3<<20:]}, 0)
		} else {
			o = r.read(buf, 0)
		}
		q := r.command(nvme.OpRead)
		before := tcp.Receives(r.qp)
		b := answer(r, q.Cmd.CID, data, len(data))
		calls := 0
		for off := 0; off < len(b); off += 512 << 10 {
			r.feed(b[off:min(off+512<<10, len(b))])
			calls++
		}
		o.want(t, nvme.StatusSuccess)
		if !bytes.Equal(buf, data) {
			t.Error("data differs")
		}
		// By way of the staging memory there would be 256, and polls that find
		// nothing come on top.
		if n := tcp.Receives(r.qp) - before; n > 128 {
			t.Errorf("%d calls for %d pieces", n, calls)
		}
	}
}

// Writes of many elements, larger than the socket takes at once, with more
// pieces than one call of sendmsg is given.
func TestWriteManyElements(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 13, 511, 1023, 1024, 5000} {
		for _, inCapsule := range []int{0, 1 << 20} {
			for _, ddgst := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d,inCapsule=%d,ddgst=%v", size, inCapsule, ddgst), func(t *testing.T) {
					cfg := digestRig(ddgst, ddgst)
					cfg.inCapsule = inCapsule
					cfg.tcp.SendBuffer = 64 << 10
					r := newRig(t, cfg)
					n := min(2500*size, 512<<10)
					n -= n % 512
					data := pattern(make([]byte, n), uint64(size))
					var vec [][]byte
					for rest := data; len(rest) > 0; {
						k := min(size, len(rest))
						vec = append(vec, rest[:k:k], nil)
						rest = rest[k:]
					}
					o := r.writeV(vec, 0)
					var q *tcptest.Request
					var got []byte
					r.play(func(c *tcptest.Conn) {
						q = c.ExpectCommand(nvme.OpWrite)
						got = q.Receive(100_000, 3)
					})
					if !bytes.Equal(got, data) {
						t.Error("data differs")
					}
					r.feed(q.Response(nvme.StatusSuccess, 0))
					o.want(t, nvme.StatusSuccess)
				})
			}
		}
	}
}

// All that was submitted between two polls goes out in one call.
func TestBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigConfig{inCapsule: 4096})
	for range 5 {
		r.poll()
	}
	before := tcp.Sends(r.qp)
	buf := make([]byte, 4096)
	for i := range 20 {
		if i%2 == 0 {
			r.read(buf, 0)
		} else {
			r.write(buf, 0)
		}
	}
	r.poll()
	if n := tcp.Sends(r.qp) - before; n != 1 || tcp.Pending(r.qp) != 0 {
		t.Errorf("%d calls, %d bytes left", n, tcp.Pending(r.qp))
	}
	var stream []byte
	for range 20 {
		p := r.peer.Expect(pdu.TypeCapsuleCmd)
		cmd := tcptest.Command(&p)
		if cmd.Opcode == nvme.OpRead {
			stream = append(stream, r.peer.C2HData(pdu.LastPDU|pdu.Success, cmd.CID, 0, buf)...)
		} else {
			stream = append(stream, r.peer.CapsuleResp(&nvme.Completion{CID: cmd.CID})...)
		}
	}
	// All answers come with one call, too.
	calls := tcp.Receives(r.qp)
	r.peer.Send(stream)
	r.until("completions", func() bool { return r.qp.InFlight() == 0 })
	r.poll()
	if n := tcp.Receives(r.qp) - calls; n > 6 {
		t.Errorf("%d calls for what fits into one", n)
	}
	for _, o := range r.ops {
		o.want(t, nvme.StatusSuccess)
	}
}

// Commands other than reads may bring less data than there is room for; the
// rest reads as zeroes.
func TestShortData(t *testing.T) {
	t.Parallel()
	for _, got := range []int{0, 4, 100, 4096} {
		for _, vectored := range []bool{false, true} {
			for _, success := range []bool{false, true} {
				if success && got == 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d,vectored=%v,success=%v", got, vectored, success), func(t *testing.T) {
					r := newRig(t, rigConfig{})
					buf := bytes.Repeat([]byte{0xee}, 4096)
					d := nvme.Data{Buf: buf, Len: 4096, Dir: nvme.DirIn}
					if vectored {
						d.Buf, d.Vec = nil, [][]byte{buf[:50], buf[50:51], nil, buf[51:]}
					}
					o := r.raw(nvme.Command{Opcode: nvme.OpReservationReport, NSID: 1}, d)
					q := r.command(nvme.OpReservationReport)
					data := pattern(make([]byte, got), 1)
					switch {
					case success:
						r.feed(r.peer.C2HData(pdu.LastPDU|pdu.Success, q.Cmd.CID, 0, data))
					case got > 0:
						r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, data))
						fallthrough
					default:
						r.feed(q.Response(nvme.StatusSuccess, 0))
					}
					o.want(t, nvme.StatusSuccess)
					if want := slices.Concat(data, make([]byte, 4096-got)); !bytes.Equal(buf, want) {
						t.Error("the data is not what came, and zeroes")
					}
				})
			}
		}
	}
}
