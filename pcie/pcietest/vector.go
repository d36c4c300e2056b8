package pcietest

import "github.com/qpoll/qpoll/internal/sys"

// setVector gives an interrupt vector an eventfd, or takes it away. Those of
// another process belong to the controller, which closes them.
func (c *Controller) setVector(vector, eventfd int) error {
	old := c.vectors[vector]
	c.vectors[vector] = eventfd
	if c.client.remote && old >= 0 {
		return sys.Close(old)
	}
	return nil
}
