package nvme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// Controller is a host's view of one NVMe controller. It survives resets and
// reconnects; its queues and namespaces stay valid through them. All methods
// may be called from any goroutine but must not be called on the core of one
// of its pollers, where they could only wait for themselves; they then fail
// with ErrOnCore.
type Controller struct {
	cfg    Config
	t      Transport
	p      *poller.Poller
	shared bool // p is the process' shared poller
	admin  *QueuePair

	state  atomic.Uint32
	id     atomic.Pointer[IdentifyController]
	mu     sync.Mutex
	cap    CAP
	vs     VS
	queues map[uint16]*QueuePair // I/O queue pairs by identifier
	ns     map[uint32]*Namespace
	limits Limits
	nq     int           // I/O queues that the controller granted
	epoch  uint64        // counts associations
	err    error         // why it is dead
	live   chan struct{} // closed while live, replaced when not
	reset  []chan error  // callers of Reset
	lastUp time.Time

	blocking blockingQueue
	lost     chan error // tokens for the manager
	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{} // the manager has ended
	wg       sync.WaitGroup
	events   dispatcher
	async    asyncState
	alive    keepAlive
	aborts   aborter
}

// ErrOnCore: a call that waits was made on the core it would wait for.
var ErrOnCore = errors.New("nvme: blocking call on a poller's core")

func openController(ctx context.Context, t Transport, cfg Config) (*Controller, error) {
	c := &Controller{
		cfg: cfg, t: t, p: cfg.Poller,
		queues: map[uint16]*QueuePair{}, ns: map[uint32]*Namespace{},
		live: make(chan struct{}), lost: make(chan error, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	c.blocking.turn = make(chan struct{}, 1)
	c.async.init(c)
	if c.p == nil {
		p, err := acquireSharedPoller()
		if err != nil {
			c.abandon()
			return nil, err
		}
		c.p, c.shared = p, true
	}
	if c.p.OnCore() {
		c.abandon()
		return nil, ErrOnCore
	}
	c.admin = newQueuePair(c.p, queueParams{
		id: 0, size: cfg.AdminQueueSize, reserve: adminReserve, timeout: cfg.AdminTimeout,
		ctrl: c, lost: c.queueLost, timedOut: c.commandOverdue,
	})
	if err := c.p.Call(ctx, func() { c.addQueue(c.admin) }); err != nil {
		c.abandon()
		return nil, c.opError("open", -1, err)
	}
	cctx, cancel := c.connectContext(ctx)
	defer cancel()
	if err := c.connect(cctx); err != nil {
		c.takeDown()
		c.removeQueue(c.admin, ErrClosed)
		c.abandon()
		return nil, err
	}
	c.goLive()
	go c.manage()
	return c, nil
}

// connectContext bounds one attempt to connect.
func (c *Controller) connectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := c.cfg.ConnectTimeout
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no connection within %v", ErrTimeout, limit))
}

// abandon gives back what a controller holds that never came up, or went.
func (c *Controller) abandon() {
	c.async.close()
	c.t.Close()
	if c.shared {
		releaseSharedPoller()
	}
}

func (c *Controller) addQueue(q *QueuePair) {
	q.cold.added = true
	q.p.Add(q)
}

// removeQueue ends a queue pair whose transport side is disconnected.
func (c *Controller) removeQueue(q *QueuePair, err error) {
	q.p.CallAnyway(func() {
		q.kill(err)
		if q.cold.added {
			q.cold.added = false
			q.p.Remove(q)
		}
	})
}

// State returns the controller's state now.
func (c *Controller) State() State { return State(c.state.Load()) }

// setState changes the state and tells the listener.
func (c *Controller) setState(to State, err error) {
	from := State(c.state.Swap(uint32(to)))
	if from == to {
		return
	}
	c.mu.Lock()
	if to == StateLive {
		close(c.live)
	} else if from == StateLive {
		c.live = make(chan struct{})
	}
	if to == StateDead {
		c.err = err
	}
	c.mu.Unlock()
	c.cfg.Logger.Info("controller state", "controller", c.t.Address(), "from", from.String(), "to", to.String(), "cause", err)
	if f := c.cfg.Events.State; f != nil {
		c.events.post(func() { f(c, from, to, err) })
	}
}

// waitLive returns nil once the controller is live, or why it will not be.
func (c *Controller) waitLive(ctx context.Context) error {
	for {
		c.mu.Lock()
		ch, err := c.live, c.err
		c.mu.Unlock()
		switch c.State() {
		case StateLive:
			return nil
		case StateDead:
			return c.deadError(err)
		case StateDeleting:
			return ErrClosed
		}
		select {
		case <-ch:
		case <-c.done:
		case <-c.stop:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNotLive, context.Cause(ctx))
		}
	}
}

func (c *Controller) deadError(err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrDead, err)
}

// Address names the controller, for messages.
func (c *Controller) Address() string { return c.t.Address() }

// Transport returns the transport that reaches the controller.
func (c *Controller) Transport() Transport { return c.t }

// Poller returns the poller that runs the admin queue and the blocking calls.
func (c *Controller) Poller() *poller.Poller { return c.p }

// Identify returns the Identify Controller data as last read. The caller must
// not change it.
func (c *Controller) Identify() *IdentifyController { return c.id.Load() }

// Capabilities returns the CAP property as last read.
func (c *Controller) Capabilities() CAP {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cap
}

// Version returns the VS property as last read.
func (c *Controller) Version() VS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.vs
}

// IOQueues returns how many I/O queues the controller granted.
func (c *Controller) IOQueues() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nq
}

func (c *Controller) fabrics() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Fabrics
}

func (c *Controller) ioQueues() []*QueuePair {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*QueuePair
	for _, q := range c.queues {
		if q != nil { // nil while it is being opened
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b *QueuePair) int { return int(a.cold.id) - int(b.cold.id) })
	return all
}

func (c *Controller) opError(op string, queue int, err error) error {
	if err == nil {
		return nil
	}
	var o *OpError
	if errors.As(err, &o) {
		return err
	}
	return &OpError{Op: op, Controller: c.t.Address(), Queue: queue, Err: err}
}

// Close takes the controller down in order: I/O queues first, whose
// outstanding commands complete with StatusCommandAbortedByHost, then a normal
// shutdown notification, then the admin queue. It returns when all is quiet;
// ctx bounds the politeness, not the cleaning up. Idempotent.
func (c *Controller) Close(ctx context.Context) error {
	if c.p.OnCore() {
		return ErrOnCore
	}
	c.stopOnce.Do(func() { close(c.stop) })
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return c.opError("close", -1, context.Cause(ctx))
	}
}
