package load

import (
	"math"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

// What the measuring costs per I/O, against the same queue driven by the least
// of callbacks. The queue is a ring that completes in order.

type ringQueue struct {
	fakeQueue
	ring       [128]io
	head, tail int
}

func (q *ringQueue) Room() int { return len(q.ring) - (q.tail - q.head) }

func (q *ringQueue) Read(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	q.ring[q.tail&127] = io{read, lba, blocks, buf, done, arg}
	q.tail++
	return nil
}

func (q *ringQueue) completeOne() {
	i := &q.ring[q.head&127]
	q.head++
	i.done(i.arg, 0)
}

type bare struct {
	q   nvme.Queue
	buf []byte
}

func bareDone(arg any, _ nvme.Status) {
	b := arg.(*bare)
	if b.q.Read(b.buf, 0, 8, bareDone, b) != nil {
		panic("refused")
	}
}

func newRing() *ringQueue {
	return &ringQueue{fakeQueue: fakeQueue{blockSize: 512, blocks: 1 << 30}}
}

func BenchmarkBare(b *testing.B) {
	q := newRing()
	x := &bare{q, make([]byte, 4096)}
	for range 64 {
		bareDone(x, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.completeOne()
	}
}

func benchmark(b *testing.B, from int64) {
	q := newRing()
	w, err := newWorker(q, &Workload{Bytes: 4096, Random: true, ReadPercent: 100, Jobs: 64}, 0)
	if err != nil {
		b.Fatal(err)
	}
	w.begin()
	w.measure(from, math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		q.completeOne()
	}
}

// As during the warm-up: with the clock, without the histogram.
func BenchmarkUnrecorded(b *testing.B) { benchmark(b, math.MaxInt64) }

func BenchmarkRecorded(b *testing.B) { benchmark(b, 0) }
