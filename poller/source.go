package poller

import (
	"reflect"

	"github.com/qpoll/qpoll/internal/sys"
)

// Source is polled once per pass, on the core. Poll gets the time of the pass
// and returns how much work it did: any count that is 0 exactly if there was
// nothing to do. It must not block.
//
// A source should be a pointer: Remove finds it by comparison.
type Source interface {
	Poll(now int64) int
}

// Waiter is a Source that lets an adaptive poller sleep.
//
// Arm is called on the core when the poller is about to sleep, after a pass
// without work. It returns a descriptor and the poll(2) events to wait for
// (fd < 0: none), a deadline on the poller's clock after which Poll must be
// called (0: none), and whether the source can sleep at all now. Events that
// are pending when Arm is called end the sleep at once. Arm may be called any
// number of times, also with no sleep following.
type Waiter interface {
	Source
	Arm(now int64) (fd int, events int16, deadline int64, ok bool)
}

// gone takes the place of a source that was removed, until the end of the
// pass.
type gone struct{}

func (gone) Poll(int64) int { return 0 }

func (gone) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, true }

// Add makes s a source, polled from the next pass on; or from this one, if
// called by something that comes before the sources. Adding one twice does
// nothing. On the core only, or while the poller is not running.
func (p *Poller) Add(s Source) {
	p.checkOwner("Add")
	if s == nil || p.find(s) >= 0 {
		return
	}
	w, _ := s.(Waiter)
	p.sources = append(p.sources, s)
	p.waiters = append(p.waiters, w)
	p.sourcesChanged()
}

// Remove takes s from the sources; it is not polled again, not even in this
// pass. A source may remove itself or any other from within Poll. Removing
// what is not there does nothing. On the core only, or while the poller is not
// running.
func (p *Poller) Remove(s Source) {
	p.checkOwner("Remove")
	i := p.find(s)
	if i < 0 {
		return
	}
	p.sources[i] = gone{}
	p.waiters[i] = gone{}
	p.dirty = true
	if !p.walking {
		p.compact()
	}
}

// find returns the index of a source, or -1.
func (p *Poller) find(s Source) int {
	if s == nil || !reflect.ValueOf(s).Comparable() {
		return -1
	}
	for i, have := range p.sources {
		if have == s {
			return i
		}
	}
	return -1
}

// compact drops the places of removed sources.
func (p *Poller) compact() {
	n := 0
	for i, s := range p.sources {
		if s == Source(gone{}) {
			continue
		}
		p.sources[n], p.waiters[n] = s, p.waiters[i]
		n++
	}
	clear(p.sources[n:])
	clear(p.waiters[n:])
	p.sources, p.waiters = p.sources[:n], p.waiters[:n]
	p.dirty = false
	p.sourcesChanged()
}

// sourcesChanged prepares for sleeping with the sources as they are now.
func (p *Poller) sourcesChanged() {
	p.sleepless = nil
	for i, w := range p.waiters {
		if w == nil {
			p.sleepless = p.sources[i]
		}
	}
	if need := len(p.sources) + 1; cap(p.fds) < need {
		p.fds = append(make([]sys.PollFd, 0, 2*need), p.fds...)
	}
}
