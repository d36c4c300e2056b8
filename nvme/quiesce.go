package nvme

import (
	"errors"
	"time"
)

// quiesceTime returns how long the controller may go on executing commands of an
// association after all of its connections were taken down, because of cause
// (Base Specification 2.1, "Communication loss handling"). Nothing may be sent
// again before: the earlier copy of a write could be executed after a later write
// to the same blocks, which was acknowledged. A controller that was disabled is
// quiet; one that reports no Command Quiesce Time gets none, as from Linux' host.
func (c *Controller) quiesceTime(cause error, disabled bool) time.Duration {
	d := c.commandQuiesceTime()
	if d == 0 || disabled {
		return 0
	}
	if errors.Is(cause, ErrTimeout) {
		// It may not know yet, and learns by its keep-alive timer.
		d += c.alive.timeout
	}
	return d
}

// commandQuiesceTime is what the controller reports, else what the user knows.
func (c *Controller) commandQuiesceTime() time.Duration {
	if d := c.id.Load().CommandQuiesceTime(); d != 0 {
		return d
	}
	return max(c.cfg.QuiesceTime, 0)
}

// quietTime is quiesceTime for what is sent to another controller. Where the
// controller was silent, it may not know of the loss before its keep-alive timer
// has expired, whether it reports a Command Quiesce Time or not.
func (c *Controller) quietTime(cause error, disabled bool) time.Duration {
	d := c.quiesceTime(cause, disabled)
	if d == 0 && !disabled && errors.Is(cause, ErrTimeout) {
		d = c.alive.timeout
	}
	return d
}

// Association returns the number of the association with the controller: 1 for
// the first, and one more for each attempt at another. Any goroutine.
func (c *Controller) Association() uint64 { return c.association() }

// Quiet reports whether an association has ended and the controller does not
// execute commands of it any more, by all that can be known: it was disabled or
// shut down, or the time has passed that it may take (CQT, and the keep-alive
// timeout before it if it was silent; see Config.QuiesceTime). Only then may a
// command of which the fate is unknown be sent to another controller of the
// subsystem. Any goroutine. See also Events.Quiet.
func (c *Controller) Quiet(association uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, restless := c.restless[association]
	return !restless
}

// quietAfter declares an association quiet after a while.
func (c *Controller) quietAfter(association uint64, d time.Duration) {
	if d <= 0 {
		c.declareQuiet(association)
		return
	}
	time.AfterFunc(d, func() { c.declareQuiet(association) })
}

func (c *Controller) declareQuiet(association uint64) {
	c.mu.Lock()
	delete(c.restless, association)
	c.mu.Unlock()
	if f := c.cfg.Events.Quiet; f != nil {
		c.events.post(func() { f(c, association) })
	}
}
