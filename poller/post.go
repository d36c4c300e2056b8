package poller

import (
	"runtime"

	"github.com/qpoll/qpoll/internal/sys"
)

// Values of Poller.asleep. The core goes to sleep and wakes up; a poster that
// finds it sleeping takes the duty to signal it, and until it has done so the
// descriptor must stay open.
const (
	awake = iota
	sleeping
	waking
)

// Post has fn run on the core, in a pass after the current one. Functions
// posted by one goroutine run in order. It does not wait and does not
// allocate; it fails with [ErrMailboxFull] or [ErrClosed]. If it returns nil,
// fn will run, also when the poller is closed meanwhile. Any goroutine.
func (p *Poller) Post(fn func()) error {
	if fn == nil {
		return ErrNilFunc
	}
	if err := p.mailbox.put(fn); err != nil {
		return err
	}
	if p.asleep.Load() == sleeping {
		p.wake()
	}
	return nil
}

// wake ends the sleep of the poller, if it sleeps.
//
// No wake-up is lost: a poster fills a slot, then looks at asleep; the core
// sets asleep, then looks at the mailbox. All four are sequentially
// consistent, so one of the two sees the other.
func (p *Poller) wake() {
	if !p.asleep.CompareAndSwap(sleeping, waking) {
		return
	}
	// A counter at its limit (EAGAIN) is readable, which is all that matters.
	sys.EventSignal(p.wakeFD)
	p.asleep.Store(awake)
}

// fallAsleep announces that the core will wait for its descriptors. It fails
// if there is a reason not to.
func (p *Poller) fallAsleep() bool {
	// A poster may still be about to signal the last sleep.
	if !p.asleep.CompareAndSwap(awake, sleeping) {
		return false
	}
	if p.mailbox.empty() && p.mode.Load() == running {
		return true
	}
	p.wakeUp()
	return false
}

// wakeUp takes back what fallAsleep announced, unless a poster already has.
func (p *Poller) wakeUp() { p.asleep.CompareAndSwap(sleeping, awake) }

// awaitWakers waits until no poster is about to use the descriptor. The core
// does not sleep again, so there is at most one.
func (p *Poller) awaitWakers() {
	for p.asleep.Load() == waking {
		runtime.Gosched()
	}
}
