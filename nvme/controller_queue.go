package nvme

import (
	"context"
	"fmt"

	"github.com/qpoll/qpoll/poller"
)

// QueueConfig holds what can be chosen about an I/O queue pair. The zero value
// works.
type QueueConfig struct {
	// Size is the queue's size in entries; one less can be in flight. 0:
	// Config.QueueSize. Limited to what the controller allows.
	Size int
	// Class is the queue's class where the controller arbitrates by weight
	// (see the transport's own configuration). It means nothing elsewhere.
	Class Class
	// Failover is for those who have another queue to send commands to. A
	// command never waits for a reconnect: while the queue pair is not live,
	// submissions fail with ErrNotLive, and what is in flight at a loss completes
	// with StatusCommandAbortedByHost, which says that the controller may or may
	// not execute it, until Controller.Quiet; Config.Retries does not count.
	Failover bool
	// Notify, if not nil, is called on the core when the queue pair has become
	// live or is not live any more; of a loss, before the commands in flight
	// complete. It must not block.
	Notify func(q *QueuePair, live bool)
}

// Class is the class of a submission queue in weighted round robin arbitration
// (Base Specification 3.4.4.2).
type Class uint8

// The classes. The zero value is medium.
const (
	ClassDefault Class = iota // medium
	ClassUrgent               // before all others, which it can starve
	ClassHigh
	ClassMedium
	ClassLow
)

// Priority returns the class as a Priority... value of Create I/O Submission
// Queue; PriorityMedium for what is no class.
func (c Class) Priority() uint8 {
	switch c {
	case ClassUrgent:
		return PriorityUrgent
	case ClassHigh:
		return PriorityHigh
	case ClassLow:
		return PriorityLow
	}
	return PriorityMedium
}

// OpenQueue makes an I/O queue pair that belongs to poller p and, with Bind,
// carries I/O of any namespace of the controller. It waits for the controller
// to be live. The poller must be running, or stepped by another goroutine; one
// that is not is waited for until ctx ends, and no longer than ConnectTimeout.
func (c *Controller) OpenQueue(ctx context.Context, p *poller.Poller, cfg QueueConfig) (*QueuePair, error) {
	if p == nil {
		p = c.p
	}
	if p.OnCore() || c.onCore() {
		return nil, ErrOnCore
	}
	for {
		if err := c.waitLive(ctx); err != nil {
			return nil, c.opError("open I/O queue", -1, err)
		}
		epoch := c.association()
		q, err := c.openQueue(ctx, p, cfg, epoch)
		if err == nil || ctx.Err() != nil || c.State() == StateLive && c.association() == epoch {
			return q, err
		}
		// The controller was lost underneath: once more when it is back.
	}
}

// association returns the number of the association with the controller.
func (c *Controller) association() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

func (c *Controller) openQueue(ctx context.Context, p *poller.Poller, cfg QueueConfig, epoch uint64) (*QueuePair, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	defer c.users.Done()
	q, err := c.reserveQueue(p, cfg)
	if err != nil {
		return nil, c.opError("open I/O queue", -1, err)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if err = c.introduce(ctx, q); err == nil {
		err = c.bringUp(ctx, q, epoch)
	}
	if err != nil {
		c.endQueue(q, ErrClosed)
		if c.life.Err() != nil {
			err = ErrClosed
		}
		return nil, c.opError("connect", int(q.cold.id), err)
	}
	return q, nil
}

// bringUp connects a new queue pair and lets it go live, if it is still the
// given association that the controller has by then.
func (c *Controller) bringUp(ctx context.Context, q *QueuePair, epoch uint64) error {
	if err := c.connectQueue(ctx, q); err != nil {
		return err
	}
	c.mu.Lock()
	live := c.State() == StateLive && c.epoch == epoch
	q.cold.link.open = live && !q.cold.link.ending
	c.mu.Unlock()
	if !live {
		return ErrNotLive
	}
	return q.p.Call(ctx, func() {
		q.startTimer()
		if q.state == queueNew {
			q.goLive(epoch)
		}
	})
}

// reserveQueue takes the lowest free queue identifier. A recovery leaves the
// queue alone until it is open.
func (c *Controller) reserveQueue(p *poller.Poller, cfg QueueConfig) (*QueuePair, error) {
	size := cfg.Size
	if size <= 0 {
		size = c.cfg.QueueSize
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	size = min(max(size, 2), int(c.cap.MQES())+1, maxQueueSize)
	if id := c.id.Load(); id.MAXCMD != 0 && c.limits.Fabrics {
		size = min(size, int(id.MAXCMD)+1)
	}
	for qid := 1; qid <= c.nq; qid++ {
		if c.queues[uint16(qid)] != nil {
			continue
		}
		q := newQueuePair(p, queueParams{
			id: uint16(qid), size: size, timeout: c.cfg.IOTimeout, retries: uint8(c.cfg.Retries),
			class: cfg.Class, ctrl: c, lost: c.queueLost, timedOut: c.commandOverdue,
			failover: cfg.Failover, notify: cfg.Notify,
		})
		c.queues[uint16(qid)] = q
		return q, nil
	}
	return nil, fmt.Errorf("%w: all %d I/O queues that the controller granted are in use (Config.IOQueues asks for more)", ErrUnsupported, c.nq)
}

// has tells whether q is an I/O queue pair in use.
func (c *Controller) has(q *QueuePair) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[q.cold.id] == q && !q.cold.link.ending
}

// Close takes the queue pair off the controller. Outstanding commands complete
// with StatusCommandAbortedByHost first. Any goroutine but a poller's.
// Idempotent.
func (q *QueuePair) Close(ctx context.Context) error {
	c := q.cold.ctrl
	if q.p.OnCore() || c.onCore() {
		return ErrOnCore
	}
	if c.use() != nil { // Controller.Close sees to it
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return c.opError("close", int(q.cold.id), ctxError(ctx))
		}
	}
	defer c.users.Done()
	c.endQueue(q, ErrClosed)
	return nil
}

// Bind returns a handle for I/O on ns through the queue pair. Any goroutine.
func (q *QueuePair) Bind(ns *Namespace) (*NamespaceQueue, error) {
	if ns.c != q.cold.ctrl {
		return nil, fmt.Errorf("%w: namespace %d belongs to another controller", ErrNoNamespace, ns.id)
	}
	if _, err := ns.usable(); err != nil {
		return nil, err
	}
	return &NamespaceQueue{qp: q, ns: ns}, nil
}
