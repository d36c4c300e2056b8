package target

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/poller"
)

// connCold is the part of a connection that I/O does not touch.
type connCold struct {
	port    *Port
	peer    netip.AddrPort
	local   netip.AddrPort
	timer   *poller.Timer // of the handshake, later of the termination
	quiet   *poller.Timer // of the quiesce time
	capsule []byte        // data of a capsule that arrives in pieces
	maxR2T  uint32        // that the host takes
	sub     *Subsystem
	move    *worker // where to go
	ioOf    *worker // counts among the I/O queues of this one; under the target's lock
	fresh   bool    // counts among the handshakes; under the target's lock
	cause   error   // why it ended

	starving bool // is in workerCold.starving
}

// acceptBatch is how many connections are accepted in one pass.
const acceptBatch = 16

// accept takes pending connections of a listener.
func (w *worker) accept(port *Port, lfd int) {
	for range acceptBatch {
		fd, peer, err := sys.Accept4(lfd)
		switch err {
		case 0:
		case sys.EAGAIN, unix.ECONNABORTED:
			return
		default:
			// Out of descriptors or memory, most likely: again later.
			w.t.log("accept failed", "port", port.Addr(), "error", err)
			w.pause(lfd)
			return
		}
		if err := w.t.admit(); err != nil {
			w.t.log("connection refused", "peer", peer, "error", err)
			_ = sys.SetLinger(fd, 0)
			_ = sys.Close(fd)
			continue
		}
		c := &conn{fd: fd}
		c.cold = connCold{port: port, peer: peer, fresh: true}
		c.cold.local, _ = sys.LocalAddr(fd)
		w.t.start(w, c)
	}
}

// pause leaves a listener alone for a while.
func (w *worker) pause(lfd int) {
	port := w.cold.ports[lfd]
	if port == nil || sys.EpollDelete(w.epfd, lfd) != nil {
		return
	}
	w.p.AfterFunc(acceptPause, func() {
		if w.cold.ports[lfd] == port {
			_ = sys.EpollAdd(w.epfd, lfd, unix.EPOLLIN)
		}
	})
}

// listen adds a listener.
func (w *worker) listen(port *Port, fd int) {
	if err := sys.EpollAdd(w.epfd, fd, unix.EPOLLIN); err != nil {
		w.t.log("cannot listen", "port", port.Addr(), "error", err)
	}
	w.cold.ports[fd] = port
	w.cold.watched++
}

// unlisten closes a listener.
func (w *worker) unlisten(fd int) {
	if _, ok := w.cold.ports[fd]; !ok {
		return
	}
	delete(w.cold.ports, fd)
	w.cold.watched--
	_ = sys.EpollDelete(w.epfd, fd)
	_ = sys.Close(fd)
}

// options sets the options of a connection's socket. A connection works
// without them.
func (t *Target) options(fd int) {
	tr := &t.cfg.Transport
	err := sys.SetNoDelay(fd, true)
	if err == nil && tr.Congestion != "" {
		err = sys.SetCongestion(fd, tr.Congestion)
	}
	if err == nil && tr.SendBuffer > 0 {
		err = sys.SetSendBuffer(fd, tr.SendBuffer)
	}
	if err == nil && tr.RecvBuffer > 0 {
		err = sys.SetRecvBuffer(fd, tr.RecvBuffer)
	}
	if err != nil {
		t.log("socket option", "error", err)
	}
}

// Sizes before the Connect command: a handshake and a few commands.
const (
	handshakeRequests = 4
	handshakeHeaders  = 1 << 10
	handshakePieces   = 16
)

// adopt makes a connection one of the worker's.
func (w *worker) adopt(c *conn) {
	w.cold.conns[c] = struct{}{}
	switch {
	case c.state == connDead: // closed on the way here
		w.untidy = true
		return
	case w.cold.closing || c.cold.port.closed.Load():
		c.close(ErrClosed)
		return
	}
	c.tx.grow(handshakeHeaders, handshakePieces)
	c.makeRequests(handshakeRequests)
	c.cold.timer = w.p.AfterFunc(w.t.cfg.Limits.HandshakeTime, func() { c.close(errHandshake) })
	w.heat(c)
}

// makeRequests gives the connection n requests.
func (c *conn) makeRequests(n int) {
	c.requests = make([]request, n)
	c.free = nil
	for i := n - 1; i >= 0; i-- {
		r := &c.requests[i]
		r.conn, r.index = c, uint16(i)
		r.op.Owner = r
		r.next, c.free = c.free, r
	}
}

// resize gives the connection n requests in place of those that it has, of
// which only r is in use. It returns what takes the place of r.
func (c *conn) resize(r *request, n int) *request {
	c.makeRequests(n)
	c.used = 0
	s := c.take()
	s.cmd, s.state, s.buf = r.cmd, r.state, r.buf
	return s
}
