package nvme

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A poller that was held up, by a callback or the machine, looks at what has
// arrived before it takes commands for overdue, or the controller for dead.
func TestLatePoller(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.KAS = 10
	var lost atomic.Int32
	r, k := steppedRig(t, d, Config{IOTimeout: time.Second, KeepAlive: 4 * time.Second, ReconnectDelay: time.Millisecond, Events: &Events{
		State:   func(_ *Controller, _, to State, err error) { lost.Add(int32(to) & int32(StateResetting)) },
		Timeout: func(*Controller, uint16, uint16, time.Duration, string) { lost.Add(100) },
	}})
	q := r.queue(16)
	c := newCollect()
	lost.Store(0)
	var keep atomic.Int32
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminKeepAlive {
			keep.Add(1)
		}
		return 0, true
	}
	for round := range 5 {
		sent := keep.Load()
		// Up to where a Keep Alive is posted: its answer comes in the same pass.
		for keep.Load() == sent {
			k.add(100 * time.Millisecond)
			r.settle()
		}
		until := k.now.Load() + int64(30*time.Second)
		d.queue(0).quiet.Store(until)
		d.queue(q.qp.ID()).quiet.Store(until)
		for d.queue(0).held.Load() == 0 { // the next one waits for its answer
			k.add(100 * time.Millisecond)
			r.settle()
		}
		r.on(func() {
			if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
				t.Error(err)
			}
		})
		r.settle()
		k.add(time.Minute) // within which both answers arrive
		r.settle()
		if st := c.wait(t); st != 0 {
			t.Fatal(round, st)
		}
		d.queue(0).held.Store(0)
	}
	if n := lost.Load(); n != 0 || r.c.State() != StateLive {
		t.Fatal(n, r.c.State())
	}
}

// The time for fast failure runs from the loss, also while a silent controller
// is being disconnected.
func TestFastFailWhileDisconnecting(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, FastIOFailTimeout: 20 * time.Millisecond})
	quick, slow := r.queue(8), r.queue(8)
	hold := make(chan struct{})
	d.mu.Lock()
	d.disconnecting = func(qp *QueuePair) {
		if qp == slow.qp {
			<-hold
		}
	}
	d.mu.Unlock()
	m := d.mute()
	c := newCollect()
	r.on(func() {
		for _, q := range []*NamespaceQueue{quick, slow} {
			if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
				t.Error(err)
			}
		}
	})
	d.queue(0).cut(errCut)
	if st := c.wait(t); st.Code() != StatusHostPathError {
		t.Fatal(st)
	}
	c.none(t)
	close(hold)
	if st := c.wait(t); st.Code() != StatusHostPathError && st != 0 {
		t.Fatal(st)
	}
	m.lift()
	if err := r.c.waitLive(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.lift()
	eventually(t, "I/O passes again", func() bool {
		err := r.read(context.Background(), 0)()
		return err == nil
	})
	c.none(t)
}

// A controller cannot talk the host into trusting it for long.
func TestKeepAliveRounding(t *testing.T) {
	for _, tc := range []struct {
		ask    time.Duration
		kas    uint16
		answer uint64 // ms; 1 stands for a rejection
		want   time.Duration
	}{
		{5 * time.Second, 10, 5000, 5 * time.Second},
		{5*time.Second + 1, 10, 6000, 6 * time.Second},
		{5500 * time.Millisecond, 10, 1, 6 * time.Second},
		{5 * time.Second, 1, 0xffffffff, 5 * time.Second},
		{5 * time.Second, 1, 2000, 2 * time.Second},
		{5 * time.Second, 1, 0, 5 * time.Second},
		{5 * time.Second, 0, 5000, 0},
		{Forever, 10, 5000, 0},
		{5 * time.Second, 0xffff, 0xffffffff, 6553500 * time.Millisecond},
	} {
		d := newFakeDisk(512, 64)
		d.id.KAS = tc.kas
		d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
			if rq.Cmd.Opcode != AdminGetFeatures {
				return 0, true
			}
			if tc.answer == 1 {
				return StatusInvalidField, true
			}
			fq.cpl.Result, fq.cpl.StatusPhase = tc.answer, 0
			fq.qp.Complete(rq, &fq.cpl)
			return 0, false
		}
		r := newRig(t, d, &Config{KeepAlive: tc.ask})
		if got := r.c.alive.timeout; got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// The number of I/O queues is what the controller grants, at most what was
// asked for.
func TestQueueNegotiation(t *testing.T) {
	for _, tc := range []struct {
		ask, want int
		result    uint64
	}{
		{4, 4, 3<<16 | 3}, {4, 2, 1<<16 | 3}, {4, 2, 3<<16 | 1}, {4, 1, 0}, {4, 4, 0xffffffff}, {1, 1, 0xffff}, {65534, 65534, 0xffffffff},
	} {
		d := newFakeDisk(512, 64)
		d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
			if rq.Cmd.Opcode != AdminSetFeatures || rq.Cmd.CDW10 != uint32(FeatNumberOfQueues) {
				return 0, true
			}
			if n := uint32(tc.ask - 1); rq.Cmd.CDW11 != n<<16|n {
				t.Errorf("%+v: asked for %#x", tc, rq.Cmd.CDW11)
			}
			fq.cpl.Result, fq.cpl.StatusPhase = tc.result, 0
			fq.qp.Complete(rq, &fq.cpl)
			return 0, false
		}
		r := newRig(t, d, &Config{IOQueues: tc.ask})
		if n := r.c.IOQueues(); n != tc.want {
			t.Errorf("%+v: %d", tc, n)
		}
	}
}

// When the context of Close ends, so does the shutdown notification; another
// Close waits for the rest.
func TestCloseInHaste(t *testing.T) {
	d := &regDisk{fakeDisk: newFakeDisk(512, 64), cstsScript: []uint64{0, 1}}
	c, err := NewController(context.Background(), d, &Config{Poller: startPoller(t)})
	if err != nil {
		t.Fatal(err)
	}
	// The controller never completes its shutdown, and asks for much time.
	id := *c.Identify()
	id.RTD3E = 0xffffffff
	c.id.Store(&id)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("in haste")
	cancel(why)
	if err := c.Close(ctx); err != nil && !errors.Is(err, why) {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := await(t, outcome(func() error { return c.Close(context.Background()) })); err != nil {
		t.Fatal(err, time.Since(begin))
	}
}
