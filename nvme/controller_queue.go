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
}

// OpenQueue makes an I/O queue pair that belongs to poller p and, with Bind,
// carries I/O of any namespace of the controller. The poller must be running.
// It waits for the controller to be live.
func (c *Controller) OpenQueue(ctx context.Context, p *poller.Poller, cfg QueueConfig) (*QueuePair, error) {
	if p == nil {
		p = c.p
	}
	if p.OnCore() || c.p.OnCore() {
		return nil, ErrOnCore
	}
	for {
		if err := c.waitLive(ctx); err != nil {
			return nil, err
		}
		q, err := c.openQueue(ctx, p, cfg)
		if err == nil || c.State() == StateLive || ctx.Err() != nil {
			return q, err
		}
		// The controller was lost underneath: once more when it is back.
	}
}

func (c *Controller) openQueue(ctx context.Context, p *poller.Poller, cfg QueueConfig) (*QueuePair, error) {
	q, err := c.reserveQueue(p, cfg)
	if err != nil {
		return nil, c.opError("open I/O queue", -1, err)
	}
	id := int(q.cold.id)
	cctx, cancel := c.connectContext(ctx)
	defer cancel()
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	err = p.Call(cctx, func() { c.addQueue(q) })
	if err == nil {
		err = c.t.Connect(cctx, q)
	}
	if err != nil {
		c.closeQueue(q)
		return nil, c.opError("connect", id, err)
	}
	c.mu.Lock()
	live := c.State() == StateLive && c.epoch == epoch
	if live {
		c.queues[q.cold.id] = q
	}
	c.mu.Unlock()
	if !live {
		c.closeQueue(q)
		return nil, c.opError("connect", id, ErrNotLive)
	}
	err = p.Call(ctx, func() {
		q.startTimer()
		if q.state == queueNew {
			q.goLive()
		}
	})
	if err != nil {
		c.closeQueue(q)
		return nil, c.opError("connect", id, err)
	}
	return q, nil
}

// reserveQueue takes the lowest free queue identifier. The entry in the map is
// nil until the queue is connected, so that a recovery leaves it alone.
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
		if _, taken := c.queues[uint16(qid)]; taken {
			continue
		}
		c.queues[uint16(qid)] = nil
		return newQueuePair(p, queueParams{
			id: uint16(qid), size: size, timeout: c.cfg.IOTimeout, retries: uint8(c.cfg.Retries),
			ctrl: c, lost: c.queueLost, timedOut: c.commandOverdue,
		}), nil
	}
	return nil, fmt.Errorf("%w: all %d I/O queues that the controller granted are in use (Config.IOQueues asks for more)", ErrUnsupported, c.nq)
}

// closeQueue takes a queue pair off the controller and forgets it.
func (c *Controller) closeQueue(q *QueuePair) {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.ConnectTimeout)
	defer cancel()
	_ = c.t.Disconnect(ctx, q)
	c.mu.Lock()
	delete(c.queues, q.cold.id)
	c.mu.Unlock()
	c.removeQueue(q, ErrClosed)
}

// has tells whether q is an I/O queue pair in use.
func (c *Controller) has(q *QueuePair) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[q.cold.id] == q
}

// Close takes the queue pair off the controller. Outstanding commands complete
// with StatusCommandAbortedByHost first. Any goroutine but a poller's.
// Idempotent.
func (q *QueuePair) Close(ctx context.Context) error {
	c := q.cold.ctrl
	if q.p.OnCore() || c.p.OnCore() {
		return ErrOnCore
	}
	if c.has(q) {
		c.closeQueue(q)
	}
	return nil
}

// Bind returns a handle for I/O on ns through the queue pair. Any goroutine.
func (q *QueuePair) Bind(ns *Namespace) (*NamespaceQueue, error) {
	if ns.c != q.cold.ctrl {
		return nil, fmt.Errorf("%w: namespace %d belongs to another controller", ErrNoNamespace, ns.id)
	}
	if err := ns.usable(); err != nil {
		return nil, err
	}
	return &NamespaceQueue{qp: q, ns: ns}, nil
}
