package pcietest

import (
	"slices"
	"time"
)

// Fail makes the controller have a fatal error (CSTS.CFS): it executes nothing
// any more until it is reset.
func (c *Controller) Fail() {
	c.lock()
	defer c.unlock()
	c.regs.csts.CFS = true
}

// Vanish is a surprise removal that nobody has noticed yet: registers read as
// all ones, writes are lost, nothing completes. With false it is undone, as for
// a link that comes up again.
func (c *Controller) Vanish(on bool) {
	c.lock()
	defer c.unlock()
	c.regs.vanished = on
}

// Remove removes the controller for good, and tells the driver: accesses fail
// with pcie.ErrGone, connections to a server end. The memory of the driver is
// not touched any more when it returns.
func (c *Controller) Remove() {
	c.lock()
	if c.gone.Swap(true) {
		c.unlock()
		return
	}
	tell := slices.Clone(c.onGone)
	c.onGone = nil
	c.unlock()
	for _, f := range tell {
		f()
	}
	c.srv.close()
}

// Override has a register read as v, whatever it is; writes do what they
// always do. It is for values that make no sense: what the controller is
// configured to is for Config.
func (c *Controller) Override(register uint32, v uint64) {
	c.lock()
	defer c.unlock()
	if c.regs.overrides == nil {
		c.regs.overrides = map[uint32]uint64{}
	}
	c.regs.overrides[register] = v
}

// Restore ends the override of a register.
func (c *Controller) Restore(register uint32) {
	c.lock()
	defer c.unlock()
	delete(c.regs.overrides, register)
}

// SetReadyTime changes Config.ReadyTime from the next enabling or disabling
// on.
func (c *Controller) SetReadyTime(d time.Duration) {
	c.lock()
	defer c.unlock()
	c.cfg.ReadyTime = d
}
