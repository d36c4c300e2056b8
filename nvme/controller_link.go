package nvme

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qpoll/qpoll/poller"
)

// link is how the control path sees the transport side of a queue pair.
type link struct {
	mu   sync.Mutex // one Connect or Disconnect at a time
	over bool       // disconnected for good; under mu

	// Under Controller.mu.
	open   bool                    // is to be reconnected after a loss
	ending bool                    // is being closed
	cancel context.CancelCauseFunc // of the Connect under way
}

// linking returns a context that ends with ctx, with the controller, or once q
// is to end, which it may be already. The caller holds link.mu.
func (c *Controller) linking(ctx context.Context, q *QueuePair) (linking context.Context, done func()) {
	l := &q.cold.link
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(ErrClosed) })
	c.mu.Lock()
	defer c.mu.Unlock()
	l.cancel = cancel
	if l.ending {
		cancel(ErrClosed)
	}
	return ctx, func() {
		c.mu.Lock()
		l.cancel = nil
		c.mu.Unlock()
		stop()
		cancel(nil)
	}
}

// introduce gives a new queue pair to its poller. If the poller does not take
// it before ctx ends, the queue pair is over at once: nothing has seen it, and
// a poller that does not run would never let go of it.
func (c *Controller) introduce(ctx context.Context, q *QueuePair) error {
	l := &q.cold.link
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, done := c.linking(ctx, q)
	defer done()
	if err := c.call(ctx, q.p, func() { c.addQueue(q) }); err != nil {
		l.over = true
		c.forget(q)
		return err
	}
	return nil
}

// call is Call for the first use of a poller, which may not be running.
func (c *Controller) call(ctx context.Context, p *poller.Poller, fn func()) error {
	err := p.Call(ctx, fn)
	if err == nil || errors.Is(err, poller.ErrClosed) {
		return err
	}
	if err = ctxError(ctx); p.Started() {
		return err
	}
	return fmt.Errorf("poller %q was not started, and nobody steps it: %w", p.Name(), err)
}

// connectQueue connects q's transport side, and makes sure that it has not
// broken again meanwhile.
func (c *Controller) connectQueue(ctx context.Context, q *QueuePair) error {
	l := &q.cold.link
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, done := c.linking(ctx, q)
	defer done()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := q.p.Call(ctx, q.linkBegin); err != nil {
		return err
	}
	if err := c.t.Connect(ctx, q); err != nil {
		return err
	}
	var broken error
	if err := q.p.Call(ctx, func() { broken = q.linkEnd() }); err != nil {
		return err
	}
	return broken
}

// disconnectQueue takes q's transport side down for now.
func (c *Controller) disconnectQueue(ctx context.Context, q *QueuePair) {
	l := &q.cold.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		_ = c.t.Disconnect(ctx, q)
	}
}

// endQueue takes a queue pair off the controller and forgets it. Its commands
// complete, and later ones fail with err. Several may call it at once; all
// return when it is done.
func (c *Controller) endQueue(q *QueuePair, err error) {
	l := &q.cold.link
	c.mu.Lock()
	l.ending, l.open = true, false
	cancel := l.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(ErrClosed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	ctx, stop := c.bound(context.Background())
	defer stop()
	_ = c.t.Disconnect(ctx, q)
	c.forget(q)
	c.blocking.qp.CompareAndSwap(q, nil)
	c.removeQueue(q, err)
}

// forget makes the identifier of a queue pair free for another.
func (c *Controller) forget(q *QueuePair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[q.cold.id] == q {
		delete(c.queues, q.cold.id)
	}
}

// reconnectQueue is connectQueue for a queue pair of the connection before. One
// that cannot come back, but leaves the controller usable, is ended.
func (c *Controller) reconnectQueue(ctx context.Context, q *QueuePair) error {
	var err error
	if n := c.IOQueues(); int(q.cold.id) > n {
		err = fmt.Errorf("%w: the controller grants %d I/O queues now", ErrUnsupported, n)
	} else if err = c.connectQueue(ctx, q); err == nil {
		return nil
	} else if !c.has(q) {
		return nil // closed meanwhile
	}
	err = c.opError("connect", int(q.cold.id), err)
	if int(q.cold.id) <= c.IOQueues() && !errors.Is(err, poller.ErrClosed) {
		return err
	}
	c.endQueue(q, err)
	return nil
}

// use announces a use of the transport that Close must wait for, or fails.
// Uses end with the controller's life.
func (c *Controller) use() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return ErrClosed
	}
	c.users.Add(1)
	return nil
}

// onCore tells whether the caller is on the core of a poller that the
// controller may need before the caller can be helped.
func (c *Controller) onCore() bool {
	if c.p.OnCore() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		if q.p.OnCore() {
			return true
		}
	}
	return false
}
