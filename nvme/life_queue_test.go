package nvme

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// Closing a queue from two goroutines gives its identifier back once, and not
// before the transport has let go of it.
func TestQueueCloseTwice(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{IOQueues: 4})
	q := r.queue(8)
	hold, entered := make(chan struct{}), make(chan struct{}, 8)
	d.mu.Lock()
	d.disconnecting = func(qp *QueuePair) {
		if qp == q.qp {
			entered <- struct{}{}
			<-hold
		}
	}
	d.mu.Unlock()
	ctx := context.Background()
	first := outcome(func() error { return q.Close(ctx) })
	<-entered
	second := outcome(func() error { return q.Close(ctx) })
	a := r.queue(8)
	if a.qp.ID() == q.qp.ID() {
		t.Error("the identifier is in use again while the transport disconnects the old queue")
	}
	close(hold)
	for _, ch := range []chan error{first, second} {
		if err := await(t, ch); err != nil {
			t.Error(err)
		}
	}
	if len(entered) != 0 {
		t.Error("disconnected twice")
	}
	seen := map[uint16]bool{a.qp.ID(): true}
	for range 3 {
		n := r.queue(8)
		if seen[n.qp.ID()] {
			t.Fatal("two queues have identifier", n.qp.ID())
		}
		seen[n.qp.ID()] = true
	}
}

