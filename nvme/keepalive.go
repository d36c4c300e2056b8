package nvme

import (
	"context"
	"fmt"
	"time"
)

// keepAlive sends Keep Alive commands at half the timeout (Base Specification
// 3.9), so that one lost in the network does not cost the association, and
// declares the controller lost when one stays unanswered for the timeout. All
// of it runs on the admin queue's core.
type keepAlive struct {
	timeout time.Duration // KATO in force; 0: none
	watch   *watch
	sent    int64 // poller clock of the command outstanding, 0 if none
	cmd     Command
}

// readKeepAlive learns the timeout in force: what was asked for, rounded up to
// the controller's unit, or what the controller says if that is shorter.
func (c *Controller) readKeepAlive(ctx context.Context, id *IdentifyController) {
	k := &c.alive
	k.timeout = 0
	unit, ask := id.KeepAliveGranularity(), c.cfg.KATO()
	if unit == 0 || ask == 0 || !c.fabrics() {
		return
	}
	k.timeout = (ask + unit - 1) / unit * unit
	cmd := Command{Opcode: AdminGetFeatures, CDW10: uint32(FeatKeepAliveTimer)}
	cpl, err := c.admin.DoInternal(ctx, &cmd, nil)
	if err != nil {
		c.cfg.Logger.Debug("Get Features (Keep Alive Timer) rejected", "controller", c.t.Address(), "error", err)
		return
	}
	if ms := uint32(cpl.Result); ms != 0 {
		k.timeout = min(k.timeout, time.Duration(ms)*time.Millisecond)
	}
}

// KATO returns the keep-alive timeout to ask for in Connect, rounded up to
// whole milliseconds; 0 means none.
func (c *Config) KATO() time.Duration {
	if c.KeepAlive < 0 {
		return 0
	}
	d := min(c.KeepAlive, (1<<32-1)*time.Millisecond)
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (k *keepAlive) start(c *Controller) {
	k.sent = 0
	if k.timeout > 0 {
		k.watch = newWatch(c.p, max(k.timeout/2, 10*time.Millisecond), func() { k.tick(c) })
	}
}

func (k *keepAlive) tick(c *Controller) {
	if k.sent != 0 {
		if age := c.p.Now() - k.sent; age >= int64(k.timeout) {
			k.watch.stop()
			c.admin.Lost(fmt.Errorf("%w: no answer to Keep Alive within %v", ErrTimeout, k.timeout))
		}
		return
	}
	k.cmd = Command{Opcode: AdminKeepAlive}
	if c.admin.Live() && c.admin.postOwn(&k.cmd, Data{}, 0, keepAliveDone, c) == nil {
		k.sent = c.p.Now()
	}
}

func keepAliveDone(arg any, cpl *Completion) {
	c := arg.(*Controller)
	c.alive.sent = 0
	if st := cpl.Status(); !st.OK() && !st.IsPath() {
		c.admin.Lost(fmt.Errorf("keep alive: %w", st))
	}
}

// stop ends it; from any goroutine but the core's.
func (k *keepAlive) stop(c *Controller) {
	c.p.CallAnyway(func() {
		k.watch.stop()
		k.watch = nil
	})
}
