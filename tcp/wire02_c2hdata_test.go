package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// answer builds the PDUs that answer a read with data, in pieces of the given
// lengths, and the response capsule.
func answer(r *rig, cid uint16, data []byte, lengths ...int) []byte {
	var b []byte
	off := 0
	for i, n := range lengths {
		var flags pdu.Flags
		if i == len(lengths)-1 {
			flags = pdu.LastPDU
		}
		b = append(b, r.peer.C2HData(flags, cid, uint32(off), data[off:off+n])...)
		off += n
	}
	return append(b, r.peer.CapsuleResp(&nvme.Completion{CID: cid})...)
}

// digestCases runs a test for each combination of digests and two alignments.
func digestCases(t *testing.T, f func(t *testing.T, cfg rigConfig)) {
	for _, hdgst := range []bool{false, true} {
		for _, ddgst := range []bool{false, true} {
			for _, pda := range []uint8{0, 31} {
				t.Run(fmt.Sprintf("hdgst=%v,ddgst=%v,pda=%d", hdgst, ddgst, pda), func(t *testing.T) {
					cfg := digestRig(hdgst, ddgst)
					cfg.tcp.HPDA, cfg.icresp.CPDA = pda, pda
					f(t, cfg)
				})
			}
		}
	}
}

// One read of 512 bytes in three PDUs, the stream cut once at every offset, and
// into pieces of every small size.
func TestWireCase02EverySplit(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		r := newRig(t, cfg)
		buf, data := make([]byte, 512), make([]byte, 512)
		try := func(name string, feed func(b []byte)) {
			t.Helper()
			clear(buf)
			pattern(data, uint64(len(r.ops)))
			o := r.read(buf, uint64(len(r.ops)))
			q := r.command(nvme.OpRead)
			feed(answer(r, q.Cmd.CID, data, 100, 12, 400))
			o.want(t, nvme.StatusSuccess)
			if !bytes.Equal(buf, data) {
				t.Fatalf("%s: data differs", name)
			}
		}
		n := len(answer(r, 0, data, 100, 12, 400))
		for cut := 1; cut < n; cut++ {
			try(fmt.Sprintf("cut at %d", cut), func(b []byte) { r.feed(b, cut) })
		}
		for size := 1; size <= 32; size++ {
			try(fmt.Sprintf("pieces of %d", size), func(b []byte) { r.pieces(b, size) })
		}
	})
}

// Several reads at once, in PDUs of any lengths that come in any order between
// the reads, cut anywhere, received directly or by way of the staging memory,
// into one buffer or several.
func TestWireCase02Interleaved(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		cfg.tcp.ReceiveBuffer = 16 << 10
		r := newRig(t, cfg)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			interleaved(t, r, rnd)
		}
	})
}

type transfer struct {
	cid       uint16
	off       int
	got, want []byte
	vec       [][]byte
	op        *op
}

func interleaved(t *testing.T, r *rig, rnd *rand.Rand) {
	t.Helper()
	var list []*transfer
	for i := range 5 {
		n := 512 << rnd.IntN(9) // to 128 KiB
		x := &transfer{got: make([]byte, n), want: pattern(make([]byte, n), rnd.Uint64())}
		if i%2 == 0 {
			x.op = r.read(x.got, uint64(i))
		} else {
			x.vec = cutUp(rnd, x.got)
			x.op = r.readV(x.vec, uint64(i))
		}
		x.cid = r.command(nvme.OpRead).Cmd.CID
		list = append(list, x)
	}
	var stream []byte
	for open := slices.Clone(list); len(open) > 0; {
		i := rnd.IntN(len(open))
		x := open[i]
		left := len(x.want) - x.off
		n := min(left, 1+rnd.IntN(1+left))
		if rnd.IntN(3) == 0 {
			n = left
		}
		var flags pdu.Flags
		if n == left {
			flags = pdu.LastPDU
		}
		stream = append(stream, r.peer.C2HData(flags, x.cid, uint32(x.off), x.want[x.off:x.off+n])...)
		if x.off += n; n == left {
			stream = append(stream, r.peer.CapsuleResp(&nvme.Completion{CID: x.cid})...)
			open = slices.Delete(open, i, i+1)
		}
	}
	var cuts []int
	for at := 0; at < len(stream); at += 1 + rnd.IntN(3*tcp.DirectFrom) {
		cuts = append(cuts, at)
	}
	r.feed(stream, cuts...)
	for _, x := range list {
		x.op.want(t, nvme.StatusSuccess)
		if !bytes.Equal(x.got, x.want) {
			t.Fatalf("%s: data differs", x.op.name)
		}
	}
}

// cutUp cuts b into elements of odd sizes, some of them empty.
func cutUp(rnd *rand.Rand, b []byte) (vec [][]byte) {
	for len(b) > 0 {
		n := min(len(b), rnd.IntN(1+len(b)))
		switch rnd.IntN(4) {
		case 0:
			n = min(len(b), rnd.IntN(7))
		case 1:
			n = len(b)
		}
		vec = append(vec, b[:n:n])
		b = b[n:]
	}
	return append(vec, nil)
}

