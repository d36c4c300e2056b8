package overhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// fakeQueue completes I/O some passes after it was sent off, and each of its
// calls takes time on a counter of the test.
type fakeQueue struct {
	nvme.Queue // the methods that nobody calls
	clock      uint64
	posted     []*slot
	sent       []*slot
	age        int // passes since the oldest was sent
	latency    int // passes that an I/O takes
	most       int // completions in a pass, 0: all
	status     nvme.Status
	err        error
	writes     bool
	seen       int // submitted
	stuck      bool
	partial    bool // passes without completions have work
}

// What the calls take.
const (
	reading  = 5
	postCost = 20
	ringCost = 7
	cplCost  = 30
	idleCost = 3
)

func (q *fakeQueue) now() uint64 { q.clock += reading; return q.clock }

func (q *fakeQueue) BlockSize() int { return 512 }
func (q *fakeQueue) Blocks() uint64 { return 1000 }

func (q *fakeQueue) Read(buf []byte, lba uint64, blocks uint32, _ nvme.Done, arg any) error {
	return q.take(false, buf, lba, blocks, arg)
}

func (q *fakeQueue) Write(buf []byte, lba uint64, blocks uint32, _ nvme.Done, arg any) error {
	return q.take(true, buf, lba, blocks, arg)
}

func (q *fakeQueue) take(write bool, buf []byte, lba uint64, blocks uint32, arg any) error {
	q.clock += postCost
	if q.err != nil && q.seen > 4 {
		return q.err
	}
	if write != q.writes || len(buf) != int(blocks)*512 || lba+uint64(blocks) > 1000 {
		return fmt.Errorf("%d bytes at block %d, write %v", len(buf), lba, write)
	}
	q.seen++
	q.posted = append(q.posted, arg.(*slot))
	return nil
}

func (q *fakeQueue) Poll(int64) int {
	n := 0
	if len(q.sent) > 0 && !q.stuck {
		if q.age++; q.age > q.latency {
			for len(q.sent) > 0 && (q.most == 0 || n < q.most) {
				s := q.sent[0]
				q.sent = append(q.sent[:0], q.sent[1:]...)
				q.clock += cplCost
				n++
				done(s, q.status)
			}
		}
	}
	if len(q.posted) > 0 {
		q.clock += ringCost
		n += len(q.posted)
		q.sent = append(q.sent, q.posted...)
		q.posted = q.posted[:0]
		q.age = 0
	}
	if n == 0 {
		q.clock += idleCost
		if q.partial && len(q.sent) > 0 {
			n = 1
		}
	}
	return n
}

// meter is one on the fake, without a poller.
func meter(q *fakeQueue, depth, batch int) *Meter {
	m := &Meter{q: q, src: q, ticks: q.now, blocks: 2, write: q.writes, depth: depth, batch: batch}
	for i := range depth {
		m.free = append(m.free, &slot{m: m, buf: make([]byte, 1024), lba: uint64(i)})
	}
	m.free = m.free[:depth:depth]
	return m
}

// check holds counts against each other that must agree, with so many I/Os
// outstanding before and after.
func check(t *testing.T, c *Counts, batch, before, after int) {
	t.Helper()
	if c.Posted != c.PostIntervals*uint64(batch) {
		t.Errorf("%d I/Os in %d batches of %d", c.Posted, c.PostIntervals, batch)
	}
	if c.Rings+c.Mixed != c.PostIntervals || c.Rung != c.Rings*uint64(batch) {
		t.Errorf("%d batches, %d passes and %d that reaped sent them off, %d I/Os", c.PostIntervals, c.Rings, c.Mixed, c.Rung)
	}
	if got := c.Reaped + c.MixedReaped + c.Elsewhere + uint64(after); got != c.Posted+uint64(before) {
		t.Errorf("%d I/Os completed or outstanding of %d", got, c.Posted+uint64(before))
	}
	if c.Completing > c.Reaped || c.Mixed > c.MixedReaped {
		t.Errorf("%d and %d passes for %d and %d I/Os", c.Completing, c.Mixed, c.Reaped, c.MixedReaped)
	}
}

// The figures are what the calls take, in whatever order they come.
func TestMeter(t *testing.T) {
	for _, depth := range []int{1, 2, 7, 64, 256} {
		for _, batch := range []int{1, 2, 7, 32} {
			for _, q := range []*fakeQueue{{}, {latency: 3}, {latency: 1, most: 1}, {latency: 2, writes: true, most: 3}} {
				if batch > depth {
					continue
				}
				m := meter(q, depth, batch)
				var all Counts
				var list []Counts
				for range 20 {
					c := m.slice(q.clock+20000, math.MaxUint64, 0)
					check(t, &c, batch, int(all.Posted-all.Reaped-all.MixedReaped), depth-len(m.free))
					list = append(list, c)
					all.add(&c)
				}
				cost := scale{read: reading, ns: 2}.cost(list)
				for what, f := range map[string][2]float64{
					"post":     {cost.Post, 2 * postCost},
					"ring":     {cost.Ring, 2 * ringCost / float64(batch)},
					"submit":   {cost.Submit(), 2*postCost + 2*ringCost/float64(batch)},
					"complete": {cost.Complete, 2 * cplCost},
				} {
					if math.Abs(f[0]-f[1]) > 1e-9 {
						t.Errorf("depth %d, batch %d, %s: %v ns, want %v", depth, batch, what, f[0], f[1])
					}
				}
				if (all.Idle > 0) != (q.latency > 0) || all.Idle > 0 && cost.IdlePoll != 2*idleCost {
					t.Errorf("%d idle passes, %v ns each", all.Idle, cost.IdlePoll)
				}
				if total := 2*postCost + 2*ringCost/float64(batch) + 2*cplCost; math.Abs(cost.Total-total) > 1e-9 {
					t.Errorf("depth %d, batch %d: total %v ns, want %v", depth, batch, cost.Total, total)
				}
				if len(m.free) != depth {
					t.Errorf("%d I/Os are outstanding at the end of a cycle", depth-len(m.free))
				}
				if all.Partial != 0 || all.Elsewhere != 0 {
					t.Errorf("counts %+v", all)
				}
			}
		}
	}
}

