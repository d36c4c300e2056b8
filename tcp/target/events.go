package target

import (
	"errors"
	"io"
	"net/netip"
)

// Events are calls for what happens in a target; any may be nil. They run on
// the cores of the pollers and must not block, nor call what waits for a
// poller; methods of the target may be called.
type Events struct {
	// Connect is called when a host has got a controller, or an I/O queue of
	// one: qid is 0 for the controller.
	Connect func(s *Subsystem, controller, qid uint16, host string)

	// Refuse is called when a Connect command was refused.
	Refuse func(peer netip.AddrPort, err error)

	// Disconnect is called when a connection has ended that was a queue.
	Disconnect func(s *Subsystem, controller, qid uint16, err error)

	// Terminate is called when the target has terminated a connection because
	// of a PDU: err is a *pdu.Error.
	Terminate func(peer netip.AddrPort, err error)
}

// log logs a failure.
func (t *Target) log(msg string, args ...any) {
	if t.cfg.Logger != nil {
		t.cfg.Logger.Warn(msg, args...)
	}
}

func (t *Target) info(msg string, args ...any) {
	if t.cfg.Logger != nil {
		t.cfg.Logger.Info(msg, args...)
	}
}

func (t *Target) connectRefused(c *conn, err error) {
	t.log("Connect refused", "peer", c.cold.peer, "error", err)
	if t.events.Refuse != nil {
		t.events.Refuse(c.cold.peer, err)
	}
}

func (t *Target) controllerMade(ctrl *controller) {
	t.info("controller", "subsystem", ctrl.sub.cfg.NQN, "controller", ctrl.id, "host", ctrl.host, "peer", ctrl.admin.cold.peer, "kato", ctrl.kato)
	if t.events.Connect != nil {
		t.events.Connect(ctrl.sub, ctrl.id, 0, ctrl.host)
	}
}

func (t *Target) queueMade(ctrl *controller, qid uint16) {
	t.info("queue", "subsystem", ctrl.sub.cfg.NQN, "controller", ctrl.id, "queue", qid)
	if t.events.Connect != nil {
		t.events.Connect(ctrl.sub, ctrl.id, qid, ctrl.host)
	}
}

func (t *Target) controllerGone(ctrl *controller, cause error) {
	t.info("controller ended", "subsystem", ctrl.sub.cfg.NQN, "controller", ctrl.id, "cause", cause)
}

func (t *Target) terminated(c *conn, err error) {
	t.log("connection terminated", "peer", c.cold.peer, "error", err)
	if t.events.Terminate != nil {
		t.events.Terminate(c.cold.peer, err)
	}
}

func (t *Target) connectionEnded(c *conn) {
	if err := c.cold.cause; !errors.Is(err, io.EOF) && !errors.Is(err, ErrClosed) {
		t.info("connection ended", "peer", c.cold.peer, "cause", err)
	}
	if c.ctrl != nil && t.events.Disconnect != nil {
		t.events.Disconnect(c.ctrl.sub, c.ctrl.id, c.qid, c.cold.cause)
	}
}
