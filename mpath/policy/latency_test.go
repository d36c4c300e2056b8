package policy_test

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

// serve sends I/Os one after the other, where each path takes its time.
func serve(s *policy.Set, now *int64, n int, dir policy.Dir, ns ...int64) (sent [policy.MaxPaths]int) {
	for range n {
		t := send(s, *now, 4096, dir)
		sent[t.Slot()]++
		*now += ns[t.Slot()]
		s.Complete(t, *now, true)
	}
	return sent
}

// Round robin while latencies are not known, then in inverse proportion to
// them, each kind of I/O for itself.
func TestLatency(t *testing.T) {
	s := newSet(t, policy.Latency, optimized, optimized)
	if err := s.TuneLatency(3, time.Second); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	got := serve(s, &now, 100, policy.Read, 1*ms, 3*ms)
	if got[0] != 50 || got[1] != 50 {
		t.Errorf("unknown: sent %v", got[:2])
	}
	for now < int64(time.Second)+10*ms {
		serve(s, &now, 1, policy.Read, 1*ms, 3*ms)
	}
	// Scores 1000 and 333 of 1333: weights 96 and 31.
	if got = serve(s, &now, 127*3, policy.Read, 1*ms, 3*ms); got[0] != 96*3 || got[1] != 31*3 {
		t.Errorf("known: sent %v, want %v", got[:2], []int{96 * 3, 31 * 3})
	}
	if got = serve(s, &now, 100, policy.Write, 1*ms, 3*ms); got[0] != 50 || got[1] != 50 {
		t.Errorf("writes are not known: sent %v", got[:2])
	}
}

// A slow path keeps a weight of 1, and outliers change nothing.
func TestLatencyFloor(t *testing.T) {
	s := newSet(t, policy.Latency, optimized, optimized)
	now := int64(0)
	for now < int64(20*time.Second) {
		serve(s, &now, 2, policy.Read, ms/10, 300*ms)
		serve(s, &now, 1, policy.Read, 2*int64(time.Second), 2*int64(time.Second))
	}
	if got := serve(s, &now, 128*2, policy.Read, ms/10, 300*ms); got[1] != 2 {
		t.Errorf("the slow path got %d of 256, want 2", got[1])
	}
}
