package target

import "slices"

// watchStalled has closeStalled run in a while, unless it will anyway, if a
// connection waits for memory that others have.
func (w *worker) watchStalled(list ...*conn) {
	if w.cold.stalled == nil && slices.ContainsFunc(list, (*conn).deprived) {
		w.cold.stalled = w.p.AfterFunc(w.t.cfg.Limits.TransferTime, w.closeStalled)
	}
}

// deprived reports whether a connection waits for memory that others have.
func (c *conn) deprived() bool {
	r := c.starved.head
	if r == nil {
		return false
	}
	class := bufferClass(r.length)
	return c.bufBytes+bufferSize(class) <= c.w.t.cfg.Limits.ConnectionBuffers && !c.w.buffers.fits(class)
}

// closeStalled closes the connections of hosts that hold on to memory which
// others wait for: they do not send what an R2T asks for, or do not receive
// what they have asked for. It is never the time of a backend that counts.
func (w *worker) closeStalled() {
	w.cold.stalled = nil
	if w.cold.closing || !slices.ContainsFunc(w.cold.starving, (*conn).deprived) {
		return
	}
	limit := w.t.cfg.Limits.TransferTime
	for c := range w.cold.conns {
		if c.bufBytes > 0 && c.stalledSince(w.p.Now()-int64(limit)) {
			c.close(errStalled)
		}
	}
	w.cold.stalled = w.p.AfterFunc(max(limit/4, 1), w.closeStalled)
}

// stalledSince reports whether the host has left a request with memory alone
// since a time, or longer.
func (c *conn) stalledSince(t int64) bool {
	for i := range c.requests {
		r := &c.requests[i]
		switch r.state {
		case reqTransfer, reqResponding, reqSending:
			if r.buf != nil && r.turn <= t {
				return true
			}
		}
	}
	return false
}
