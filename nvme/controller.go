package nvme

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

	state    atomic.Uint32
	id       atomic.Pointer[IdentifyController]
	mu       sync.Mutex
	cap      CAP
	vs       VS
	queues   map[uint16]*QueuePair // I/O queue pairs by identifier
	ns       map[uint32]*Namespace
	checks   uint64 // counts checks of the known namespaces
	limits   Limits
	nq       int                 // I/O queues that the controller granted
	epoch    uint64              // counts associations
	restless map[uint64]struct{} // associations of which commands may still be executed
	err      error               // why it is dead
	changed  chan struct{}       // closed, and replaced, when the state changes
	reset    []chan error        // callers of Reset
	lastUp   time.Time
	patience *time.Timer // of the attempt to connect that is under way

	blocking blockingQueue
	lost     chan error      // tokens for the manager
	life     context.Context // ends with Close
	end      context.CancelCauseFunc
	polite   context.Context // ends when there is no time for a shutdown notification
	hurry    context.CancelFunc
	done     chan struct{}  // the manager has ended
	users    sync.WaitGroup // see use
	property chan struct{}  // holds one: the right to access a property
	wg       sync.WaitGroup
	events   dispatcher
	async    asyncState
	alive    keepAlive
	aborts   aborter
	fast     fastFail
}

// ErrOnCore: a call that waits was made on the core it would wait for.
var ErrOnCore = errors.New("nvme: blocking call on a poller's core")

func openController(ctx context.Context, t Transport, cfg Config) (*Controller, error) {
	c := &Controller{
		cfg: cfg, t: t, p: cfg.Poller,
		queues: map[uint16]*QueuePair{}, ns: map[uint32]*Namespace{}, restless: map[uint64]struct{}{},
		changed: make(chan struct{}), lost: make(chan error, 1), done: make(chan struct{}),
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.polite, c.hurry = context.WithCancel(context.Background())
	c.blocking.turn, c.property = make(chan struct{}, 1), make(chan struct{}, 1)
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
	if err := c.addAdmin(ctx); err != nil {
		c.abandon()
		return nil, c.opError("open", -1, err)
	}
	if err := c.connectPatiently(ctx); err != nil {
		c.endQueue(c.admin, ErrClosed)
		c.abandon()
		return nil, err
	}
	c.async.init(c)
	c.goLive()
	go c.manage()
	return c, nil
}

// abandon gives back what a controller holds that never came up, or went.
func (c *Controller) abandon() {
	c.end(ErrClosed)
	c.hurry()
	c.t.Close()
	if c.shared {
		releaseSharedPoller()
	}
}

func (c *Controller) addAdmin(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.call(ctx, c.p, func() { c.addQueue(c.admin) })
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

// setState changes the state and tells those who wait, and the listener.
func (c *Controller) setState(to State, err error) {
	c.mu.Lock()
	from := State(c.state.Swap(uint32(to)))
	if from == to {
		c.mu.Unlock()
		return
	}
	if to == StateDead {
		c.err = err
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	level := slog.LevelInfo
	if from == StateLive && to != StateDeleting && !errors.Is(err, errReset) || to == StateDead && from != StateDeleting {
		level = slog.LevelWarn // lost, or given up
	}
	c.cfg.Logger.Log(context.Background(), level, "controller state", "controller", c.t.Address(), "from", from.String(), "to", to.String(), "cause", err)
	if f := c.cfg.Events.State; f != nil {
		c.events.post(func() { f(c, from, to, err) })
	}
}

// waitLive returns nil once the controller is live, or why it will not be.
func (c *Controller) waitLive(ctx context.Context) error {
	for {
		c.mu.Lock()
		state, changed, err := c.State(), c.changed, c.err
		c.mu.Unlock()
		switch {
		case state == StateDead:
			return c.deadError(err)
		case c.life.Err() != nil:
			return ErrClosed
		case state == StateLive:
			return nil
		}
		select {
		case <-changed:
		case <-c.life.Done():
		case <-ctx.Done():
			err := ctxError(ctx)
			if errors.Is(err, ErrNotLive) { // I/O does not wait any more
				return err
			}
			return fmt.Errorf("%w: %w", ErrNotLive, err)
		}
	}
}

// dead says why a dead controller is dead.
func (c *Controller) dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadError(c.err)
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
		if q.cold.link.open {
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
// shutdown notification, then the admin queue. It returns when all is quiet. If
// ctx ends first, the notification is given up and Close returns; the rest goes
// on without it, and another Close waits for that. Idempotent.
func (c *Controller) Close(ctx context.Context) error {
	if c.onCore() {
		return ErrOnCore
	}
	c.mu.Lock() // no use of the transport begins after the end; see use
	c.end(ErrClosed)
	c.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		c.hurry()
		return c.opError("close", -1, ctxError(ctx))
	}
}
