package pcietest

import "github.com/qpoll/qpoll/internal/sys"

// setVector gives an interrupt vector an eventfd, or takes it away with -1.
// Those of another process belong to the controller, which closes them.
func (c *Controller) setVector(vector, eventfd int) error {
	return c.setEvent(&c.vectors[vector], eventfd)
}

func (c *Controller) setEvent(at *int, eventfd int) error {
	old := *at
	*at = eventfd
	if c.client.remote && old >= 0 {
		return sys.Close(old)
	}
	return nil
}

// interrupts signals what is due.
func (c *Controller) interrupts() {
	for _, q := range c.cqs {
		if q != nil && q.signal {
			c.interrupt(q)
		}
	}
}

// interrupt signals the vector of a queue, or the interrupt pin if that is what
// the driver has asked for.
func (c *Controller) interrupt(q *comQueue) {
	q.signal = false
	fd := -1
	if int(q.vector) < len(c.vectors) {
		fd = c.vectors[q.vector]
	}
	if fd < 0 && c.regs.intms&1 == 0 && c.config.command&commandINTx == 0 {
		fd = c.intx
	}
	// At its largest value, whoever reads it is due to wake anyway.
	if fd >= 0 && sys.EventSignal(fd) == 0 {
		c.stats.Interrupts++
	}
}
