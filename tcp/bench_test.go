package tcp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
)

// BenchmarkIO passes commands of 4 KiB from submission to completion, a batch
// at a time. The peer answers on the same goroutine, with one read and one
// write for a batch, and its cost is in the figures: over Unix sockets, which
// are the cheapest there are, and over TCP on the loopback interface.
func BenchmarkIO(b *testing.B) {
	for _, network := range []string{"unix", "tcp"} {
		for _, op := range []struct {
			name string
			op   nvme.Opcode
		}{{"read", nvme.OpRead}, {"write", nvme.OpWrite}} {
			for _, depth := range []int{1, 32, 128} {
				b.Run(fmt.Sprintf("%s/%s/depth=%d", network, op.name, depth), func(b *testing.B) {
					benchmarkIO(b, network, op.op, depth, false)
				})
			}
		}
	}
	b.Run("tcp/read/depth=32/digests", func(b *testing.B) { benchmarkIO(b, "tcp", nvme.OpRead, 32, true) })
	b.Run("tcp/write/depth=32/digests", func(b *testing.B) { benchmarkIO(b, "tcp", nvme.OpWrite, 32, true) })
}

func benchmarkIO(b *testing.B, network string, op nvme.Opcode, depth int, digests bool) {
	const size = 4096
	e := newEcho(b, digests, digests, op, size)
	if network == "unix" {
		fd, peer := unixPair(b)
		old := tcp.SwapFD(e.r.qp, fd)
		tcpPeer := e.nc
		e.nc = peer
		defer func() {
			tcp.SwapFD(e.r.qp, old)
			e.nc = tcpPeer
		}()
	}
	buf := make([]byte, size)
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	for n := b.N; n > 0; n -= depth {
		if err := e.batch(op, buf, min(n, depth)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmit reports what submission alone takes, as ns/submit: from the
// call to the bytes of the capsule in the send queue.
func BenchmarkSubmit(b *testing.B) {
	e := newEcho(b, false, false, nvme.OpRead, 4096)
	buf := make([]byte, 4096)
	var spent time.Duration
	for n := b.N; n > 0; {
		depth := min(n, maxDepth)
		n -= depth
		want := e.ended + depth
		start := time.Now()
		for i := range depth {
			if err := e.r.q.Read(buf, uint64(i), 8, countDone, e); err != nil {
				b.Fatal(err)
			}
		}
		spent += time.Since(start)
		if err := e.turn(want, depth); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(spent)/float64(b.N), "ns/submit")
}
