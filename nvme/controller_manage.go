package nvme

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// queueLost is told on a queue's core that it failed. The manager takes it
// from there; one token is enough, since it takes all queues down.
func (c *Controller) queueLost(q *QueuePair, err error) {
	err = c.opError("connection lost", int(q.cold.id), err)
	select {
	case c.lost <- err:
	default:
	}
	if f := c.cfg.Events.Queue; f != nil && q.cold.id != 0 {
		c.events.post(func() { f(c, q.cold.id, err) })
	}
}

// manage is the controller's own goroutine: it recovers what was lost, resets
// on request, and takes the controller down in the end.
func (c *Controller) manage() {
	defer close(c.done)
	for {
		select {
		case err := <-c.lost:
			c.recover(err)
		case <-c.life.Done():
			c.shutdown()
			return
		}
	}
}

// errReset is the cause of a reset that the user asked for.
var errReset = errors.New("reset requested")

// Reset resets the controller and waits until it is live again or given up.
// Outstanding commands are sent again as after a lost connection.
func (c *Controller) Reset(ctx context.Context) error {
	if c.onCore() {
		return ErrOnCore
	}
	if err := c.waitLive(ctx); err != nil {
		return err
	}
	ended := make(chan error, 1)
	c.mu.Lock()
	c.reset = append(c.reset, ended)
	c.mu.Unlock()
	select {
	case c.lost <- errReset:
	default:
	}
	select {
	case err := <-ended:
		return err
	case <-c.done:
		return ErrClosed
	case <-ctx.Done():
		return c.opError("reset", -1, context.Cause(ctx))
	}
}

func (c *Controller) resetEnded(err error) {
	c.mu.Lock()
	list := c.reset
	c.reset = nil
	c.mu.Unlock()
	for _, ch := range list {
		ch <- err
	}
}

// recover brings the controller back after a loss, or gives it up.
func (c *Controller) recover(cause error) {
	if c.State() != StateLive {
		// Given up already, and the token is of the past; but a Reset that
		// saw the controller alive may have come after the end.
		c.resetEnded(c.deadError(c.err))
		return
	}
	start := time.Now()
	c.setState(StateResetting, cause)
	stopFast := c.startFastFail()
	defer stopFast()
	c.alive.stop(c)
	disabled := false
	if errors.Is(cause, errReset) {
		// The I/O queues first: a disabled controller answers what still comes
		// with errors that are not those of the commands.
		c.takeDownIO()
		disabled = c.disable()
	}
	c.takeDown()
	c.quietAfter(c.association(), c.quietTime(cause, disabled))
	if errors.Is(cause, ErrGone) {
		c.giveUp(cause)
		return
	}
	c.setState(StateConnecting, cause)
	wait := time.Duration(0)
	if !errors.Is(cause, errReset) && start.Sub(c.lastUp) < c.cfg.ReconnectDelay {
		wait = c.cfg.ReconnectDelay
		if c.cfg.CtrlLossTimeout >= 0 {
			wait = min(wait, c.cfg.CtrlLossTimeout)
		}
	}
	wait = max(wait, c.quiesceTime(cause, disabled))
	for attempt := 1; ; attempt++ {
		if wait > 0 && !c.pause(wait) {
			return
		}
		err := c.attempt(attempt)
		if err == nil {
			return
		}
		left := c.cfg.CtrlLossTimeout - time.Since(start)
		if c.cfg.CtrlLossTimeout < 0 {
			left = c.cfg.ReconnectDelay
		}
		if left <= 0 || permanent(err) {
			c.giveUp(err)
			return
		}
		wait = min(c.cfg.ReconnectDelay, left)
	}
}

// pause waits for d, or returns false if the controller is to be closed.
func (c *Controller) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.life.Done():
		return false
	}
}

// attempt tries once to come up.
func (c *Controller) attempt(n int) error {
	err := c.connectPatiently(c.life)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	c.cfg.Logger.Log(context.Background(), level, "reconnect", "controller", c.t.Address(), "attempt", n, "error", err)
	if f := c.cfg.Events.Reconnect; f != nil {
		c.events.post(func() { f(c, n, err) })
	}
	if err != nil {
		c.takeDown()
		return err
	}
	c.goLive()
	c.resetEnded(nil)
	return nil
}

// permanent tells whether an error will not go away by itself: as the Linux
// host, a status that says "do not retry".
func permanent(err error) bool {
	var st Status
	return errors.As(err, &st) && st.DNR() || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrGone)
}

// giveUp declares the controller dead. Only Close remains.
func (c *Controller) giveUp(err error) {
	c.setState(StateDead, err)
	dead := c.deadError(err)
	c.endQueues(dead)
	c.endQueue(c.admin, dead)
	c.resetEnded(dead)
}

// shutdown is the end of manage: see Close.
func (c *Controller) shutdown() {
	was := c.State()
	if was != StateDead {
		c.setState(StateDeleting, nil)
	}
	c.alive.stop(c)
	c.endQueues(ErrClosed)
	shut := was == StateLive && c.notifyShutdown()
	c.endQueue(c.admin, ErrClosed)
	if was == StateLive {
		c.quietAfter(c.association(), c.quietTime(ErrTimeout, shut))
	}
	c.setState(StateDead, ErrClosed)
	c.resetEnded(ErrClosed)
	c.users.Wait()
	c.wg.Wait()
	c.abandon()
}

// endQueues ends all I/O queues, those that are being opened included.
func (c *Controller) endQueues(err error) {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.queues))
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, q := range all {
		wg.Go(func() { c.endQueue(q, err) })
	}
	wg.Wait()
}
