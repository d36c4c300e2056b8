package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// adminCommand executes a command of the admin queue, or a fabrics command, or
// whatever comes before the Connect command.
func (c *conn) adminCommand(r *request, data []byte) {
	r.op.Kind = backend.Flush // none that moves data
	if r.cmd.Flags&nvme.FlagFuseMask != 0 {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	if r.cmd.Opcode == nvme.OpFabrics {
		c.fabricsCommand(r, data)
		return
	}
	if c.state != connReady || !c.ctrl.csts.RDY {
		c.fail(r, nvme.StatusCommandSequenceError|nvme.StatusDNR)
		return
	}
	c.ctrl.traffic()
	c.execute(r, data)
}

// traffic restarts the keep alive timer if any command does that.
func (ctrl *controller) traffic() {
	if ctrl.sub.cfg.KeepAlive.Traffic {
		ctrl.alive()
	}
}

// execute executes an admin command of an enabled controller.
func (c *conn) execute(r *request, data []byte) {
	op := r.cmd.Opcode
	if c.ctrl.sub.discovery && !discoveryCommand(op) {
		op = nvme.AdminVendorStart // which is none
	}
	switch op {
	case nvme.AdminGetLogPage:
		c.getLogPage(r)
	case nvme.AdminIdentify:
		c.identify(r)
	case nvme.AdminAbort:
		c.abort(r)
	case nvme.AdminSetFeatures:
		c.setFeatures(r, data)
	case nvme.AdminGetFeatures:
		c.getFeatures(r)
	case nvme.AdminAsyncEvent:
		c.asyncEvent(r)
	case nvme.AdminKeepAlive:
		c.keepAlive(r)
	default:
		c.fail(r, nvme.StatusInvalidOpcode|nvme.StatusDNR)
	}
}

// discoveryCommand reports whether discovery controllers know an admin
// command.
func discoveryCommand(op nvme.Opcode) bool {
	switch op {
	case nvme.AdminGetLogPage, nvme.AdminIdentify, nvme.AdminSetFeatures, nvme.AdminGetFeatures,
		nvme.AdminAsyncEvent, nvme.AdminKeepAlive:
		return true
	}
	return false
}

// adminData goes on with an admin or fabrics command whose data is there.
func (c *conn) adminData(r *request) {
	if r.cmd.Opcode == nvme.OpFabrics {
		c.connect(r)
		return
	}
	c.setFeatureData(r)
}

// reply answers an admin command with n bytes of data: what fill puts into
// memory that is zeroed.
func (c *conn) reply(r *request, n uint64, fill func([]byte)) {
	if n > uint64(c.out.maxTransfer) {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	if s := c.checkTransport(&r.cmd, int64(n)); s != 0 {
		c.fail(r, s)
		return
	}
	r.length, r.toHost, r.fill = uint32(n), true, fill
	if c.provide(r, starvedReply) {
		c.fillReply(r)
	}
}

// replyBytes is reply with data that is there, cut off or extended by zeros.
func (c *conn) replyBytes(r *request, n uint64, data []byte, err error) {
	if err != nil {
		c.fail(r, nvme.StatusInternalError)
		return
	}
	c.reply(r, n, func(b []byte) { copy(b, data) })
}

// fillReply goes on with a reply that has memory.
func (c *conn) fillReply(r *request) {
	b := r.buf.b[:r.length:r.length]
	clear(b)
	r.fill(b)
	r.fill = nil
	r.op.Data = b
	c.respond(r)
}
