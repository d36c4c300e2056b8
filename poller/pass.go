//qpoll:hot

package poller

import "math"

// Now returns the time of the current pass in nanoseconds, on the clock of the
// poller: that of [Poller.Poll] if it is stepped, else the machine's monotonic
// clock. It is 0 before the first pass. On the core only.
func (p *Poller) Now() int64 { return p.now }

// Poll makes one pass at the given time, in nanoseconds on any timeline: it
// runs what was posted before, the timers that are due, and every source once,
// and returns the work done. A time before that of the pass before counts as
// that one. Of all goroutines, only the one that owns the poller may call it.
// It does nothing, and returns 0, on a poller that runs or is closed, and from
// within Poll.
func (p *Poller) Poll(now int64) int {
	if p.mode.Load() != stepped {
		return 0
	}
	p.checkOwner("Poll")
	if p.inPoll {
		return 0
	}
	p.inPoll = true
	p.owner.Store(goroutine())
	p.begin(now)
	work := p.pass(now)
	if work == 0 && p.unpublished() {
		p.publish(p.now)
	}
	p.owner.Store(0)
	p.inPoll = false
	return work
}

// begin gives the clock its first value. Timers set before had only their
// durations.
func (p *Poller) begin(now int64) {
	if p.begun {
		return
	}
	p.begun = true
	p.now, p.publishAt = now, now
	p.rebaseTimers(now)
}

// pass is one turn of the loop.
func (p *Poller) pass(now int64) int {
	now = max(now, p.now)
	p.countGap(uint64(now - p.now))
	p.now = now

	work := 0
	if p.mailbox.ready() {
		work = p.drain()
	}
	if p.nextTimer <= now {
		work += p.fire()
	}
	// Sources added by sources have their turn in the next pass.
	p.walking = true
	for i, n := 0, len(p.sources); i < n; i++ {
		work += p.sources[i].Poll(now)
	}
	p.walking = false
	if p.dirty {
		p.compact()
	}

	p.countPass(work)
	if now >= p.publishAt {
		p.publish(now)
	}
	return work
}

// drain runs what was posted before it was called, so that a function that
// posts itself again does not keep the pass from ending.
func (p *Poller) drain() int {
	n := 0
	for end := p.mailbox.reserved(); p.mailbox.head != end; n++ {
		fn := p.mailbox.take()
		if fn == nil {
			break
		}
		fn()
	}
	p.counters[cTasks] += uint64(n)
	return n
}

// later is now+d, at most the end of time.
func later(now, d int64) int64 {
	if d > math.MaxInt64-1-max(now, 0) {
		return math.MaxInt64 - 1
	}
	return now + max(d, 0)
}
