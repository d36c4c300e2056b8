package target

import (
	"errors"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Causes of the end of a controller.
var (
	errKilled    = errors.New("nvme/tcp target: killed")
	errKeepAlive = errors.New("nvme/tcp target: keep alive timeout")
	errReset     = errors.New("nvme/tcp target: controller reset")
	errShutdown  = errors.New("nvme/tcp target: controller shutdown")
	errAdminGone = errors.New("nvme/tcp target: the admin queue is gone")
)

// controller is a controller: an association with a host, from the Connect
// command of its admin queue to the end of that connection.
type controller struct {
	id     uint16
	sub    *Subsystem
	port   *Port
	host   string
	hostID [16]byte
	admin  *conn

	// Under the target's lock.
	io     map[uint16]*conn
	gone   bool
	ready  bool // enabled, so that I/O queues can be made
	events eventState

	// Of the admin queue's core.
	cc       nvme.CC
	csts     nvme.CSTSFields
	aers     []*request // outstanding Asynchronous Event Requests
	aborts   int        // Abort commands under way
	features features
	kato     time.Duration // 0: no timer
	seen     int64         // when the host was last known to be there
	activity uint64        // commands of its I/O queues at that time
	timer    *poller.Timer
	errorLog errorLog
}

// newController makes a controller for an admin queue, or tells why not. The
// caller holds the target's lock.
func (s *Subsystem) newController(c *conn, host string, hostID [16]byte) (*controller, nvme.Status) {
	limit := s.cfg.Controllers
	if len(s.controllers) >= limit {
		return nil, nvme.StatusConnectControllerBusy
	}
	for s.controllers[s.nextID] != nil {
		s.advanceID()
	}
	ctrl := &controller{
		id: s.nextID, sub: s, port: c.cold.port, host: host, hostID: hostID,
		admin: c, io: map[uint16]*conn{},
	}
	ctrl.features.reset(ctrl)
	s.advanceID()
	s.controllers[ctrl.id] = ctrl
	return ctrl, 0
}

// advanceID goes on to the next controller ID: all others have their turn
// before one is used again.
func (s *Subsystem) advanceID() {
	s.nextID++
	if int(s.nextID) >= int(s.cfg.FirstController)+s.cfg.Controllers {
		s.nextID = s.cfg.FirstController
	}
}

// dissolve ends an association. On the admin queue's core.
func (ctrl *controller) dissolve(cause error) {
	t := ctrl.sub.t
	if ctrl.timer != nil {
		ctrl.timer.Stop()
		ctrl.timer = nil
	}
	t.mu.Lock()
	if ctrl.gone {
		t.mu.Unlock()
		return
	}
	ctrl.gone, ctrl.ready = true, false
	delete(ctrl.sub.controllers, ctrl.id)
	ctrl.killIO(errAdminGone)
	t.mu.Unlock()
	t.controllerGone(ctrl, cause)
}

// killIO ends the connections of the I/O queues. The caller holds the target's
// lock.
func (ctrl *controller) killIO(cause error) {
	for _, c := range ctrl.io {
		ctrl.sub.t.killConn(c, cause)
	}
}

// kill ends an association from any core. The caller holds the target's lock.
func (ctrl *controller) kill(cause error) {
	ctrl.sub.t.killConn(ctrl.admin, cause)
	ctrl.killIO(cause)
}

func (s *Subsystem) killControllers(cause error) {
	for _, c := range s.controllers {
		c.kill(cause)
	}
}

// KillController ends a controller with all of its connections, as if its
// network had failed. It reports whether there is such a controller.
func (s *Subsystem) KillController(id uint16) bool {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	ctrl := s.controllers[id]
	if ctrl != nil {
		ctrl.kill(errKilled)
	}
	return ctrl != nil
}

// KillHost ends all controllers of a host, and returns how many there were.
func (s *Subsystem) KillHost(nqn string) (n int) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	for _, ctrl := range s.controllers {
		if ctrl.host == nqn {
			ctrl.kill(errKilled)
			n++
		}
	}
	return n
}

// KillQueue ends the connection of one queue of a controller; that of queue 0
// takes the controller with it. It reports whether there is such a queue.
func (s *Subsystem) KillQueue(id, qid uint16) bool {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	ctrl := s.controllers[id]
	if ctrl == nil {
		return false
	}
	c := ctrl.admin
	if qid != 0 {
		c = ctrl.io[qid]
	}
	if c != nil {
		s.t.killConn(c, errKilled)
	}
	return c != nil
}

// ControllerInfo describes a controller.
type ControllerInfo struct {
	ID     uint16
	Host   string // NQN
	HostID [16]byte
	PortID uint16
	Queues []uint16 // I/O queues, in no order
	Ready  bool     // enabled by the host
}

// Controllers describes the controllers of the subsystem, in no order.
func (s *Subsystem) Controllers() []ControllerInfo {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	list := make([]ControllerInfo, 0, len(s.controllers))
	for _, c := range s.controllers {
		info := ControllerInfo{ID: c.id, Host: c.host, HostID: c.hostID, PortID: c.port.id, Ready: c.ready}
		for qid := range c.io {
			info.Queues = append(info.Queues, qid)
		}
		list = append(list, info)
	}
	return list
}
