package poller

import (
	"math"
	"testing"
	"time"
)

func TestCounting(t *testing.T) {
	p := newPoller(t, Config{})
	work := []int{0, 2, 0, 3, 0}
	p.Add(&source{poll: func(int64) int {
		n := work[0]
		work = work[1:]
		return n
	}})
	must(t, p.Post(func() {}))
	for _, now := range []int64{100, 101, 103, 1003, 1003} {
		p.Poll(now)
	}
	got := p.Stats()
	want := Stats{
		Passes: 5, IdlePasses: 2, Work: 6, Tasks: 1,
		Busy:   1 + 2 + 0, // from 100 to 101, from 101 to 103, and from 1003 to 1003
		MaxGap: 900,
		At:     1003,
	}
	want.Gaps[0] = 2  // the first pass, and the last one
	want.Gaps[1] = 1  // 1
	want.Gaps[2] = 1  // 2
	want.Gaps[10] = 1 // 900
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A stepped poller publishes when the interval has passed, and when it finds
// no more to do.
func TestPublishing(t *testing.T) {
	p := newPoller(t, Config{PublishInterval: 100})
	if s := p.Stats(); s != (Stats{}) {
		t.Errorf("before anything: %+v", s)
	}
	work := 1
	p.Add(&source{poll: func(int64) int { return work }})
	for _, c := range []struct {
		now    int64
		work   int
		passes uint64 // published
	}{
		{0, 1, 1}, // the first pass is published
		{10, 1, 1},
		{99, 1, 1},
		{100, 1, 4}, // the interval is over
		{150, 1, 4},
		{160, 0, 6}, // idle
		{170, 0, 6}, // and nothing new since
		{260, 0, 8}, // the interval since the last one is
	} {
		work = c.work
		p.Poll(c.now)
		if got := p.Stats().Passes; got != c.passes {
			t.Errorf("at %d: %d passes are published, want %d", c.now, got, c.passes)
		}
	}
	must(t, p.Post(func() {
		if got := p.Stats().Passes; got != 8 {
			t.Errorf("live on core: %d passes, want 8", got)
		}
	}))
	p.Poll(261)
}

func TestResetGaps(t *testing.T) {
	p := newPoller(t, Config{PublishInterval: 1})
	for _, now := range []int64{0, 1000, 1010} {
		p.Poll(now)
	}
	p.ResetGaps()
	for _, now := range []int64{1015, 1025} {
		p.Poll(now)
	}
	s := p.Stats()
	var gaps uint64
	for _, n := range s.Gaps {
		gaps += n
	}
	if s.MaxGap != 10 || gaps != 2 || s.Passes != 5 {
		t.Errorf("largest gap %d of %d in %d passes, want 10 of 2 in 5", s.MaxGap, gaps, s.Passes)
	}
}

func TestStatsSub(t *testing.T) {
	p := newPoller(t, Config{PublishInterval: 1})
	idle := &source{}
	p.Add(idle)
	now := int64(0)
	step := func(gaps ...int64) Stats {
		for _, gap := range gaps {
			now += gap
			p.Poll(now)
		}
		return p.Stats()
	}
	start := step(10, 500, 20)
	later := step(3, 90)
	if d := later.Sub(start); d.Passes != 2 || d.IdlePasses != 2 || d.MaxGap != 127 || d.Gaps[2] != 1 || d.Gaps[7] != 1 || d.At != now {
		t.Errorf("the largest gap is older: %+v", d)
	}
	if d := step(800).Sub(later); d.Passes != 1 || d.MaxGap != 800 {
		t.Errorf("the largest gap is new: %+v", d)
	}
	last := p.Stats()
	if d := last.Sub(last); d != (Stats{At: now}) {
		t.Errorf("nothing since: %+v", d)
	}
	if d := last.Sub(Stats{}); d != last {
		t.Errorf("all: %+v, want %+v", d, last)
	}
}

func TestGapQuantile(t *testing.T) {
	var s Stats
	if got := s.GapQuantile(0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	s.Gaps[0] = 10 // 0
	s.Gaps[5] = 80 // 16 to 31
	s.Gaps[10] = 9 // 512 to 1023
	s.Gaps[20] = 1 // 524288 to 1048575
	s.MaxGap = 6e5 // in there
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{
		{0, 0}, {0.1, 0}, {0.11, 31}, {0.5, 31}, {0.9, 31}, {0.95, 1023}, {0.99, 1023}, {0.995, 6e5}, {1, 6e5}, {2, 6e5},
	} {
		if got := s.GapQuantile(c.q); got != c.want {
			t.Errorf("quantile %v is %d, want %d", c.q, got, c.want)
		}
	}
}

func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		gap    uint64
		bucket int
	}{{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}, {math.MaxInt64, 63}} {
		p := newPoller(t, Config{})
		p.countGap(c.gap)
		if p.counters[cGaps+c.bucket] != 1 {
			t.Errorf("a gap of %d is not in bucket %d", c.gap, c.bucket)
		}
		bound := uint64(bucketBound(c.bucket))
		if c.gap > bound || c.bucket > 0 && c.gap <= uint64(bucketBound(c.bucket-1)) {
			t.Errorf("a gap of %d is in a bucket up to %d", c.gap, bound)
		}
	}
}

// Readers must get snapshots, not mixtures: what is published here always has
// as much work as it has passes.
func TestSnapshotsAreWhole(t *testing.T) {
	p := startPoller(t, Config{PublishInterval: 100 * time.Microsecond})
	onCore(t, p, func() { p.Add(&source{poll: func(int64) int { return 1 }}) })
	base := p.Stats()
	eventually(t, "snapshots with the source in them", func() bool { base = p.Stats(); return base.Work > base.Tasks+10 })
	for range 2000 {
		s := p.Stats().Sub(base)
		if s.Work != s.Passes+s.Tasks {
			t.Fatalf("%d passes, %d tasks, %d work", s.Passes, s.Tasks, s.Work)
		}
		var gaps uint64
		for _, n := range s.Gaps {
			gaps += n
		}
		if gaps != s.Passes {
			t.Fatalf("%d gaps in %d passes", gaps, s.Passes)
		}
	}
}
