package tcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

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
