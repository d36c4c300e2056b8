package target

import (
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// fabricsCommand executes a fabrics command.
func (c *conn) fabricsCommand(r *request, data []byte) {
	t := r.cmd.FabricsType()
	switch {
	case t == nvme.FabricsConnect && c.state == connFabrics:
		c.takeData(r, data, nvme.ConnectDataSize)
	case c.state != connReady || t == nvme.FabricsConnect:
		c.fail(r, nvme.StatusCommandSequenceError|nvme.StatusDNR)
	case t == nvme.FabricsPropertyGet && c.qid == 0:
		c.propertyGet(r)
	case t == nvme.FabricsPropertySet && c.qid == 0:
		c.propertySet(r)
	case t == nvme.FabricsDisconnect && c.qid != 0:
		c.disconnect(r)
	default:
		c.fail(r, nvme.StatusInvalidOpcode|nvme.StatusDNR)
	}
}

// disconnect deletes the I/O queue. Its connection goes after the response.
func (c *conn) disconnect(r *request) {
	if uint16(r.cmd.CDW10) != 0 { // record format
		c.fail(r, nvme.StatusConnectIncompatibleFormat|nvme.StatusDNR)
		return
	}
	t := c.w.t
	t.mu.Lock()
	if c.ctrl.io[c.qid] == c {
		delete(c.ctrl.io, c.qid) // the host may connect it again at once
	}
	t.mu.Unlock()
	c.status(r, nvme.StatusSuccess, 0)
	c.windDown(errDisconnect)
}

// connectError is a Connect command that is refused.
type connectError struct {
	status nvme.Status
	at     nvme.InvalidParameter
	reason string
}

func (e *connectError) Error() string {
	return fmt.Sprintf("nvme/tcp target: Connect refused: %v: %s", e.status, e.reason)
}

func refuse(s nvme.Status, format string, args ...any) *connectError {
	return &connectError{status: s | nvme.StatusDNR, reason: fmt.Sprintf(format, args...)}
}

// badField refuses a field of the command.
func badField(offset uint16, format string, args ...any) *connectError {
	e := refuse(nvme.StatusConnectInvalidParameters, format, args...)
	e.at = nvme.InvalidParameter{Offset: offset}
	return e
}

// badData refuses a field of the data.
func badData(offset uint16, format string, args ...any) *connectError {
	e := badField(offset, format, args...)
	e.at.InData = true
	return e
}

// Offsets of fields of the Connect command.
const (
	connectQID    = 42
	connectSQSize = 44
)

// connect executes a Connect command whose data is there.
func (c *conn) connect(r *request) {
	e := c.tryConnect(r)
	if e == nil {
		return
	}
	c.w.t.connectRefused(c, e)
	if e.status.Code() == nvme.StatusConnectInvalidParameters {
		r.result = e.at.Result()
	}
	c.fail(r, e.status)
}

func (c *conn) tryConnect(r *request) *connectError {
	cmd, err := nvme.ParseConnect(&r.cmd)
	if err != nil {
		return refuse(nvme.StatusConnectIncompatibleFormat, "%v", err)
	}
	var d nvme.ConnectData
	if err := d.UnmarshalBinary(r.op.Data); err != nil {
		return refuse(nvme.StatusInvalidField, "%v", err)
	}
	if c.used != 1 {
		return refuse(nvme.StatusCommandSequenceError, "%d commands outstanding", c.used)
	}
	subnqn, err := d.SubsystemNQN()
	if err != nil {
		return badData(nvme.ConnectDataSubNQNOffset, "%v", err)
	}
	host, err := d.HostName()
	if err != nil && d.HostNQN[0] != 0 { // SPDK's tools have no name
		return badData(nvme.ConnectDataHostNQNOffset, "%v", err)
	}
	sub, e := c.w.t.lookUp(c.cold.port, subnqn, host)
	if e != nil {
		return e
	}
	if n := int(cmd.SQSize) + 1; n < 2 || n > sub.cfg.QueueEntries {
		return badField(connectSQSize, "queue of %d entries, at most %d", n, sub.cfg.QueueEntries)
	}
	c.cold.sub = sub
	if cmd.QID == 0 {
		return c.connectAdmin(r, cmd, &d, host)
	}
	return c.connectIO(r, cmd, &d, host)
}

// lookUp finds the subsystem that a host asks for at a port.
func (t *Target) lookUp(port *Port, nqn, host string) (*Subsystem, *connectError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.discovery
	if nqn != nvme.DiscoveryNQN {
		s = nil
		if nqn != "" {
			s = t.subsystem(nqn)
		}
	}
	switch {
	case s == nil || !port.serves(s):
		return nil, badData(nvme.ConnectDataSubNQNOffset, "no subsystem %q here", nqn)
	case !s.allows(host):
		return nil, refuse(nvme.StatusConnectInvalidHost, "host %q may not connect to %q", host, nqn)
	}
	return s, nil
}

func (c *conn) connectAdmin(r *request, cmd nvme.ConnectCommand, d *nvme.ConnectData, host string) *connectError {
	if d.ControllerID != nvme.ControllerIDDynamic {
		return badData(nvme.ConnectDataControllerIDOffset, "controller 0x%x, the dynamic model wants 0xffff", d.ControllerID)
	}
	t := c.w.t
	t.mu.Lock()
	ctrl, s := c.cold.sub.newController(c, host, d.HostID)
	t.mu.Unlock()
	if s != 0 {
		return refuse(s, "%d controllers", c.cold.sub.cfg.Controllers)
	}
	c.ctrl = ctrl
	ctrl.setKATO(cmd.KeepAlive)
	c.becomeQueue(r, cmd)
	t.controllerMade(ctrl)
	return nil
}

func (c *conn) connectIO(r *request, cmd nvme.ConnectCommand, d *nvme.ConnectData, host string) *connectError {
	t, sub := c.w.t, c.cold.sub
	t.mu.Lock()
	ctrl := sub.controllers[d.ControllerID]
	var e *connectError
	switch {
	case ctrl == nil:
		e = badData(nvme.ConnectDataControllerIDOffset, "no controller %d", d.ControllerID)
	case ctrl.host != host:
		e = badData(nvme.ConnectDataHostNQNOffset, "controller %d is of another host", ctrl.id)
	case ctrl.hostID != d.HostID:
		e = badData(nvme.ConnectDataHostIDOffset, "controller %d is of another host identifier", ctrl.id)
	case ctrl.port != c.cold.port:
		e = badData(nvme.ConnectDataControllerIDOffset, "controller %d is at another port", ctrl.id)
	case sub.discovery || int(cmd.QID) > sub.cfg.IOQueues:
		e = badField(connectQID, "queue %d of %d", cmd.QID, sub.cfg.IOQueues)
	case !ctrl.ready:
		e = refuse(nvme.StatusCommandSequenceError, "controller %d is not enabled", ctrl.id)
	case ctrl.io[cmd.QID] != nil:
		e = refuse(nvme.StatusCommandSequenceError, "queue %d of controller %d is connected already", cmd.QID, ctrl.id)
	default:
		ctrl.io[cmd.QID] = c
		c.cold.move = t.quietest(c.w)
		c.cold.move.cold.ioQueues++
		c.cold.ioOf = c.cold.move
	}
	t.mu.Unlock()
	if e != nil {
		return e
	}
	c.ctrl = ctrl
	c.view = c.w.viewOf(sub, c.cold.port)
	c.becomeQueue(r, cmd)
	t.queueMade(ctrl, cmd.QID)
	if c.cold.move == c.w {
		c.cold.move = nil
	} else {
		c.w.cold.movers = append(c.w.cold.movers, c)
		c.w.untidy = true
	}
	return nil
}

// quietest returns the worker with the fewest I/O queues, from if it is one of
// them. The caller holds the target's lock.
func (t *Target) quietest(from *worker) *worker {
	best := from
	for _, w := range t.workers {
		if w.cold.ioQueues < best.cold.ioQueues {
			best = w
		}
	}
	return best
}

// becomeQueue makes the connection a queue and answers the Connect command.
func (c *conn) becomeQueue(r *request, cmd nvme.ConnectCommand) {
	t := c.w.t
	c.stopTimer()
	t.connected(c)
	n := int(cmd.SQSize) + 1
	c.state = connReady
	c.qid = cmd.QID
	c.sqSize = uint16(n)
	c.flowControl = cmd.Attributes&nvme.ConnectDisableFlowControl == 0
	c.out.success = !c.flowControl || t.cfg.Transport.AlwaysSuccess
	c.out.maxTransfer = c.cold.sub.cfg.MaxTransfer
	c.out.maxR2T = min(c.cold.maxR2T, 65536/uint32(n))
	c.totals = c.w.totalsOf(c.cold.sub)
	if c.qid == 0 {
		c.out.icd = pdu.MinICD
	}
	r = c.resize(r, n)
	c.out.transfers = make([]transfer, n*int(c.out.maxR2T))
	c.tx.grow(min(max(n*256, 8<<10), 64<<10), min(max(4*n, 64), 2048))
	c.status(r, nvme.StatusSuccess, nvme.ConnectResponse{ControllerID: c.ctrl.id}.Result())
}
