package target

import "sync/atomic"

// Stats is what a subsystem has counted since it was added. Commands count
// when they have passed their checks.
type Stats struct {
	Reads, Writes           uint64 // commands; Compare counts among the writes
	Others                  uint64 // other I/O commands
	BytesRead, BytesWritten uint64 // data of these
	Errors                  uint64 // commands answered with a status other than success
	Controllers             int    // at the moment
	Queues                  int    // I/O queues at the moment
}

// publishInterval is how old the figures of busy connections get, in
// nanoseconds.
const publishInterval = 1_000_000

// totals is what the connections of one worker to one subsystem have counted.
// The worker alone writes it.
type totals struct {
	reads, writes, others   atomic.Uint64
	readBytes, writtenBytes atomic.Uint64
	errors                  atomic.Uint64
}

// totalsOf returns where the worker counts for a subsystem.
func (w *worker) totalsOf(s *Subsystem) *totals {
	t := w.cold.totals[s]
	if t == nil {
		t = &totals{}
		w.cold.totals[s] = t
		w.t.mu.Lock()
		s.totals = append(s.totals, t)
		w.t.mu.Unlock()
	}
	return t
}

// publish adds what a connection has counted to the totals.
func (c *conn) publish() {
	t, s := c.totals, &c.stats
	if t == nil || *s == (counters{}) {
		return
	}
	add := func(v *atomic.Uint64, n uint64) { v.Store(v.Load() + n) }
	add(&t.reads, s.reads)
	add(&t.writes, s.writes)
	add(&t.others, s.others)
	add(&t.readBytes, s.readBytes)
	add(&t.writtenBytes, s.writtenBytes)
	add(&t.errors, s.errors)
	add(&c.activity, s.reads+s.writes+s.others+s.errors)
	*s = counters{}
}

// publish publishes what connections have counted that are not idle.
func (w *worker) publish() {
	w.publishAt = w.now + publishInterval
	for _, c := range w.hot {
		c.publish()
	}
}

// Stats returns what the subsystem has counted. The figures of busy
// connections are up to a millisecond old.
func (s *Subsystem) Stats() Stats {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	var st Stats
	for _, t := range s.totals {
		st.Reads += t.reads.Load()
		st.Writes += t.writes.Load()
		st.Others += t.others.Load()
		st.BytesRead += t.readBytes.Load()
		st.BytesWritten += t.writtenBytes.Load()
		st.Errors += t.errors.Load()
	}
	st.Controllers = len(s.controllers)
	for _, c := range s.controllers {
		st.Queues += len(c.io)
	}
	return st
}

// Connections returns how many connections there are at the moment, and how
// many of them are no queue yet.
func (t *Target) Connections() (all, handshakes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.connections, t.handshakes
}
