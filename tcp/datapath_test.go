package tcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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

// Small commands of all sizes pass through the header memory many times over,
// while the peer reads at its own pace, stops at times until that memory is
// full, and the socket takes what it likes.
func TestHeaderMemoryWraps(t *testing.T) {
	t.Parallel()
	for _, digests := range []bool{false, true} {
		cfg := digestRig(digests, digests)
		cfg.size, cfg.inCapsule, cfg.peerBuffer = 2048, 8192, 64<<10
		cfg.tcp.SendBuffer, cfg.icresp.CPDA = 128<<10, 15
		r := newRig(t, cfg)
		rnd := rand.New(rand.NewPCG(7, 7))
		data := pattern(make([]byte, 8192), 1)
		w := &writes{c: r.peer, data: data, lengths: make(chan uint32, 1<<16)}
		ended := make(chan error, 1)
		go func() { ended <- w.check() }()
		submit := func() bool {
			n := 512
			if rnd.IntN(4) == 0 {
				n = 512 * (1 + rnd.IntN(16))
			}
			lba := uint64(len(r.ops))
			o := newOp("write %d of %d bytes", lba, n)
			err := r.q.Write(data[:n], lba, uint32(n/512), opDone, o)
			if errors.Is(err, nvme.ErrQueueFull) {
				return false
			}
			r.must(err)
			r.ops = append(r.ops, o)
			w.lengths <- uint32(lba)<<16 | uint32(n)
			return true
		}
		for range 5 {
			w.paused.Store(true)
			for tcp.Backlog(r.qp) < 50 {
				if !submit() {
					t.Fatal("the queue was full before the header memory was")
				}
				if rnd.IntN(20) == 0 {
					r.poll()
				}
			}
			w.paused.Store(false)
			for range 1000 {
				if !submit() || rnd.IntN(10) == 0 {
					r.poll()
				}
			}
			r.until("completions", func() bool { return r.qp.InFlight() == 0 })
		}
		close(w.lengths)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		for _, o := range r.ops {
			o.want(t, nvme.StatusSuccess)
		}
	}
}

// writes is a peer that expects writes, told by lengths as LBA and length, and
// completes them.
type writes struct {
	c       *tcptest.Conn
	data    []byte
	lengths chan uint32
	paused  atomic.Bool
}

func (w *writes) check() error {
	for n := range w.lengths {
		for w.paused.Load() {
			time.Sleep(50 * time.Microsecond)
		}
		p, err := w.c.Next()
		if err != nil {
			return err
		}
		cmd := tcptest.Command(&p)
		if lba, _ := tcptest.LBA(&cmd); lba != uint64(n>>16) || len(p.Data) != int(n&0xffff) {
			return fmt.Errorf("write at %d of %d bytes, want at %d of %d", lba, len(p.Data), n>>16, n&0xffff)
		}
		if !bytes.Equal(p.Data, w.data[:len(p.Data)]) {
			return fmt.Errorf("write at %d of %d bytes: data differs", n>>16, len(p.Data))
		}
		w.c.Send(w.c.CapsuleResp(&nvme.Completion{CID: cmd.CID}))
	}
	return nil
}

// What waits for header memory goes out in order, data by reference among it.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t, clogRig(rigConfig{size: 2048, inCapsule: 8192}))
	large, q, data := clog(r, clogSize)
	var want [][]byte
	for i := range 1500 {
		b := pattern(make([]byte, 512*(1+i%5)), uint64(i))
		want = append(want, b)
		r.write(b, uint64(i+1))
	}
	if n := tcp.Backlog(r.qp); n == 0 || n == 1500 {
		t.Fatalf("%d commands in the backlog", n)
	}
	r.while(func(context.Context) error {
		left := uint32(clogSize)
		next := 0
		for left > 0 || next < len(want) {
			p, err := r.peer.Next()
			if err != nil {
				return err
			}
			if p.Type() == pdu.TypeH2CData {
				left -= uint32(len(p.Data))
				continue
			}
			if err := tcptest.Data(want[next])(&p); err != nil {
				return fmt.Errorf("write %d: %w", next, err)
			}
			cmd := tcptest.Command(&p)
			if lba, _ := tcptest.LBA(&cmd); lba != uint64(next+1) {
				return fmt.Errorf("write at %d, want %d", lba, next+1)
			}
			r.peer.Send(r.peer.CapsuleResp(&nvme.Completion{CID: cmd.CID}))
			next++
		}
		return nil
	})
	r.feed(q.Response(nvme.StatusSuccess, 0))
	r.until("completions", func() bool { return r.qp.InFlight() == 0 })
	large.want(t, nvme.StatusSuccess)
	for _, o := range r.ops {
		o.want(t, nvme.StatusSuccess)
	}
	_ = data
}

// Data that was asked for is queued only as far as the socket can be expected
// to take it, and commands do not wait behind all of it.
func TestR2TPacing(t *testing.T) {
	t.Parallel()
	r := newRig(t, clogRig(rigConfig{}))
	const size, writes = 4 << 20, 6
	data := pattern(make([]byte, size), 1)
	in := sink{c: r.peer}
	for i := range writes {
		r.write(data, uint64(i)*10_000)
		cid := r.command(nvme.OpWrite).Cmd.CID
		in.expect(cid, data, uint16(i), size)
	}
	for cid, p := range in.parts {
		r.feed(r.peer.R2T(cid, p.ttags[0], 0, size))
	}
	most := 0
	watch := func() {
		most = max(most, tcp.Pending(r.qp))
	}
	for range 100 {
		r.poll()
		watch()
	}
	o := r.read(make([]byte, 512), 5)
	done := make(chan error, 1)
	sofar := make(chan int, 1)
	go func() {
		taken := 0
		for len(in.seen) == 0 {
			if err := in.take(); err != nil {
				done <- err
				return
			}
		}
		for _, p := range in.parts {
			taken += int(p.off)
		}
		sofar <- taken
		in.c.Send(in.c.CapsuleResp(&nvme.Completion{CID: in.seen[0], StatusPhase: uint16(nvme.StatusInternalError) << 1}))
		done <- in.takeAll()
	}()
	var err error
	r.until("all data", func() bool {
		watch()
		select {
		case err = <-done:
			return true
		default:
			return false
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if limit := tcp.TxEnough + 129<<10; most > limit {
		t.Errorf("%d bytes were queued, want at most %d", most, limit)
	}
	if n := <-sofar; n > tcp.TxEnough+1<<20 {
		t.Errorf("%d bytes of data went before a command that was submitted after it was asked for", n)
	}
	o.want(t, nvme.StatusInternalError)
	for cid := range in.parts {
		r.feed(r.peer.CapsuleResp(&nvme.Completion{CID: cid}))
	}
	for _, o := range r.ops[:writes] {
		o.want(t, nvme.StatusSuccess)
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
