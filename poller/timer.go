package poller

import (
	"math"
	"time"
)

// noTimer is the due time of the first timer when there is none.
const noTimer = math.MaxInt64

// Timer calls a function on the core after a while. Its methods are for the
// core only, or for while the poller is not running; they do not allocate.
type Timer struct {
	p     *Poller
	fn    func()
	when  int64
	seq   uint64 // orders timers of one due time by when they were set
	index int    // in the heap, -1 if not set
}

// AfterFunc sets a timer that calls fn on the core in the first pass that is
// no earlier than d after the current one, but not in this one. Timers due in
// the same pass fire in the order of their due times. They are as fine as the
// passes, and do not fire any more once the poller is closed. On the core only,
// or while the poller is not running.
func (p *Poller) AfterFunc(d time.Duration, fn func()) *Timer {
	p.checkOwner("AfterFunc")
	t := &Timer{p: p, fn: fn, index: -1}
	t.set(d)
	return t
}

// Stop keeps the timer from firing, and reports whether it was set.
func (t *Timer) Stop() bool {
	t.p.checkOwner("Timer.Stop")
	if t.index < 0 {
		return false
	}
	t.p.unsetTimer(t)
	return true
}

// Reset sets the timer to fire d after the current pass, whether it is set,
// has fired or was stopped, and reports whether it was set. A timer may reset
// itself from its function.
func (t *Timer) Reset(d time.Duration) bool {
	t.p.checkOwner("Timer.Reset")
	was := t.index >= 0
	t.set(d)
	return was
}

func (t *Timer) set(d time.Duration) {
	p := t.p
	p.timerSeq++
	t.when, t.seq = later(p.now, int64(d)), p.timerSeq
	if t.index < 0 {
		t.index = len(p.timers)
		p.timers = append(p.timers, t)
	}
	p.sift(t.index)
	p.nextTimer = p.timers[0].when
}

func (p *Poller) unsetTimer(t *Timer) {
	i, last := t.index, len(p.timers)-1
	t.index = -1
	moved := p.timers[last]
	p.timers[last] = nil
	p.timers = p.timers[:last]
	if i != last {
		p.timers[i], moved.index = moved, i
		p.sift(i)
	}
	p.nextTimer = noTimer
	if last > 0 {
		p.nextTimer = p.timers[0].when
	}
}

// fire calls the timers that are due. One that is set meanwhile waits for the
// next pass: due now at the earliest, and set later, it comes after all of
// those that were due before.
func (p *Poller) fire() int {
	n := 0
	for limit := p.timerSeq; p.nextTimer <= p.now && p.timers[0].seq <= limit; n++ {
		t := p.timers[0]
		p.unsetTimer(t)
		t.fn()
	}
	return n
}

// rebaseTimers moves all timers by what the clock begins with.
func (p *Poller) rebaseTimers(now int64) {
	for _, t := range p.timers {
		t.when = later(now, t.when)
	}
	if len(p.timers) > 0 {
		p.nextTimer = p.timers[0].when
	}
}

func (t *Timer) before(u *Timer) bool {
	if t.when != u.when {
		return t.when < u.when
	}
	return t.seq < u.seq
}

// The heap has four children to a node: half the depth of two, and the four
// lie in one or two cache lines.
const arity = 4

// sift moves the timer at i to where it belongs.
func (p *Poller) sift(i int) {
	t := p.timers[i]
	p.siftDown(i)
	p.siftUp(t.index)
}

func (p *Poller) siftUp(i int) {
	t := p.timers[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !t.before(p.timers[parent]) {
			break
		}
		p.place(p.timers[parent], i)
		i = parent
	}
	p.place(t, i)
}

func (p *Poller) siftDown(i int) {
	t := p.timers[i]
	for {
		first := i*arity + 1
		if first >= len(p.timers) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(p.timers)); c++ {
			if p.timers[c].before(p.timers[least]) {
				least = c
			}
		}
		if !p.timers[least].before(t) {
			break
		}
		p.place(p.timers[least], i)
		i = least
	}
	p.place(t, i)
}

func (p *Poller) place(t *Timer, i int) { p.timers[i], t.index = t, i }
