package policy_test

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// optimized is a path as good as any.
var optimized = policy.Path{State: nvme.ANAOptimized, Usable: true, Weight: policy.DefaultWeight}

func newGroup(t testing.TB, cores int, cfg policy.Config) *policy.Group {
	t.Helper()
	g, err := policy.NewGroup(cores, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newSet returns the only Set of a group, with the named policy and paths.
func newSet(t testing.TB, name string, paths ...policy.Path) *policy.Set {
	t.Helper()
	s := newGroup(t, 1, policy.Config{}).Set(0)
	use(t, s, name)
	for slot, p := range paths {
		put(t, s, slot, p)
	}
	return s
}

func put(t testing.TB, s *policy.Set, slot int, p policy.Path) {
	t.Helper()
	if err := s.Put(slot, p); err != nil {
		t.Fatal(err)
	}
}

func use(t testing.TB, s *policy.Set, name string) {
	t.Helper()
	if err := s.Use(name); err != nil {
		t.Fatal(err)
	}
}

// send dispatches an I/O where the policy says.
func send(s *policy.Set, now int64, bytes uint32, dir policy.Dir) *policy.Ticket {
	t := new(policy.Ticket)
	s.Dispatch(t, s.Select(now, bytes, dir), now, bytes, dir)
	return t
}

// picks returns the slots of n I/Os that are all left in flight.
func picks(s *policy.Set, n int, bytes uint32) []int {
	var slots []int
	for range n {
		slots = append(slots, send(s, 0, bytes, policy.Read).Slot())
	}
	return slots
}

func weighted(weight int) policy.Path {
	p := optimized
	p.Weight = weight
	return p
}

// builtin are the policies of the package.
var builtin = []string{policy.NUMA, policy.RoundRobin, policy.QueueDepth, policy.ServiceTime, policy.Latency, policy.ExpectedDelay}

const ms = int64(time.Millisecond)
