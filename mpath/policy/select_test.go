package policy_test

import (
	"slices"
	"testing"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// Every policy obeys ANA, and finds nothing when nothing is usable.
func TestANA(t *testing.T) {
	path := func(s nvme.ANAState, usable bool) policy.Path {
		return policy.Path{State: s, Usable: usable, Weight: 1}
	}
	for _, c := range []struct {
		name  string
		paths []policy.Path
		want  []int // the only slots that are chosen
	}{
		{"none", nil, []int{-1}},
		{"optimized first", []policy.Path{path(nvme.ANANonOptimized, true), path(nvme.ANAOptimized, true), path(nvme.ANANonOptimized, true)}, []int{1}},
		{"two optimized", []policy.Path{path(nvme.ANAOptimized, true), path(nvme.ANANonOptimized, true), path(nvme.ANAOptimized, true)}, []int{0, 2}},
		{"non-optimized", []policy.Path{path(nvme.ANANonOptimized, true), path(nvme.ANAOptimized, false), path(nvme.ANANonOptimized, true)}, []int{0, 2}},
		{"never others", []policy.Path{path(nvme.ANAInaccessible, true), path(nvme.ANAPersistentLoss, true), path(nvme.ANAChange, true)}, []int{-1}},
		{"not usable", []policy.Path{path(nvme.ANAOptimized, false), path(nvme.ANANonOptimized, false)}, []int{-1}},
	} {
		for _, name := range builtin {
			s := newSet(t, name, c.paths...)
			for i := range 100 {
				slot := s.Select(int64(i)*ms, 4096, policy.Read)
				if !slices.Contains(c.want, slot) {
					t.Fatalf("%s, %s: chose %d, want one of %v", c.name, name, slot, c.want)
				}
				s.Dispatch(new(policy.Ticket), slot, int64(i)*ms, 4096, policy.Read)
			}
		}
	}
}

// numa stays with a path until it stops being optimized or usable.
func TestNUMA(t *testing.T) {
	near, far := optimized, optimized
	near.Distance, far.Distance = 10, 20
	s := newSet(t, policy.NUMA, far, near)
	want := func(what string, slot int) {
		t.Helper()
		if got := s.Select(0, 4096, policy.Read); got != slot {
			t.Errorf("%s: chose %d, want %d", what, got, slot)
		}
	}
	want("nearest of those there", 0) // 1 came later, and 0 was good
	dead := far
	dead.Usable = false
	put(t, s, 0, dead)
	want("0 is dead", 1)
	put(t, s, 0, far)
	want("0 is back, farther", 1)
	nearest := far
	nearest.Distance = 1
	put(t, s, 0, nearest)
	want("0 is nearer, but 1 is in use", 1)
	slow := near
	slow.State = nvme.ANANonOptimized
	put(t, s, 1, slow)
	want("1 is not optimized any more", 0)
	nearest.State = nvme.ANANonOptimized
	put(t, s, 0, nearest)
	want("neither is optimized", 0)
	nearest.Distance = 50
	put(t, s, 0, nearest)
	want("and 1 is nearer", 1)
	s.Remove(1)
	want("1 is gone", 0)
}

func TestRoundRobin(t *testing.T) {
	s := newSet(t, policy.RoundRobin, optimized, optimized, optimized)
	if got, want := picks(s, 7, 4096), []int{1, 2, 0, 1, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("chose %v, want %v", got, want)
	}
	dead := optimized
	dead.Usable = false
	put(t, s, 2, dead)
	if got, want := picks(s, 3, 4096), []int{0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("without 2 chose %v, want %v", got, want)
	}
	all := make([]policy.Path, policy.MaxPaths)
	for i := range all {
		all[i] = optimized
	}
	s = newSet(t, policy.RoundRobin, all...)
	for i, slot := range picks(s, 100, 512) {
		if want := (i + 1) % policy.MaxPaths; slot != want {
			t.Fatalf("I/O %d of 32 paths went to %d, want %d", i, slot, want)
		}
	}
}

func TestQueueDepth(t *testing.T) {
	s := newSet(t, policy.QueueDepth, optimized, optimized, optimized)
	var tickets []*policy.Ticket
	for i, bytes := range []uint32{1 << 20, 512, 512, 512, 512} {
		tickets = append(tickets, send(s, 0, bytes, policy.Read))
		if got := tickets[i].Slot(); got != i%3 {
			t.Errorf("I/O %d went to %d, want %d", i, got, i%3)
		}
	}
	s.Complete(tickets[1], 1, true)
	s.Release(tickets[4], 1)
	for i, want := range []int{1, 1, 2} {
		if got := send(s, 2, 512, policy.Read).Slot(); got != want {
			t.Errorf("I/O %d after completions went to %d, want %d", i, got, want)
		}
	}
}

// Each core counts its own I/Os as they are, and others' as they published them.
func TestSnapshots(t *testing.T) {
	g := newGroup(t, 2, policy.Config{})
	mine, other := g.Set(0), g.Set(1)
	for _, s := range []*policy.Set{mine, other} {
		use(t, s, policy.QueueDepth)
		put(t, s, 0, optimized)
		put(t, s, 1, optimized)
	}
	now := ms
	mine.Tick(now)
	var tickets [4]policy.Ticket
	for i := range tickets {
		other.Dispatch(&tickets[i], 0, now, 1000, policy.Write)
	}
	if got := mine.Select(now, 512, policy.Read); got != 0 {
		t.Errorf("chose %d by what nobody has published", got)
	}
	other.Tick(now)
	if got, want := g.InFlight(0), (policy.Load{Bytes: 4000, Count: 4}); got != want {
		t.Errorf("published %+v, want %+v", got, want)
	}
	now += ms
	if got := mine.Select(now, 512, policy.Read); got != 1 {
		t.Errorf("chose %d, where another core has 4 in flight", got)
	}
	if mine.Cores() != 2 {
		t.Errorf("%d cores are active, want 2", mine.Cores())
	}
	if got := mine.Others(0).Count; got != 4 {
		t.Errorf("others have %d in flight, want 4", got)
	}
	// The other core stops polling; after a time its word no longer counts.
	now += 51 * ms
	if mine.Select(now, 512, policy.Read); mine.Others(0).Count != 0 || mine.Cores() != 1 {
		t.Errorf("a snapshot of 52 ms ago still counts: %+v", mine.Others(0))
	}
	other.Tick(now)
	mine.Tick(now + ms)
	if got := mine.Others(0).Count; got != 4 {
		t.Errorf("the core polls again, and has %d in flight, want 4", got)
	}
	for i := range tickets {
		other.Release(&tickets[i], now)
	}
	other.Idle(now)
	mine.Tick(now + 2*ms)
	if got := mine.Others(0); got != (policy.Load{}) {
		t.Errorf("the other core is idle, and has %+v in flight", got)
	}
}

func TestServiceTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights []int
		bytes   []uint32
		want    []int
	}{
		{"equal", []int{1, 1}, []uint32{4096, 4096, 4096, 4096}, []int{0, 1, 0, 1}},
		{"by size", []int{1, 1}, []uint32{8192, 4096, 4096, 4096}, []int{0, 1, 1, 0}},
		{"equal times go to the higher throughput", []int{1, 4}, []uint32{4096, 4096, 4096, 4096, 4096, 4096}, []int{1, 0, 1, 1, 1, 1}},
		{"standby", []int{0, 1}, []uint32{4096, 4096, 4096}, []int{1, 1, 1}},
		{"only standby", []int{0, 0}, []uint32{4096, 4096, 4096}, []int{0, 1, 0}},
	} {
		var paths []policy.Path
		for _, w := range c.weights {
			paths = append(paths, weighted(w))
		}
		s := newSet(t, policy.ServiceTime, paths...)
		for i, n := range c.bytes {
			if got := send(s, 0, n, policy.Read).Slot(); got != c.want[i] {
				t.Errorf("%s: I/O %d went to %d, want %d", c.name, i, got, c.want[i])
			}
		}
	}
}

// A standby path is used when no other is usable, and no longer than that.
func TestStandby(t *testing.T) {
	s := newSet(t, policy.ServiceTime, weighted(1), weighted(0))
	if got := picks(s, 3, 4096); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("chose %v with an active path", got)
	}
	dead := weighted(1)
	dead.Usable = false
	put(t, s, 0, dead)
	if got := picks(s, 3, 4096); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("chose %v with none", got)
	}
	put(t, s, 0, weighted(1))
	if got := picks(s, 3, 4096); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("chose %v with the active path back", got)
	}
}
