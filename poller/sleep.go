package poller

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
)

// sleep waits in the kernel until there may be something to do. It is for a
// running poller only, after a pass without work.
func (p *Poller) sleep() {
	deadline, ok := p.arm()
	if !ok {
		return
	}
	p.publish(p.now)
	if !p.fallAsleep() {
		return
	}
	timeout := time.Duration(-1)
	if deadline != noTimer {
		timeout = time.Duration(deadline - p.clock())
	}
	if timeout > 0 || deadline == noTimer {
		p.wait(timeout)
	}
	p.wakeUp()
}

// wait sleeps, for ever if timeout is negative.
func (p *Poller) wait(timeout time.Duration) {
	n, _ := sys.Ppoll(p.fds, timeout) // whatever it says, a pass is next
	if p.fds[0].Revents != 0 {
		sys.EventDrain(p.wakeFD)
	}
	p.counters[cSleeps]++
	if n > 0 {
		p.counters[cWakeups]++
	}
	// The sleep is no gap.
	p.now = max(p.now, p.clock())
}

// arm collects what to wait for, and until when. It fails if the poller cannot
// sleep now.
func (p *Poller) arm() (deadline int64, ok bool) {
	if p.sleepless != nil {
		p.tellSleepless()
		return 0, false
	}
	p.fds = append(p.fds[:0], sys.PollFd{Fd: int32(p.wakeFD), Events: unix.POLLIN})
	timerSeq := p.timerSeq
	deadline, ok = noTimer, true
	p.walking = true
	n := len(p.waiters)
	for i := 0; i < n && ok; i++ {
		fd, events, until, can := p.waiters[i].Arm(p.now)
		if fd >= 0 {
			p.fds = append(p.fds, sys.PollFd{Fd: int32(fd), Events: events})
		}
		if until != 0 {
			deadline = min(deadline, until)
		}
		ok = can
	}
	p.walking = false
	// What Arm itself has changed is seen to before anything else.
	if p.dirty || n != len(p.waiters) || timerSeq != p.timerSeq {
		ok = false
	}
	if p.dirty {
		p.compact()
	}
	return min(deadline, p.nextTimer), ok
}

// tellSleepless reports, once, what keeps the poller from sleeping.
func (p *Poller) tellSleepless() {
	if p.told {
		return
	}
	p.told = true
	if p.cfg.Logger != nil {
		p.cfg.Logger.Warn("poller cannot sleep: a source is not a poller.Waiter",
			"poller", p.name, "source", typeName(p.sleepless))
	}
	if p.events.Sleepless != nil {
		p.events.Sleepless(p, p.sleepless)
	}
}
