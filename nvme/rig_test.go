package nvme

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// rig is a controller on a fakeDisk, with a running poller of its own.
type rig struct {
	t  *testing.T
	d  *fakeDisk
	p  *poller.Poller
	c  *Controller
	ns *Namespace
}

func newRig(t *testing.T, d *fakeDisk, cfg *Config) *rig {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if cfg == nil {
		cfg = &Config{}
	}
	cfg.Poller = p
	ctx := context.Background()
	c, err := NewController(ctx, d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.misused) > 0 {
			t.Errorf("the transport was used after it was closed: %v", d.misused)
		}
	})
	ns, err := c.Namespace(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, p, c, ns}
}

func (r *rig) queue(size int) *NamespaceQueue {
	r.t.Helper()
	q, err := r.ns.Queue(context.Background(), r.p, QueueConfig{Size: size})
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// on runs f on the core.
func (r *rig) on(f func()) { r.p.CallAnyway(f) }

// collect is a Done that gathers statuses; its channel holds each once.
type collect struct{ ch chan Status }

func newCollect() *collect { return &collect{make(chan Status, 4096)} }

func collectDone(arg any, st Status) { arg.(*collect).ch <- st }

func (c *collect) wait(t *testing.T) Status {
	t.Helper()
	select {
	case st := <-c.ch:
		return st
	case <-time.After(20 * time.Second):
		t.Fatal("no completion")
		return 0
	}
}

func (c *collect) none(t *testing.T) {
	t.Helper()
	if len(c.ch) != 0 {
		t.Fatalf("%d completions too many", len(c.ch))
	}
}

// clock is a time that a test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) add(d time.Duration) { c.now.Add(int64(d)) }

// steppedRig is a rig whose poller has the test's clock.
func steppedRig(t *testing.T, d *fakeDisk, cfg Config) (*rig, *clock) {
	k := &clock{}
	k.now.Store(1)
	p, err := poller.New(poller.Config{Unpinned: true, Clock: k.now.Load})
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Poller = p
	c, err := NewController(context.Background(), d, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close(context.Background())
		p.Close()
	})
	ns, err := c.Namespace(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, p, c, ns}, k
}

// settle returns after a whole pass at the present time: the one under way may
// have read the clock before, and runs what is posted before its timers.
func (r *rig) settle() {
	for range 3 {
		r.on(func() {})
	}
}

// mute keeps the I/O queues silent until the test lets them answer; what was
// withheld is then answered.
type mute struct {
	d  *fakeDisk
	on atomic.Bool
}

func (d *fakeDisk) mute() *mute {
	m := &mute{d: d}
	m.on.Store(true)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 || !m.on.Load() }
	return m
}

// lift answers what was withheld, on the core of each queue.
func (m *mute) lift() {
	m.on.Store(false)
	m.d.mu.Lock()
	var all []*fakeQueue
	for id, q := range m.d.queues {
		if id != 0 {
			all = append(all, q)
		}
	}
	m.d.mu.Unlock()
	for _, q := range all {
		q.qp.Poller().CallAnyway(func() {
			q.posted = append(q.silent, q.posted...)
			q.silent = nil
		})
	}
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still not: ", what)
		}
	}
}

// outcome runs f on a goroutine of its own.
func outcome(f func() error) chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

func await(t *testing.T, ch chan error) error {
	t.Helper()
	select {
	case err := <-ch:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the call does not return")
		return nil
	}
}

func (r *rig) read(ctx context.Context, lba int64) func() error {
	return func() error {
		_, err := r.ns.ReadAtContext(ctx, make([]byte, 512), lba*512)
		return err
	}
}

// refuseAll makes every connect fail from now on.
func (d *fakeDisk) refuseAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = func(uint16) error { return errRefused }
}

var errRefused = errors.New("refused")

func (d *fakeDisk) queue(id uint16) *fakeQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[id]
}

// startPoller returns a running poller.
func startPoller(t *testing.T) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}
