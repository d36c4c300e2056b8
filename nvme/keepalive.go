package nvme

import (
	"context"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// keepAlive sends Keep Alive commands at half the timeout (Base Specification
// 3.9), so that one lost in the network does not cost the association, and
// declares the controller lost when one stays unanswered for the timeout. All
// of it runs on the admin queue's core.
type keepAlive struct {
	timeout time.Duration // KATO in force; 0: none
	timer   *poller.Timer
	sent    int64 // poller clock of the command outstanding, 0 if none
	cmd     Command
}

// readKeepAlive learns the timeout in force. The controller may have rounded
// it; one that rejects the question keeps what was asked for.
func (c *Controller) readKeepAlive(ctx context.Context, id *IdentifyController) {
	k := &c.alive
	k.timeout = 0
	if id.KAS == 0 || !c.fabrics() || c.cfg.KeepAlive < 0 {
		return
	}
	k.timeout = c.cfg.KATO()
	cmd := Command{Opcode: AdminGetFeatures, CDW10: uint32(FeatKeepAliveTimer)}
	cpl, err := c.admin.DoInternal(ctx, &cmd, nil)
	if err != nil {
		c.cfg.Logger.Debug("Get Features (Keep Alive Timer) rejected", "controller", c.t.Address(), "error", err)
		return
	}
	if ms := uint32(cpl.Result); ms != 0 {
		k.timeout = time.Duration(ms) * time.Millisecond
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
	if k.timeout == 0 {
		return
	}
	every := max(k.timeout/2, 10*time.Millisecond)
	k.timer = c.p.AfterFunc(every, func() {
		if k.timer == nil {
			return
		}
		k.tick(c)
		if k.timer != nil {
			k.timer.Reset(every)
		}
	})
}

func (k *keepAlive) tick(c *Controller) {
	if k.sent != 0 {
		if age := c.p.Now() - k.sent; age >= int64(k.timeout) {
			k.timer = nil
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
		if k.timer != nil {
			k.timer.Stop()
			k.timer = nil
		}
	})
}
