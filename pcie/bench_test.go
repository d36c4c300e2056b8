package pcie

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// ideal is a controller that costs next to nothing: it completes what the
// doorbell announces when it is told to, without a look at the commands but for
// their identifiers.
type ideal struct {
	d    *fakeDevice
	sq   *fakeSQ
	cq   *fakeCQ
	head uint32
}

func (i *ideal) run() {
	tail := mmioLoad(i.d.bar[2*int(i.sq.id)*4:])
	for i.head != tail {
		cid := i.sq.mem[i.head].w[0] >> 16 & 0xffff
		if i.head++; int(i.head) == len(i.sq.mem) {
			i.head = 0
		}
		e := &i.cq.mem[i.cq.tail]
		atomic.StoreUint64(&e.hi, uint64(i.head)|uint64(i.sq.id)<<16|cid<<32|i.cq.phase)
		if i.cq.tail++; int(i.cq.tail) == len(i.cq.mem) {
			i.cq.tail, i.cq.phase = 0, i.cq.phase^phaseBit
		}
	}
}

// idealQueue opens a queue of a poller that the test steps, on a device that it
// runs.
func idealQueue(t testing.TB, size int, cfg Config) (*nvme.NamespaceQueue, *ideal, *lab) {
	t.Helper()
	d := newFake(t).run()
	l := newLab(t, d, cfg, nvme.Config{})
	p, err := poller.New(poller.Config{Unpinned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	ns := l.namespace()
	opened := make(chan *nvme.QueuePair, 1)
	go func() {
		defer close(opened)
		qp, err := l.c.OpenQueue(testContext(t), p, nvme.QueueConfig{Size: size})
		if err != nil {
			t.Error(err)
			return
		}
		opened <- qp
	}()
	for now := int64(1); ; now++ {
		p.Poll(now)
		select {
		case qp := <-opened:
			if qp == nil {
				t.FailNow()
			}
			q, err := qp.Bind(ns)
			if err != nil {
				t.Fatal(err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			i := &ideal{d: d, sq: d.sqs[qp.ID()], cq: d.cqs[qp.ID()]}
			delete(d.sqs, qp.ID()) // it is not run by d any more
			t.Cleanup(func() { p.Close() })
			return q, i, l
		default:
		}
	}
}

type counter struct{ n, failed int }

func countDone(arg any, st nvme.Status) {
	c := arg.(*counter)
	c.n++
	if !st.OK() {
		c.failed++
	}
}

// No command allocates, whatever its data is like.
func TestNoAllocations(t *testing.T) {
	q, dev, l := idealQueue(t, 16, Config{SGL: SGLAuto})
	mem, err := l.c.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer l.c.Free(mem)
	heap := make([]byte, 64<<10)
	pages := [][]byte{mem[:4096], mem[8192:16384]}
	jagged := [][]byte{mem[:512], mem[1024:1536]}
	var c counter
	for name, submit := range map[string]func() error{
		"one page":     func() error { return q.Read(mem[:4096], 1, 8, countDone, &c) },
		"list":         func() error { return q.Write(mem[512:512+1<<16], 1, 128, countDone, &c) },
		"unregistered": func() error { return q.Read(heap, 1, 128, countDone, &c) },
		"bounced out":  func() error { return q.Write(heap[1:513], 1, 1, countDone, &c) },
		"vector":       func() error { return q.ReadV(pages, 1, 24, countDone, &c) },
		"jagged":       func() error { return q.WriteV(jagged, 1, 2, countDone, &c) },
		"flush":        func() error { return q.Flush(countDone, &c) },
	} {
		t.Run(name, func(t *testing.T) {
			qp := q.QueuePair()
			now, runs := int64(1<<20), 0
			c = counter{}
			allocs := testing.AllocsPerRun(100, func() {
				if err := submit(); err != nil {
					t.Error(err)
				}
				runs++
				qp.Poll(now)
				dev.run()
				qp.Poll(now)
				if c.n != runs {
					t.Fatal("not completed")
				}
			})
			if allocs != 0 || c.failed != 0 {
				t.Errorf("%v allocations, %d failed", allocs, c.failed)
			}
		})
	}
}

// BenchmarkSubmitComplete is one I/O of 4 KiB, submitted and completed through
// all layers, in batches of the depth, with a controller that is run in turn on
// the same core; BenchmarkIdeal is that controller's share.
func BenchmarkSubmitComplete(b *testing.B) {
	for _, depth := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			q, dev, l := idealQueue(b, depth*2, Config{})
			mem, err := l.c.Alloc(depth * 4096)
			if err != nil {
				b.Fatal(err)
			}
			defer l.c.Free(mem)
			var c counter
			qp := q.QueuePair()
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += depth {
				for i := range depth {
					if q.Read(mem[i*4096:][:4096:4096], uint64(i)*8, 8, countDone, &c) != nil {
						b.Fatal("refused")
					}
				}
				qp.Poll(int64(done))
				dev.run()
				qp.Poll(int64(done))
			}
			b.StopTimer()
			if c.n < b.N || c.failed != 0 {
				b.Fatal(c)
			}
		})
	}
}

// BenchmarkIdeal is the controller of BenchmarkSubmitComplete by itself.
func BenchmarkIdeal(b *testing.B) {
	_, dev, _ := idealQueue(b, 64, Config{})
	n := uint32(len(dev.sq.mem))
	bell := dev.d.bar[2*int(dev.sq.id)*4:]
	b.ResetTimer()
	for done := 0; done < b.N; done += 32 {
		mmioStore(bell, (dev.head+32)%n)
		dev.run()
	}
}

// BenchmarkIdlePoll is a pass that finds nothing.
func BenchmarkIdlePoll(b *testing.B) {
	q, _, _ := idealQueue(b, 64, Config{})
	qp := q.QueuePair()
	b.ResetTimer()
	for i := range b.N {
		qp.Poll(int64(i))
	}
}
