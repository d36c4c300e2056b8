package target

// move hands connections over to the workers that they belong to, if nothing
// of them is under way. It is for right after the response to Connect: a
// connection that is busy already stays where it is.
func (w *worker) move() {
	list := w.cold.movers
	w.cold.movers = nil
	for _, c := range list {
		to := c.cold.move
		c.cold.move = nil
		if c.state != connReady || c.used > 0 || c.tx.pending() || c.carried > 0 || c.mode != rxHeader {
			w.t.mu.Lock()
			if c.cold.ioOf != nil { // it has not ended
				c.cold.ioOf = w
				to.cold.ioQueues--
				w.cold.ioQueues++
			}
			w.t.mu.Unlock()
			continue
		}
		c.publish()
		w.unlist(c)
		w.unwatch(c)
		delete(w.cold.conns, c)
		w.t.mu.Lock()
		w.cold.load--
		to.cold.load++
		c.w = to
		w.t.mu.Unlock()
		to.post(func() { to.take(c) })
	}
}

// take makes a queue that comes from another worker one of the worker's. It
// may have been closed on the way.
func (w *worker) take(c *conn) {
	w.cold.conns[c] = struct{}{}
	switch {
	case c.state == connDead:
		w.untidy = true
	case w.cold.closing:
		c.close(ErrClosed)
	default:
		c.view = w.viewOf(c.cold.sub, c.cold.port)
		c.totals = w.totalsOf(c.cold.sub)
		w.heat(c)
	}
}