// A queue that is closed while it reconnects holds up neither the reconnect
// nor the closing.
func TestQueueCloseWhileConnecting(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, ConnectTimeout: time.Hour})
	q, other := r.queue(8), r.queue(8)
	entered := make(chan struct{})
	var once sync.Once
	d.mu.Lock()
	d.connecting = func(ctx context.Context, qp *QueuePair) error {
		if qp != q.qp {
			return nil
		}
		once.Do(func() { close(entered) })
		<-ctx.Done()
		return context.Cause(ctx)
	}
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	<-entered
	if err := await(t, outcome(func() error { return q.Close(context.Background()) })); err != nil {
		t.Fatal(err)
	}
	if err := await(t, outcome(func() error { return r.c.waitLive(context.Background()) })); err != nil {
		t.Fatal(err)
	}
	c := newCollect()
	other.qp.Poller().CallAnyway(func() {
		if err := other.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	if st := c.wait(t); st != 0 {
		t.Fatal(st)
	}
}

// Closing the controller while others use its transport: they end, and only
// then is the transport closed.
func TestCloseWhileInUse(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ConnectTimeout: time.Hour})
	q := r.queue(8)
	entered := make(chan struct{}, 8)
	d.mu.Lock()
	d.connecting = func(ctx context.Context, qp *QueuePair) error {
		entered <- struct{}{}
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // takes its time to leave
		return context.Cause(ctx)
	}
	d.mu.Unlock()
	ctx := context.Background()
	open := outcome(func() error { _, err := r.c.OpenQueue(ctx, r.p, QueueConfig{}); return err })
	<-entered
	var calls []chan error
	for range 3 {
		calls = append(calls, outcome(func() error { return r.c.Close(ctx) }),
			outcome(func() error { return q.Close(ctx) }))
	}
	if err := await(t, open); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	for _, ch := range calls {
		if err := await(t, ch); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.c.Property(ctx, RegCSTS, 4); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := r.c.SetProperty(ctx, RegCC, 4, 0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := q.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Calls that wait are refused on the core of any queue of the controller: the
// manager may need that core before it can help them.
func TestOnCoreOfAnyQueue(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	p := startPoller(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := r.ns.Queue(ctx, p, QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p.CallAnyway(func() {
		_, admin := r.c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil)
		_, open := r.c.OpenQueue(ctx, r.p, QueueConfig{})
		_, property := r.c.Property(ctx, RegCSTS, 4)
		for name, err := range map[string]error{
			"close": r.c.Close(ctx), "reset": r.c.Reset(ctx), "admin": admin, "open": open, "property": property,
			"set property": r.c.SetProperty(ctx, RegCC, 4, 1), "queue close": q.Close(ctx),
			"read": r.read(ctx, 0)(), "flush": r.ns.Flush(ctx),
		} {
			if !errors.Is(err, ErrOnCore) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	if r.c.State() != StateLive {
		t.Fatal(r.c.State())
	}
}

// A poller that was closed under a queue costs that queue, not the controller.
func TestPollerClosedUnderQueue(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	p := startPoller(t)
	q, err := r.ns.Queue(context.Background(), p, QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m := d.mute()
	c := newCollect()
	p.CallAnyway(func() {
		if err := q.Write(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	p.Close()
	m.on.Store(false)
	if err := r.c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if st := c.wait(t); !st.IsPath() {
		t.Fatal(st)
	}
	p.CallAnyway(func() {
		if err := q.Write(make([]byte, 512), 0, 1, collectDone, c); !errors.Is(err, poller.ErrClosed) {
			t.Error(err)
		}
	})
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
	c.none(t)
}

// A queue is lost once, however many of its commands are overdue.
func TestLostOnce(t *testing.T) {
	d := newFakeDisk(512, 64)
	var lost, live atomic.Int32
	again := make(chan struct{}, 16)
	r, k := steppedRig(t, d, Config{IOTimeout: time.Second, ReconnectDelay: time.Millisecond, Events: &Events{
		Queue: func(_ *Controller, _ uint16, err error) {
			if err != nil {
				lost.Add(1)
			} else if live.Add(1) > 0 {
				again <- struct{}{}
			}
		},
	}})
	q := r.queue(32)
	var muted atomic.Bool
	muted.Store(true)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() == 0 && rq.Cmd.Opcode == AdminAbort {
			return StatusInvalidField, true
		}
		return 0, fq.qp.ID() == 0 || !muted.Load()
	}
	c := newCollect()
	hold := make(chan struct{})
	d.mu.Lock()
	d.disconnecting = func(*QueuePair) { <-hold }
	d.mu.Unlock()
	r.on(func() {
		for i := range 20 {
			if err := q.Read(make([]byte, 512), uint64(i), 1, collectDone, c); err != nil {
				t.Error(err)
			}
		}
	})
	for range 30 {
		k.add(125 * time.Millisecond)
		r.settle()
	}
	muted.Store(false)
	close(hold)
	<-again
	if n := lost.Load(); n != 1 {
		t.Fatalf("lost %d times", n)
	}
	for range 20 {
		if st := c.wait(t); st != 0 {
			t.Fatal(st)
		}
	}
}

// Commands of the library's own fail while there is no connection: nobody
// would answer them, and the next connection knows nothing of them.
func TestInternalWithoutConnection(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	refused := make(chan struct{}, 64)
	var up atomic.Bool
	d.mu.Lock()
	d.refuse = func(uint16) error {
		if up.Load() {
			return nil
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return errRefused
	}
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	<-refused
	call := outcome(func() error {
		_, err := r.c.admin.DoInternal(context.Background(), &Command{Opcode: AdminKeepAlive}, nil)
		return err
	})
	if err := await(t, call); !errors.Is(err, ErrNotLive) {
		t.Fatal(err)
	}
	up.Store(true)
	if err := r.c.waitLive(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.on(func() {
		if n, want := r.c.admin.InFlight(), 1; n != want { // the event request
			t.Errorf("%d in flight, want %d", n, want)
		}
	})
}

// A connection that breaks before it goes live is not used: what waits keeps
// waiting for the next.
func TestBrokenBeforeLive(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	q := r.queue(16)
	c := newCollect()
	var broke atomic.Bool
	d.mu.Lock()
	d.connected = func(fq *fakeQueue) {
		if fq.qp == q.qp && !broke.Swap(true) {
			_ = fq.qp.Poller().Post(func() { // once Connect has returned
				fq.cut(errCut)
				if err := q.CompareAndWrite(make([]byte, 512), make([]byte, 512), 7, 1, collectDone, c); err != nil {
					t.Error(err)
				}
			})
		}
	}
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	if st := c.wait(t); st != 0 {
		t.Fatal(st)
	}
	c.none(t)
}

// A transport that needs an admin command for each queue, as PCIe does, gets
// them all through, however many there are and whatever users wait for.
func TestManyQueuesReconnect(t *testing.T) {
	const queues = 64
	d := newFakeDisk(512, 64)
	ctx := context.Background()
	d.connecting = func(ctx context.Context, qp *QueuePair) error {
		if qp.ID() == 0 {
			return nil
		}
		_, err := d.queue(0).qp.DoInternal(ctx, &Command{Opcode: AdminCreateIOCQ}, nil)
		return err
	}
	var most, now int
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() != 0 || rq.Cmd.Opcode != AdminCreateIOCQ {
			return 0, true
		}
		now++
		most = max(most, now)
		fq.qp.Poller().AfterFunc(time.Millisecond, func() { // others come meanwhile
			now--
			fq.qp.Complete(rq, &Completion{CID: rq.Cmd.CID})
		})
		return 0, false
	}
	r := newRig(t, d, &Config{IOQueues: queues, ReconnectDelay: time.Millisecond})
	for range queues {
		r.queue(4)
	}
	hold := make(chan struct{})
	d.mu.Lock()
	d.disconnecting = func(qp *QueuePair) { <-hold }
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	var calls []chan error
	// The admin queue is down; until the manager knows, commands are held.
	r.on(func() {
		for range 100 {
			_ = r.c.admin.submitRaw(&Command{Opcode: AdminKeepAlive}, Data{}, nil, nil, nil)
		}
		if r.c.admin.Room() != 0 {
			t.Error("room is left")
		}
	})
	close(hold)
	for range 10 {
		calls = append(calls, outcome(func() error { _, err := r.c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); return err }))
	}
	for _, ch := range calls {
		if err := await(t, ch); err != nil {
			t.Error(err)
		}
	}
	if n := len(r.c.ioQueues()); n != queues {
		t.Error(n, "queues are left")
	}
	r.on(func() {
		if most < 5 || most > r.c.admin.Size()-1 {
			t.Error(most, "at once")
		}
	})
}

// A controller outlives its poller: what was under way ends when it is closed.
func TestPollerClosedFirst(t *testing.T) {
	d := newFakeDisk(512, 64)
	p := startPoller(t)
	ctx := context.Background()
	c, err := NewController(ctx, d, &Config{Poller: p, QueueSize: 2, ReconnectDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := c.Namespace(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	d.mute()
	var calls []chan error
	for range 3 { // one in flight, two wait
		calls = append(calls, outcome(func() error { _, err := ns.ReadAt(make([]byte, 512), 0); return err }))
	}
	eventually(t, "they wait", func() (wait bool) {
		p.CallAnyway(func() { qp := c.blocking.qp.Load(); wait = qp != nil && len(qp.waiting) == 2 })
		return wait
	})
	p.Close()
	if _, err := ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, poller.ErrClosed) {
		t.Error(err)
	}
	if _, err := c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); !errors.Is(err, poller.ErrClosed) {
		t.Error(err)
	}
	if err := await(t, outcome(func() error { return c.Close(ctx) })); err != nil {
		t.Error(err)
	}
	for _, ch := range calls {
		if err := await(t, ch); !errors.Is(err, StatusCommandAbortedByHost) && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}