// A pass that has work but completes nothing is neither idle nor a completion's.
func TestPartial(t *testing.T) {
	q := &fakeQueue{latency: 3, partial: true}
	c := meter(q, 4, 2).slice(20000, 20000, 0)
	if c.Partial == 0 || c.Idle != 0 || c.PartialTicks != c.Partial*(idleCost+reading) {
		t.Errorf("counts %+v", c)
	}
}

// A slice whose cycle takes too long ends within it, and the next goes on.
func TestLongCycle(t *testing.T) {
	q := &fakeQueue{latency: 10, most: 1}
	m := meter(q, 64, 8)
	var all Counts
	for range 100 {
		before := 64 - len(m.free)
		c := m.slice(q.clock+300, q.clock+300, 0)
		check(t, &c, 8, before, 64-len(m.free))
		all.add(&c)
	}
	if all.Posted == 0 || all.Reaped == 0 {
		t.Errorf("counts %+v", all)
	}
}

func TestNoAllocations(t *testing.T) {
	q := &fakeQueue{latency: 1}
	m := meter(q, 64, 8)
	m.slice(q.clock+100000, math.MaxUint64, 0)
	if n := testing.AllocsPerRun(10, func() { m.slice(q.clock+100000, math.MaxUint64, 0) }); n != 0 {
		t.Errorf("%v allocations in a slice", n)
	}
}

// start is a Bench on the fake with a running poller.
func start(t *testing.T, q *fakeQueue, change func(*Config)) (*Bench, error) {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := Config{Poller: p, Queue: q, Source: q, Bytes: 1024, Depth: 64, Write: q.writes}
	if change != nil {
		change(&cfg)
	}
	b, err := New(cfg)
	if err == nil {
		// What is outstanding when a slice ends completes in the poller's passes.
		if err := p.Call(t.Context(), func() { p.Add(q) }); err != nil {
			t.Fatal(err)
		}
	}
	return b, err
}

func TestMeasure(t *testing.T) {
	q := &fakeQueue{latency: 2, writes: true}
	b, err := start(t, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.Reading() <= 0 {
		t.Errorf("reading the counter costs %v ns", b.Reading())
	}
	for _, tt := range []struct{ depth, batch int }{{1, 1}, {64, 1}, {64, 32}, {7, 5}} {
		r, err := b.Measure(t.Context(), tt.depth, tt.batch, 5*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		c := &r.Counts
		if r.Slices < 1 || c.Reaped == 0 || r.Cost.Total <= 0 || r.Cost.Complete <= 0 {
			t.Errorf("%+v: %+v", tt, r)
		}
		out := int64(c.Posted) - int64(c.Reaped+c.MixedReaped+c.Elsewhere)
		check(t, c, tt.batch, max(0, int(-out)), max(0, int(out)))
		if out > int64(tt.depth) || -out > int64(tt.depth) {
			t.Errorf("%+v: %d I/Os too many: %+v", tt, out, c)
		}
	}
}

func TestMeasureErrors(t *testing.T) {
	refusal := errors.New("not today")
	for name, tt := range map[string]struct {
		q    *fakeQueue
		want error
	}{
		"status": {&fakeQueue{status: nvme.StatusUnrecoveredReadError}, nvme.StatusUnrecoveredReadError},
		"refuse": {&fakeQueue{err: refusal}, refusal},
		"stuck":  {&fakeQueue{stuck: true}, ErrStuck},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := start(t, tt.q, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.patience = 300 * time.Millisecond
			if _, err := b.Measure(t.Context(), 8, 3, time.Millisecond); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	b, err := start(t, &fakeQueue{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]int{{1, 2}, {4, 0}, {65, 1}} {
		if _, err := b.Measure(t.Context(), tt[0], tt[1], time.Millisecond); !errors.Is(err, ErrConfig) {
			t.Errorf("depth and batch %v: error %v", tt, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Measure(ctx, 1, 1, time.Millisecond); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	none := errors.New("none")
	for _, change := range []func(*Config){
		func(c *Config) { c.Bytes = 100 },
		func(c *Config) { c.Bytes = 0 },
		func(c *Config) { c.Bytes = 512 << 10 },
		func(c *Config) { c.Range = 512 },
		func(c *Config) { c.Depth = 0 },
		func(c *Config) { c.Depth = 1 << 30 },
		func(c *Config) { c.Alloc = func(int) ([]byte, error) { return nil, none } },
	} {
		if _, err := start(t, &fakeQueue{}, change); !errors.Is(err, ErrConfig) && !errors.Is(err, none) {
			t.Errorf("error %v", err)
		}
	}
}
