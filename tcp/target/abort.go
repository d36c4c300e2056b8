package target

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// abort executes an Abort command: what waits for memory, or is held in a
// backend, or is an Asynchronous Event Request, is aborted; what is executing
// already goes on.
func (c *conn) abort(r *request) {
	cmd, err := nvme.ParseAbort(&r.cmd)
	ctrl := c.ctrl
	if err != nil || ctrl.aborts >= abortLimit {
		c.fail(r, nvme.StatusAbortLimitExceeded|nvme.StatusDNR)
		return
	}
	if cmd.SQID == 0 {
		c.aborted(r, c.abortCommand(cmd.CID))
		return
	}
	t := c.w.t
	t.mu.Lock()
	q := ctrl.io[cmd.SQID]
	var w *worker
	if q != nil {
		w = q.w
	}
	t.mu.Unlock()
	switch {
	case q == nil:
		c.aborted(r, false)
	case w == c.w:
		c.aborted(r, q.abortCommand(cmd.CID))
	default:
		c.abortElsewhere(r, q, w, cmd.CID)
	}
}

// abortElsewhere aborts a command of a queue on another core.
func (c *conn) abortElsewhere(r *request, q *conn, w *worker, cid uint16) {
	r.state = reqHeld
	c.ctrl.aborts++
	w.post(func() {
		// A queue that has moved meanwhile is too busy to be caught.
		done := w.has(q) && q.abortCommand(cid)
		c.w.post(func() {
			c.ctrl.aborts--
			if c.state == connReady && r.state == reqHeld {
				c.aborted(r, done)
			}
		})
	})
}

func (w *worker) has(c *conn) bool {
	_, ok := w.cold.conns[c]
	return ok
}

// aborted answers an Abort command.
func (c *conn) aborted(r *request, done bool) {
	result := uint64(0)
	if !done {
		result = uint64(nvme.AbortNotPerformed)
	}
	c.status(r, nvme.StatusSuccess, result)
}

// abortCommand aborts a command of the queue, and reports whether it has.
func (c *conn) abortCommand(cid uint16) bool {
	if c.state != connReady {
		return false
	}
	for i := range c.requests {
		r := &c.requests[i]
		if r.cmd.CID != cid || !c.abortRequest(r) {
			continue
		}
		c.fail(r, nvme.StatusAbortRequested)
		return true
	}
	return false
}

// abortRequest takes a request from wherever it is, if that is possible.
func (c *conn) abortRequest(r *request) bool {
	if r.cmd.Flags&nvme.FlagFuseMask != 0 {
		return false // it would have to be both halves
	}
	switch r.state {
	case reqStarved:
		c.w.hungry = true // there may be enough for the one behind it
		return c.starved.remove(r)
	case reqExecuting:
		return r.ns.ch.Cancel(&r.op)
	case reqHeld:
		if i := slices.Index(c.ctrl.aers, r); i >= 0 {
			c.ctrl.aers = slices.Delete(c.ctrl.aers, i, i+1)
			return true
		}
	}
	return false
}

// remove removes a request from the list, and reports whether it was there.
func (l *requestList) remove(r *request) bool {
	var before *request
	for o := l.head; o != nil; before, o = o, o.next {
		if o != r {
			continue
		}
		if before == nil {
			l.head = r.next
		} else {
			before.next = r.next
		}
		if l.tail == r {
			l.tail = before
		}
		r.next = nil
		return true
	}
	return false
}
