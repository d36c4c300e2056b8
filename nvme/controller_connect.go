package nvme

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// connectPatiently is connect within ConnectTimeout; see waitReady for what
// extends that.
func (c *Controller) connectPatiently(ctx context.Context) error {
	d := c.cfg.ConnectTimeout
	if d < 0 {
		return c.connect(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.patience = time.AfterFunc(d, func() { cancel(fmt.Errorf("%w: no connection within %v", ErrTimeout, d)) })
	err := c.connect(ctx)
	c.patience.Stop()
	c.patience = nil
	return err
}

// connect brings up the admin queue, the controller, and the I/O queues that
// there are; nothing goes live yet.
func (c *Controller) connect(ctx context.Context) error {
	for len(c.lost) > 0 {
		<-c.lost // of the connection before
	}
	c.mu.Lock()
	c.epoch++
	c.mu.Unlock()
	if err := c.connectAdmin(ctx); err != nil {
		return c.opError("connect", 0, err)
	}
	if err := c.initialise(ctx); err != nil {
		return err
	}
	if err := c.recheckNamespaces(ctx); err != nil {
		return err
	}
	return c.forEachQueue(func(q *QueuePair) error { return c.reconnectQueue(ctx, q) })
}

// connectAdmin connects the admin queue while nobody accesses a property.
func (c *Controller) connectAdmin(ctx context.Context) error {
	select {
	case c.property <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.property }()
	return c.connectQueue(ctx, c.admin)
}

// bound limits ctx to ConnectTimeout.
func (c *Controller) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	d := c.cfg.ConnectTimeout
	if d < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%w: no connection within %v", ErrTimeout, d))
}

// forEachQueue runs f for all I/O queues at once and returns the first error.
func (c *Controller) forEachQueue(f func(q *QueuePair) error) error {
	all := c.ioQueues()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, q := range all {
		wg.Go(func() { errs[i] = f(q) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// takeDown disconnects all queues. Their commands are held or fail.
func (c *Controller) takeDown() {
	c.takeDownIO()
	ctx, cancel := c.bound(context.Background())
	defer cancel()
	c.disconnectQueue(ctx, c.admin)
}

// takeDownIO is takeDown for the I/O queues.
func (c *Controller) takeDownIO() {
	ctx, cancel := c.bound(context.Background())
	defer cancel()
	_ = c.forEachQueue(func(q *QueuePair) error {
		c.disconnectQueue(ctx, q)
		return nil
	})
}

// goLive opens the gates, the admin queue's first.
func (c *Controller) goLive() {
	c.lastUp = time.Now()
	c.mu.Lock()
	epoch := c.epoch
	c.restless[epoch] = struct{}{}
	c.mu.Unlock()
	c.p.CallAnyway(func() {
		c.admin.startTimer()
		c.alive.start(c)
		c.async.arm()
		c.admin.goLive(epoch)
	})
	c.fast.set(false)
	c.setState(StateLive, nil)
	for _, q := range c.ioQueues() {
		q.p.CallAnyway(func() {
			q.startTimer()
			q.goLive(epoch)
		})
		if f := c.cfg.Events.Queue; f != nil {
			c.events.post(func() { f(c, q.cold.id, nil) })
		}
	}
}
