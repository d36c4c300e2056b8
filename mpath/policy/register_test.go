package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

// last chooses the last candidate.
type last struct{ policy.Base }

func (last) Select(s *policy.Set, _ int64, _ uint32, _ policy.Dir) int {
	c := s.Candidates()
	return int(c[len(c)-1])
}

// wild chooses what is not there.
type wild struct{ policy.Base }

func (wild) Select(*policy.Set, int64, uint32, policy.Dir) int { return 77 }

func TestNames(t *testing.T) {
	want := []string{"numa", "round-robin", "queue-depth", "service-time", "latency", "expected-delay"}
	if got := policy.Names(); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("policies %q, want first %q", got, want)
	}
	s := newSet(t, policy.NUMA, optimized)
	for _, name := range want {
		use(t, s, name)
		if got, p := s.Policy(); got != name || p == nil {
			t.Errorf("in force is %q, want %q", got, name)
		}
	}
	err := s.Use("queue_depth")
	if !errors.Is(err, policy.ErrUnknown) || !strings.Contains(err.Error(), "queue-depth, ") {
		t.Errorf("unknown policy: %v", err)
	}
	if got, _ := s.Policy(); got != policy.ExpectedDelay {
		t.Errorf("in force after a bad name is %q", got)
	}
}

func TestRegister(t *testing.T) {
	create := func() policy.Policy { return last{} }
	if err := policy.Register("test-last", create); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "numa", "test-last", "Last", "a b", "-a", "1st", "a\n", strings.Repeat("a", 33)} {
		if err := policy.Register(name, create); !errors.Is(err, policy.ErrName) {
			t.Errorf("Register(%q): %v", name, err)
		}
	}
	if err := policy.Register("test-nil", nil); !errors.Is(err, policy.ErrName) {
		t.Errorf("Register without a function: %v", err)
	}
	if err := policy.Register("test-none", func() policy.Policy { return nil }); err != nil {
		t.Fatal(err)
	}
	s := newSet(t, "test-last", optimized, optimized, optimized)
	if got := picks(s, 3, 512); !slices.Equal(got, []int{2, 2, 2}) {
		t.Errorf("chose %v", got)
	}
	if err := s.Use("test-none"); !errors.Is(err, policy.ErrUnknown) {
		t.Errorf("Use of a policy without a value: %v", err)
	}
}

// A policy that chooses what is not there does no harm.
func TestWild(t *testing.T) {
	s := newSet(t, policy.NUMA, optimized, optimized)
	if err := s.UsePolicy("wild", wild{}); err != nil {
		t.Fatal(err)
	}
	if got := picks(s, 3, 512); !slices.Equal(got, []int{0, 0, 0}) || s.Misses() != 3 {
		t.Errorf("chose %v, %d misses", got, s.Misses())
	}
	if err := s.UsePolicy("wild", nil); !errors.Is(err, policy.ErrUnknown) {
		t.Errorf("no policy: %v", err)
	}
	if err := s.UsePolicy("Wild", wild{}); !errors.Is(err, policy.ErrName) {
		t.Errorf("bad name: %v", err)
	}
}

func TestBadPaths(t *testing.T) {
	s := newSet(t, policy.NUMA)
	for _, c := range []struct {
		slot int
		path policy.Path
		want error
	}{
		{-1, optimized, policy.ErrSlot},
		{policy.MaxPaths, optimized, policy.ErrSlot},
		{0, weighted(-1), policy.ErrWeight},
		{0, weighted(101), policy.ErrWeight},
		{0, policy.Path{Usable: true}, policy.ErrState},
	} {
		if err := s.Put(c.slot, c.path); !errors.Is(err, c.want) {
			t.Errorf("Put(%d, %+v): %v, want %v", c.slot, c.path, err, c.want)
		}
	}
	if _, ok := s.Path(0); ok || s.Select(0, 512, policy.Read) != -1 {
		t.Error("a bad path was put")
	}
	s.Remove(-1)
	s.Remove(5)
	s.Reset(policy.MaxPaths)
	if got := s.Stats(99); got != (policy.PathStats{}) {
		t.Errorf("statistics of no path: %+v", got)
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []policy.Config{
		{PublishInterval: -1},
		{PublishInterval: 2 * time.Hour},
		{StaleAfter: time.Microsecond},
		{LatencyShift: -1},
		{LatencyShift: 17},
		{LatencyBatch: -1},
		{LatencyBatch: 2 * time.Hour},
	} {
		if _, err := policy.NewGroup(1, cfg); !errors.Is(err, policy.ErrConfig) {
			t.Errorf("NewGroup(1, %+v): %v", cfg, err)
		}
	}
	for _, cores := range []int{-1, 0, policy.MaxCores + 1} {
		if _, err := policy.NewGroup(cores, policy.Config{}); !errors.Is(err, policy.ErrConfig) {
			t.Errorf("NewGroup(%d): %v", cores, err)
		}
	}
	s := newSet(t, policy.Latency)
	if err := s.TuneLatency(0, time.Second); !errors.Is(err, policy.ErrConfig) {
		t.Errorf("TuneLatency(0): %v", err)
	}
	if err := s.TuneLatency(5, time.Second); err != nil {
		t.Errorf("TuneLatency(5): %v", err)
	}
}