// Data that is not next, or not there at all.
func TestWireCase02WrongOffset(t *testing.T) {
	t.Parallel()
	const n = 4096
	tests := []struct {
		name   string
		first  int // bytes that come before, in order
		off    uint32
		length int
		fes    pdu.FES
	}{
		{"gap at the start", 0, 512, 512, pdu.FESSequenceError},
		{"gap", 512, 1024, 512, pdu.FESSequenceError},
		{"overlap", 1024, 512, 512, pdu.FESSequenceError},
		{"again from the start", 1024, 0, 1024, pdu.FESSequenceError},
		{"longer than the read", 0, 0, n + 4, pdu.FESDataOutOfRange},
		{"end beyond the read", n - 512, n - 512, 516, pdu.FESDataOutOfRange},
		{"more after the end", n, n, 4, pdu.FESDataOutOfRange},
		{"start beyond the read", 0, n + 4, 4, pdu.FESDataOutOfRange},
		{"offset near 4 GiB", 0, 1<<32 - 512, 256, pdu.FESDataOutOfRange},
		{"end beyond 4 GiB", 0, 1<<32 - 4, 512, pdu.FESDataOutOfRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, rigConfig{})
			guard := make([]byte, 3*n)
			for i := range guard {
				guard[i] = 0xee
			}
			buf := guard[n : 2*n : 2*n]
			r.read(buf, 0)
			q := r.command(nvme.OpRead)
			if tt.first > 0 {
				r.feed(r.peer.C2HData(0, q.Cmd.CID, 0, make([]byte, tt.first)))
			}
			b := r.peer.C2HData(0, q.Cmd.CID, tt.off, make([]byte, tt.length))
			r.feed(b)
			wantPDUError(t, r.lost(), pdu.TypeC2HData, tt.fes, 0)
			wantHeader(t, r.peer.ExpectTermReq(tt.fes, 0), b)
			wantAborted(r)
			for i, v := range guard {
				if outside := i < n || i >= n+tt.first; outside && v != 0xee {
					t.Fatalf("byte %d was written to", i-n)
				}
			}
		})
	}
}

// A success that comes before all data is none.
func TestWireCase02SuccessWithoutAllData(t *testing.T) {
	t.Parallel()
	for _, got := range []int{0, 512, 4092} {
		t.Run(fmt.Sprint(got), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			r.read(make([]byte, 4096), 0)
			q := r.command(nvme.OpRead)
			if got > 0 {
				r.feed(r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, make([]byte, got)))
			}
			r.feed(q.Response(nvme.StatusSuccess, 0))
			wantPDUError(t, r.lost(), pdu.TypeCapsuleResp, pdu.FESSequenceError, 0)
			r.peer.ExpectTermReq(pdu.FESSequenceError, 0)
			wantAborted(r)
		})
	}
	// An error may come at any time.
	for _, got := range []int{0, 512, 4096} {
		t.Run(fmt.Sprintf("error after %d", got), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			o := r.read(make([]byte, 4096), 0)
			q := r.command(nvme.OpRead)
			if got > 0 {
				r.feed(r.peer.C2HData(0, q.Cmd.CID, 0, make([]byte, got)))
			}
			r.feed(q.Response(nvme.StatusUnrecoveredReadError, 0))
			o.want(t, nvme.StatusUnrecoveredReadError)
			again := r.read(make([]byte, 512), 0)
			q = r.command(nvme.OpRead)
			r.feed(answer(r, q.Cmd.CID, make([]byte, 512), 512))
			again.want(t, nvme.StatusSuccess)
		})
	}
}

// A wrong data digest fails the command, not the connection, whichever PDU has
// it, and whatever the controller says.
func TestWireCase02DataDigest(t *testing.T) {
	t.Parallel()
	for _, size := range []int{512, 4096, 64 << 10} {
		for _, vectored := range []bool{false, true} {
			for bad := range 3 {
				for _, direct := range []bool{false, true} {
					name := fmt.Sprintf("size=%d,vectored=%v,bad=%d,cut=%v", size, vectored, bad, direct)
					t.Run(name, func(t *testing.T) { damagedRead(t, size, vectored, bad, direct) })
				}
			}
		}
	}
}

func damagedRead(t *testing.T, size int, vectored bool, bad int, cut bool) {
	r := newRig(t, digestRig(true, true))
	buf := make([]byte, size)
	var o *op
	if vectored {
		o = r.readV([][]byte{buf[:3], buf[3 : size/2], buf[size/2:]}, 0)
	} else {
		o = r.read(buf, 0)
	}
	q := r.command(nvme.OpRead)
	data := pattern(make([]byte, size), 3)
	lengths := []int{size / 4, size / 4, size / 2}
	off := 0
	for i, n := range lengths {
		var flags pdu.Flags
		if i == 2 {
			flags = pdu.LastPDU
		}
		b := r.peer.C2HData(flags, q.Cmd.CID, uint32(off), data[off:off+n])
		if i == bad {
			b[len(b)-1] ^= 1
		}
		off += n
		if cut {
			r.feed(b, 40, len(b)-2)
		} else {
			r.feed(b)
		}
	}
	if o.isDone() {
		t.Fatal("completed before the response")
	}
	r.feed(q.Response(nvme.StatusSuccess, 0))
	o.want(t, nvme.StatusTransientTransportError)
	// The connection goes on, and the next read on the same tracker is well.
	clear(buf)
	o = r.read(buf, 0)
	q = r.command(nvme.OpRead)
	r.feed(answer(r, q.Cmd.CID, data, lengths...))
	o.want(t, nvme.StatusSuccess)
	if !bytes.Equal(buf, data) {
		t.Error("data differs")
	}
}
