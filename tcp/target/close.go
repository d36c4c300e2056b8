package target

import (
	"errors"
	"io"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Causes of the end of a connection.
var (
	errHandshake  = errors.New("nvme/tcp target: no Connect command in time")
	errLinger     = errors.New("nvme/tcp target: the host did not close a terminated connection in time")
	errStalled    = errors.New("nvme/tcp target: the host has let data wait for too long that takes memory which others need")
	errDisconnect = errors.New("nvme/tcp target: disconnected by the host")
)

// lost closes a connection on which a system call has failed.
func (c *conn) lost(e sys.Errno) { c.close(socketError("connection lost", e)) }

// ended closes a connection that the host has closed.
func (c *conn) ended() {
	c.close(io.EOF)
}

// close ends a connection. Requests that a backend has still got keep it from
// being forgotten.
func (c *conn) close(cause error) {
	if c.state == connDead {
		return
	}
	if c.cold.cause == nil {
		c.cold.cause = cause
	}
	c.stopTimer()
	c.w.unlist(c)
	c.w.unwatch(c)
	c.state, c.mode = connDead, rxDrain
	_ = sys.Close(c.fd)
	c.fd = -1
	c.abandon()
	c.tx = sendQueue{}
	c.w.untidy = true
	c.w.t.left(c)
}

// abandon gives up all requests that can be.
func (c *conn) abandon() {
	c.waiting, c.sending, c.starved = requestList{}, requestList{}, requestList{}
	c.in.req, c.in.to = nil, nil
	c.fused = nil
	for i := range c.requests {
		r := &c.requests[i]
		switch r.state {
		case reqFree, reqPaired: // a second half goes with the first
		case reqExecuting:
			c.giveUp(r)
		default:
			c.release(r)
		}
	}
}

// giveUp takes back what is held in a backend: at once, or at the end of the
// quiesce time, if the subsystem has one.
func (c *conn) giveUp(r *request) {
	sub := c.cold.sub
	if sub == nil || sub.cfg.QuiesceTime == 0 || c.w.cold.closing {
		c.takeBack(r)
		return
	}
	if c.cold.quiet == nil {
		c.cold.quiet = c.w.p.AfterFunc(sub.cfg.QuiesceTime, c.quiesce)
	}
}

// quiesce is the end of the quiesce time.
func (c *conn) quiesce() {
	for i := range c.requests {
		if r := &c.requests[i]; r.state == reqExecuting {
			c.takeBack(r)
		}
	}
}

func (c *conn) takeBack(r *request) {
	if r.ns.ch.Cancel(&r.op) {
		c.drop(r)
	}
}

// drop lets go of a request of a connection that has ended, and of what the
// backend had along with it.
func (c *conn) drop(r *request) {
	if second := r.pair; second != nil {
		c.release(second)
	}
	c.release(r)
	c.w.untidy = true
}

func (c *conn) stopTimer() {
	if c.cold.timer != nil {
		c.cold.timer.Stop()
		c.cold.timer = nil
	}
}

// bury forgets a connection that has ended.
func (w *worker) bury(c *conn) {
	if c.cold.quiet != nil {
		c.cold.quiet.Stop()
	}
	delete(w.cold.conns, c)
	w.forgetStarving(c)
	w.t.buried(c)
}

func (w *worker) forgetStarving(c *conn) {
	list := w.cold.starving[:0]
	for _, s := range w.cold.starving {
		if s != c {
			list = append(list, s)
		}
	}
	clear(w.cold.starving[len(list):])
	w.cold.starving = list
}

// protocolError terminates a connection because of the PDU at the start of b:
// the host is told with a C2HTermReq. It returns len(b): nothing of it is
// looked at any more.
func (c *conn) protocolError(err error, b []byte) int {
	var pe *pdu.Error
	if !errors.As(err, &pe) || pe.Silent || c.state >= connTerminating {
		c.close(err)
		return len(b)
	}
	n := pdu.Type(b[0]).HeaderLen()
	if n == 0 {
		n = pdu.CommonSize
	}
	c.terminate(err, pe.AppendTermReq(nil, pdu.Controller, b[:min(n, len(b))]))
	return len(b)
}

// terminate queues a TermReq behind what is queued already, and waits for the
// host to close the connection.
func (c *conn) terminate(cause error, term []byte) {
	c.windDown(cause)
	b := c.tx.reserveAnyway(len(term))
	copy(b, term)
	c.tx.commit(len(term))
	c.w.t.terminated(c, cause)
}

// windDown has a connection end when what is queued was sent, and the host has
// closed it or had the time to. Nothing that comes is looked at any more, and
// nothing is answered.
func (c *conn) windDown(cause error) {
	c.cold.cause = cause
	c.stopTimer()
	c.state, c.mode = connTerminating, rxDrain
	c.waiting, c.starved = requestList{}, requestList{}
	c.dropUnsent()
	c.cold.timer = c.w.p.AfterFunc(c.w.t.cfg.Limits.Linger, func() { c.close(errLinger) })
	c.w.queueSend(c)
	c.w.heat(c)
}

// dropUnsent gives up the requests of a connection that is being terminated,
// but for those whose response is queued.
func (c *conn) dropUnsent() {
	c.in.req, c.in.to = nil, nil
	c.fused = nil
	for i := range c.requests {
		r := &c.requests[i]
		switch r.state {
		case reqFree, reqSending, reqPaired:
		case reqExecuting:
			c.giveUp(r)
		case reqResponding:
			// A part of its data may be queued, which must stay as it is.
			if r.sent > 0 {
				c.sentAll(r)
				continue
			}
			c.release(r)
		default:
			c.release(r)
		}
	}
}

// reserveAnyway is reserve for the last thing that is sent: memory of its own,
// if there is no room.
func (q *sendQueue) reserveAnyway(n int) []byte {
	if n <= headerRoom {
		if b := q.reserve(headerRoom); b != nil {
			return b
		}
	}
	size := uint32(headerRoom)
	for int(size) < n {
		size *= 2
	}
	iov := make([]sys.Iovec, len(q.iov), len(q.iov)+4)
	notes := make([]note, len(q.notes), len(q.notes)+4)
	copy(iov, q.iov)
	copy(notes, q.notes)
	for i := range notes {
		notes[i] &^= noteHeader // the old memory is not used again
	}
	q.iov, q.notes = iov, notes
	q.mem, q.mask, q.head, q.tail, q.open = make([]byte, size), size-1, 0, 0, false
	return q.mem[:n]
}

// terminated follows the last byte of a TermReq: the host is to see the end of
// the stream behind it.
func (c *conn) terminated() {
	if sys.Shutdown(c.fd, sys.SHUT_WR) != nil {
		c.close(c.cold.cause)
	}
}
