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
	d := c.id.Load().CommandQuiesceTime()
	if d == 0 || disabled {
		return 0
	}
	if errors.Is(cause, ErrTimeout) {
		// It may not know yet, and learns by its keep-alive timer.
		d += c.alive.timeout
	}
	return d
}
