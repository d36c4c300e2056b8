package policy_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/qpoll/qpoll/mpath/policy"
)

// rig is a Set among others, all of which have I/Os in flight.
type rig struct {
	set     *policy.Set
	others  []*policy.Set
	tickets []policy.Ticket
	now     int64
	next    int
}

func newRig(tb testing.TB, name string, paths, cores int) *rig {
	g := newGroup(tb, cores, policy.Config{})
	r := &rig{set: g.Set(0), tickets: make([]policy.Ticket, 64), now: 1}
	for core := range cores {
		s := g.Set(core)
		use(tb, s, name)
		for slot := range paths {
			put(tb, s, slot, optimized)
		}
		if core > 0 {
			r.others = append(r.others, s)
		}
	}
	r.stir()
	for range 1 << 16 { // until all is known that policies learn
		r.io()
	}
	return r
}

// stir has the other cores dispatch and publish.
func (r *rig) stir() {
	for _, s := range r.others {
		for range 4 {
			send(s, r.now, 4096, policy.Read)
		}
		s.Idle(r.now)
	}
}

// io is the life of an I/O, but for what lies between.
func (r *rig) io() {
	t := &r.tickets[r.next]
	r.next = (r.next + 1) % len(r.tickets)
	r.set.Complete(t, r.now, true)
	slot := r.set.Select(r.now, 4096, policy.Read)
	r.set.Dispatch(t, slot, r.now, 4096, policy.Read)
	r.now += 1000 // a million per second
}

func grid(b *testing.B, f func(b *testing.B, name string, paths, cores int)) {
	for _, name := range builtin {
		for _, paths := range []int{2, 8, 32} {
			for _, cores := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("%s/paths=%d/cores=%d", name, paths, cores), func(b *testing.B) {
					f(b, name, paths, cores)
				})
			}
		}
	}
}

// A selection alone, at a million per second, what is done once per publish
// interval included.
func BenchmarkSelect(b *testing.B) {
	grid(b, func(b *testing.B, name string, paths, cores int) {
		r := newRig(b, name, paths, cores)
		b.ReportAllocs()
		for b.Loop() {
			r.set.Select(r.now, 4096, policy.Read)
			r.now += 1000
		}
	})
}

// Selection, dispatch and completion.
func BenchmarkIO(b *testing.B) {
	grid(b, func(b *testing.B, name string, paths, cores int) {
		r := newRig(b, name, paths, cores)
		b.ReportAllocs()
		for b.Loop() {
			r.io()
		}
	})
}

// baseline is a way to count what is in flight that the library does not use.
type baseline interface {
	choose(core int) int
	add(core, path int, n int64)
}

// padded keeps counters of different paths or cores apart.
type padded struct {
	n atomic.Int64
	_ [56]byte
}

// oneCounter is the way of the Linux host: a counter per path for all cores.
type oneCounter struct{ paths []padded }

func (o *oneCounter) add(_, path int, n int64) { o.paths[path].n.Add(n) }

func (o *oneCounter) choose(int) int {
	best, least := 0, int64(1)<<62
	for i := range o.paths {
		if n := o.paths[i].n.Load(); n < least {
			best, least = i, n
		}
	}
	return best
}

// sumOfQueues is what its predecessor was: a counter per queue, all of which are
// read for each I/O.
type sumOfQueues struct {
	queues [][]padded // by core and path
}

func (s *sumOfQueues) add(core, path int, n int64) {
	q := &s.queues[core][path].n
	q.Store(q.Load() + n)
}

func (s *sumOfQueues) choose(int) int {
	best, least := 0, int64(1)<<62
	for path := range s.queues[0] {
		n := int64(0)
		for core := range s.queues {
			n += s.queues[core][path].n.Load()
		}
		if n < least {
			best, least = path, n
		}
	}
	return best
}

func newBaseline(name string, paths, cores int) baseline {
	if name == "one-counter" {
		return &oneCounter{paths: make([]padded, paths)}
	}
	s := &sumOfQueues{queues: make([][]padded, cores)}
	for i := range s.queues {
		s.queues[i] = make([]padded, paths)
	}
	return s
}

// pair runs f on two cores at once, with b.N turns each.
func pair(b *testing.B, f func(core, n int)) {
	var wg sync.WaitGroup
	for core := range 2 {
		wg.Go(func() { f(core, b.N) })
	}
	wg.Wait()
}

// Two cores at once that send I/Os on the same 8 paths; ns/op is per I/O and
// core.
func BenchmarkPair(b *testing.B) {
	const paths = 8
	for _, cores := range []int{2, 64} {
		for _, name := range []string{"one-counter", "sum-of-queues"} {
			b.Run(fmt.Sprintf("%s/cores=%d", name, cores), func(b *testing.B) {
				base := newBaseline(name, paths, cores)
				pair(b, func(core, n int) {
					var held [64]int
					for i := range n {
						if i >= len(held) {
							base.add(core, held[i%len(held)], -1)
						}
						path := base.choose(core)
						held[i%len(held)] = path
						base.add(core, path, 1)
					}
				})
			})
		}
		for _, name := range builtin {
			b.Run(fmt.Sprintf("%s/cores=%d", name, cores), func(b *testing.B) {
				rigs := []*rig{newRig(b, name, paths, cores), nil}
				rigs[1] = &rig{set: rigs[0].others[0], tickets: make([]policy.Ticket, 64), now: rigs[0].now}
				b.ResetTimer()
				pair(b, func(core, n int) {
					for range n {
						rigs[core].io()
					}
				})
			})
		}
	}
}

// No policy allocates, ticks included.
func TestAllocs(t *testing.T) {
	for _, name := range builtin {
		r := newRig(t, name, 8, 8)
		if n := testing.AllocsPerRun(10000, r.io); n != 0 {
			t.Errorf("%s: %v allocations per I/O", name, n)
		}
	}
}
