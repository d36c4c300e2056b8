package target

import (
	"github.com/qpoll/qpoll/tcp/pdu"
)

// admit counts a connection that was accepted, or tells why it cannot stay.
func (t *Target) admit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.cfg.Limits
	if t.connections >= l.Connections || t.handshakes >= l.Handshakes {
		return errTooMany
	}
	t.connections++
	t.handshakes++
	return nil
}

// connected counts a connection that has become a queue.
func (t *Target) connected(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.cold.fresh = false
	t.handshakes--
}

// left is told when a connection was closed. Its requests may still be under
// way.
func (t *Target) left(c *conn) {
	c.publish()
	t.mu.Lock()
	t.connections--
	if c.cold.fresh {
		t.handshakes--
	}
	delete(c.cold.port.conns, c)
	if w := c.cold.ioOf; w != nil {
		w.cold.ioQueues--
		c.cold.ioOf = nil
	}
	ctrl := c.ctrl
	if ctrl != nil && c.qid != 0 && ctrl.io[c.qid] == c {
		delete(ctrl.io, c.qid)
	}
	t.mu.Unlock()
	if ctrl != nil && c.qid == 0 {
		ctrl.dissolve(c.cold.cause)
	}
	t.connectionEnded(c)
}

// buried is told when nothing of a connection is left.
func (t *Target) buried(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.w.cold.load--
}

// killConn has the worker of a connection close it. The caller holds the
// target's lock.
func (t *Target) killConn(c *conn, cause error) {
	w := c.w
	w.post(func() {
		t.mu.Lock()
		moved := c.w != w
		if moved {
			t.killConn(c, cause)
		}
		t.mu.Unlock()
		if !moved {
			c.close(cause)
		}
	})
}

// start gives a new connection to the worker that has the fewest.
func (t *Target) start(from *worker, c *conn) {
	c.receiver = pdu.NewConnectReceiver(pdu.Controller)
	t.options(c.fd)
	t.mu.Lock()
	to := from
	for _, w := range t.workers {
		if w.cold.load < to.cold.load {
			to = w
		}
	}
	to.cold.load++
	c.w = to
	c.cold.port.conns[c] = struct{}{}
	t.mu.Unlock()
	if to == from {
		to.adopt(c)
		return
	}
	to.post(func() { to.adopt(c) })
}
