package poller

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTimerOrder(t *testing.T) {
	p := newPoller(t, Config{})
	p.Poll(1000)
	var got recorder
	p.AfterFunc(30, got.add("30"))
	p.AfterFunc(10, got.add("10"))
	p.AfterFunc(20, got.add("20, set first"))
	p.AfterFunc(20, got.add("20, set second"))
	p.AfterFunc(-5, got.add("past"))
	for _, c := range []struct {
		now  int64
		want []string
	}{
		{1000, []string{"past"}},
		{1009, nil},
		{1010, []string{"10"}},
		{1029, []string{"20, set first", "20, set second"}},
		{1040, []string{"30"}},
		{5000, nil},
	} {
		got = nil
		work := p.Poll(c.now)
		if !slices.Equal(got, c.want) || work != len(c.want) {
			t.Errorf("at %d: %q with work %d, want %q", c.now, got, work, c.want)
		}
	}
}

// Timers set before the clock has a value count from the first pass.
func TestTimerBeforeFirstPass(t *testing.T) {
	p := newPoller(t, Config{})
	var got recorder
	p.AfterFunc(20, got.add("20"))
	p.AfterFunc(10, got.add("10"))
	p.AfterFunc(math.MaxInt64, got.add("never"))
	const start = 1 << 60
	for _, c := range []struct {
		now  int64
		want []string
	}{{start, nil}, {start + 10, []string{"10"}}, {start + 20, []string{"20"}}, {math.MaxInt64 - 2, nil}} {
		got = nil
		p.Poll(c.now)
		if !slices.Equal(got, c.want) {
			t.Errorf("at %d: %q, want %q", c.now, got, c.want)
		}
	}
}

func TestTimerStop(t *testing.T) {
	p := newPoller(t, Config{})
	p.Poll(0)
	fired := 0
	timer := p.AfterFunc(10, func() { fired++ })
	if !timer.Stop() {
		t.Error("a set timer was not set")
	}
	if timer.Stop() {
		t.Error("a stopped timer was set")
	}
	p.Poll(10)
	if fired != 0 {
		t.Error("a stopped timer fired")
	}
	if timer.Reset(10) {
		t.Error("a stopped timer was set")
	}
	p.Poll(20)
	if fired != 1 || timer.Stop() {
		t.Errorf("fired %d times, want once, and not set any more", fired)
	}
}

func TestTimerReset(t *testing.T) {
	p := newPoller(t, Config{})
	p.Poll(0)
	fired := 0
	timer := p.AfterFunc(10, func() { fired++ })
	p.Poll(5)
	if !timer.Reset(10) {
		t.Error("a set timer was not set")
	}
	if p.Poll(14); fired != 0 {
		t.Error("fired too early")
	}
	if !timer.Reset(2) {
		t.Error("a set timer was not set")
	}
	p.Poll(16)
	p.Poll(100)
	if fired != 1 {
		t.Errorf("fired %d times, want 1", fired)
	}
}

func TestTimerFromCallback(t *testing.T) {
	p := newPoller(t, Config{})
	p.Poll(0)
	var got recorder
	var self, victim, pushed *Timer
	self = p.AfterFunc(10, func() {
		got.add("self")()
		self.Reset(0) // due now, but this pass has had it
		if !victim.Stop() {
			t.Error("the victim was not set")
		}
		if !pushed.Reset(100) {
			t.Error("the pushed one was not set")
		}
		p.AfterFunc(0, got.add("new"))
	})
	victim = p.AfterFunc(11, got.add("victim"))
	pushed = p.AfterFunc(12, got.add("pushed"))
	p.AfterFunc(13, got.add("last"))
	for _, c := range []struct {
		now  int64
		want []string
	}{
		{20, []string{"self", "last"}},
		{20, []string{"new"}},
		{119, nil},
		{120, []string{"pushed"}},
	} {
		got = nil
		if c.now == 20 && p.Now() == 20 {
			self.Stop()
		}
		p.Poll(c.now)
		if !slices.Equal(got, c.want) {
			t.Errorf("at %d: %q, want %q", c.now, got, c.want)
		}
	}
}

// The heap against a sorted list, over random settings, resets and stops.
func TestTimerModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := newPoller(t, Config{})
	p.Poll(0)
	type record struct {
		timer *Timer
		when  int64
		seq   int
		set   bool
	}
	var all []*record
	var fired []*record
	seq := 0
	arm := func(r *record, d int64) {
		seq++
		r.when, r.seq, r.set = p.Now()+d, seq, true
	}
	for now := int64(0); now < 2000; now++ {
		for range rng.IntN(6) {
			d := int64(rng.IntN(50))
			if len(all) < 200 {
				r := &record{}
				arm(r, d)
				r.timer = p.AfterFunc(time.Duration(d), func() { fired = append(fired, r) })
				all = append(all, r)
				continue
			}
			r := all[rng.IntN(len(all))]
			if rng.IntN(3) == 0 {
				if was := r.timer.Stop(); was != r.set {
					t.Fatalf("at %d: Stop is %v, want %v", now, was, r.set)
				}
				r.set = false
				continue
			}
			if was := r.timer.Reset(time.Duration(d)); was != r.set {
				t.Fatalf("at %d: Reset is %v, want %v", now, was, r.set)
			}
			arm(r, d)
		}
		var want []*record
		for _, r := range all {
			if r.set && r.when <= now {
				want = append(want, r)
				r.set = false
			}
		}
		slices.SortFunc(want, func(a, b *record) int {
			return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.seq, b.seq))
		})
		fired = nil
		p.Poll(now)
		if !slices.Equal(fired, want) {
			t.Fatalf("at %d %d timers fired, want %d, or another order", now, len(fired), len(want))
		}
	}
}
