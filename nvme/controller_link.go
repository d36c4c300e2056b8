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

// connectQueue connects q's transport side, and makes sure that it has not
// broken again meanwhile.
func (c *Controller) connectQueue(ctx context.Context, q *QueuePair) error {
	l := &q.cold.link
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(ErrClosed) })()
	c.mu.Lock()
	ending := l.ending
	l.cancel = cancel
	c.mu.Unlock()
	if ending {
		return ErrClosed
	}
	defer func() {
		c.mu.Lock()
		l.cancel = nil
		c.mu.Unlock()
	}()
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
	c.mu.Lock()
	if c.queues[q.cold.id] == q {
		delete(c.queues, q.cold.id)
	}
	c.mu.Unlock()
	c.blocking.qp.CompareAndSwap(q, nil)
	c.removeQueue(q, err)
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
