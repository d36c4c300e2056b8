package nvme

import (
	"testing"

	"github.com/qpoll/qpoll/poller"
)

// nullTransport completes what was submitted in the next poll, without moving
// any data.
type nullTransport struct {
	qp  *QueuePair
	cid []uint16
	cpl Completion
}

func (t *nullTransport) Submit(r *Request) { t.cid = append(t.cid, r.Cmd.CID) }

func (t *nullTransport) Poll(int64) int {
	list := t.cid
	t.cid = t.cid[:0] // what callbacks submit overwrites what was read already
	for i := range list {
		t.cpl.CID = list[i]
		if r := t.qp.Find(t.cpl.CID); r != nil {
			t.qp.Complete(r, &t.cpl)
		}
	}
	return len(list)
}

func (t *nullTransport) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, true }

// nullQueue returns a queue of a stepped poller on a nullTransport. Commands
// move 8 blocks of 4 KiB at most.
func nullQueue(t testing.TB, size int) *NamespaceQueue {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	c := &Controller{}
	id := &IdentifyController{FUSES: FUSESCompareAndWrite}
	c.id.Store(id)
	qp := newQueuePair(p, queueParams{id: 1, size: size, retries: 5, ctrl: c})
	n := &nullTransport{qp: qp, cid: make([]uint16, 0, size)}
	qp.Attach(n)
	qp.state, qp.cold.linked = queueLive, true
	ns := &Namespace{c: c, id: 1}
	ns.geo.Store(&geometry{
		xfer: 4096, oneCommand: 8, nsid: 1, blocks: 1 << 30, zeroes: 8, verify: 8, compare: true, deallocate: true,
		dsmRanges: 2, dsmRange: 1 << 20, dsmTotal: 1 << 30,
	})
	return &NamespaceQueue{qp: qp, ns: ns}
}

// counter is a Done that counts.
type counter struct{ n, failed int }

func countDone(arg any, st Status) {
	c := arg.(*counter)
	c.n++
	if !st.OK() {
		c.failed++
	}
}

func countCommandDone(arg any, cpl *Completion) { countDone(arg, cpl.Status()) }

// Nothing on the hot path allocates, whole, split or vectored.
func TestNoAllocations(t *testing.T) {
	q := nullQueue(t, 8)
	buf := make([]byte, 100*4096)
	vec := [][]byte{buf[:100], buf[100:4096], buf[4096 : 40*4096]}
	ranges := make([]DSMRange, 5)
	for i := range ranges {
		ranges[i] = DSMRange{LBA: uint64(i), Length: 1}
	}
	var c counter
	raw := Command{Opcode: OpFlush, NSID: 1}
	data := Data{Buf: buf[:4096], Len: 4096, Dir: DirIn}
	io := IO{Op: OpWrite, FUA: true, Blocks: 1, Buf: buf[:4096], Done: countDone, Arg: &c}
	for name, submit := range map[string]func() error{
		"read":         func() error { return q.Read(buf[:4096], 5, 1, countDone, &c) },
		"write":        func() error { return q.Write(buf[:8*4096], 5, 8, countDone, &c) },
		"split read":   func() error { return q.Read(buf, 5, 100, countDone, &c) },
		"read vector":  func() error { return q.ReadV(vec[:2], 5, 1, countDone, &c) },
		"split vector": func() error { return q.WriteV(vec, 5, 40, countDone, &c) },
		"compare":      func() error { return q.Compare(buf[:4096], 5, 1, countDone, &c) },
		"flush":        func() error { return q.Flush(countDone, &c) },
		"zeroes":       func() error { return q.WriteZeroes(5, 100, countDone, &c) },
		"verify":       func() error { return q.Verify(5, 100, countDone, &c) },
		"deallocate":   func() error { return q.Deallocate(ranges, countDone, &c) },
		"fused":        func() error { return q.CompareAndWrite(buf[:4096], buf[:4096], 5, 1, countDone, &c) },
		"issue":        func() error { return q.Issue(&io) },
		"raw":          func() error { return q.Submit(&raw, data, countCommandDone, &c) },
	} {
		t.Run(name, func(t *testing.T) {
			now, runs := int64(0), 0
			c = counter{}
			allocs := testing.AllocsPerRun(50, func() {
				if err := submit(); err != nil {
					t.Error(err)
				}
				for runs++; c.n < runs; {
					now++
					if q.qp.Poll(now) == 0 {
						t.Fatal("not completed")
					}
				}
			})
			if allocs != 0 || c.failed != 0 {
				t.Errorf("%v allocations, %d failed", allocs, c.failed)
			}
		})
	}
}

// BenchmarkSubmitComplete is this layer's share of one I/O: submission of a
// 4 KiB read, and its completion, in batches as a poller would see them. Slices
// of a buffer that differs each time keep the compiler honest.
func BenchmarkSubmitComplete(b *testing.B) {
	for _, depth := range []int{1, 32, 128} {
		b.Run(depthName(depth), func(b *testing.B) {
			q := nullQueue(b, depth+1)
			buf := make([]byte, depth*4096)
			var c counter
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += depth {
				for i := range depth {
					if q.Read(buf[i*4096:][:4096:4096], uint64(done+i)&(1<<20-1), 1, countDone, &c) != nil {
						b.Fatal("refused")
					}
				}
				q.qp.Poll(int64(done))
			}
			b.StopTimer()
			if c.n < b.N || c.failed != 0 {
				b.Fatal(c)
			}
		})
	}
}

func depthName(n int) string {
	return map[int]string{1: "depth=1", 32: "depth=32", 128: "depth=128"}[n]
}

// BenchmarkNullTransport is what the transport of BenchmarkSubmitComplete takes
// of it.
func BenchmarkNullTransport(b *testing.B) {
	q := nullQueue(b, 33)
	t := q.qp.Transport().(*nullTransport)
	r := q.qp.take()
	for done := 0; done < b.N; done += 32 {
		for range 32 {
			q.qp.t.Submit(r)
		}
		t.cid = t.cid[:0]
	}
}
