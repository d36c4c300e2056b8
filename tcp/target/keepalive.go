package target

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// setKATO sets the keep alive timeout to what the host asks for, within what
// the subsystem allows, rounded up to the granularity.
func (ctrl *controller) setKATO(want time.Duration) {
	k := &ctrl.sub.cfg.KeepAlive
	if k.Max > 0 && (want == 0 || want > k.Max) {
		want = k.Max
	}
	if rest := want % k.Granularity; rest != 0 {
		want += k.Granularity - rest
	}
	ctrl.kato = want
	w := ctrl.admin.w
	ctrl.seen = w.p.Now()
	if ctrl.timer != nil {
		ctrl.timer.Stop()
		ctrl.timer = nil
	}
	if want > 0 && !k.Ignore {
		ctrl.timer = w.p.AfterFunc(want, ctrl.checkAlive)
	}
}

// alive restarts the keep alive timer.
func (ctrl *controller) alive() { ctrl.seen = ctrl.admin.w.now }

// checkAlive ends the association of a host that was not heard of for the keep
// alive timeout (Base Specification 3.9).
func (ctrl *controller) checkAlive() {
	now := ctrl.admin.w.p.Now()
	if ctrl.sub.cfg.KeepAlive.Traffic {
		if n := ctrl.ioCommands(); n != ctrl.activity {
			ctrl.activity, ctrl.seen = n, now
		}
	}
	if left := ctrl.kato - time.Duration(now-ctrl.seen); left > 0 {
		ctrl.timer.Reset(left)
		return
	}
	ctrl.timer = nil
	ctrl.csts.CFS = true
	ctrl.admin.close(errKeepAlive)
}

// ioCommands is how many commands the I/O queues have had, as far as their
// workers have published that.
func (ctrl *controller) ioCommands() (n uint64) {
	ctrl.sub.t.mu.Lock()
	defer ctrl.sub.t.mu.Unlock()
	for _, c := range ctrl.io {
		n += c.activity.Load()
	}
	return n
}

// keepAlive executes a Keep Alive command.
func (c *conn) keepAlive(r *request) {
	c.ctrl.alive()
	c.status(r, nvme.StatusSuccess, 0)
}
