package nvme

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// fastFail says whether I/O fails instead of waiting for a reconnect, because
// Config.FastIOFailTimeout has passed since the loss.
type fastFail struct {
	mu sync.Mutex
	on bool
	ch chan struct{} // closed while on, replaced when not
}

func (f *fastFail) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on == f.on {
		return
	}
	f.on = on
	if on {
		close(f.wait())
	} else {
		f.ch = nil
	}
}

// wait returns the channel. With mu held.
func (f *fastFail) wait() chan struct{} {
	if f.ch == nil {
		f.ch = make(chan struct{})
	}
	return f.ch
}

// context returns a context that ends with ctx, or when I/O begins to fail. Its
// cause says which.
func (f *fastFail) context(ctx context.Context) (context.Context, context.CancelFunc) {
	f.mu.Lock()
	ch := f.wait()
	f.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ch:
			cancel(fmt.Errorf("%w: %w", ErrNotLive, StatusHostPathError))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// startFastFail has I/O fail after the timeout unless the controller is live
// again by then.
func (c *Controller) startFastFail() (stop func()) {
	if c.cfg.FastIOFailTimeout < 0 {
		return func() {}
	}
	t := time.AfterFunc(c.cfg.FastIOFailTimeout, func() {
		if c.State() == StateLive {
			return
		}
		c.fast.set(true)
		if c.State() == StateLive { // just now, and stop was called already
			c.fast.set(false)
		}
		for _, q := range c.ioQueues() {
			postLater(q.p, q.setFailFast)
		}
	})
	return func() {
		t.Stop()
		c.fast.set(false)
	}
}
