package mpath

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

const (
	noTime = math.MaxInt64
	// An I/O that all usable paths refuse is tried again after a while, which
	// doubles up to a second, and given up after so many rounds: about a second,
	// and ANATT more where it is by their ANA state that they refuse it.
	refusedRounds = 10
	refusedWait   = time.Millisecond
)

// full says that there is no tracker left, or why there will be none.
func (c *Channel) full() error {
	if c.closed {
		return ErrClosed
	}
	return nvme.ErrQueueFull
}

// startSlow is start for a request that cannot simply be sent: others wait, or
// there is no path, or the one that was chosen did not take it and said why.
func (c *Channel) startSlow(r *request, err error) error {
	switch {
	case c.closed:
		err = ErrClosed
	case err == nil && c.waiting.head != nil:
		err = c.enqueue(r)
	case err == nil:
		err = c.tryAll(r)
	case !c.turnedAway(r, err):
	default:
		err = c.tryAll(r)
	}
	if err != nil {
		c.put(r)
	}
	return err
}

// turnedAway tells whether a path refused a request because of itself, and not
// because of what the request is. A path that is not live takes itself out.
func (c *Channel) turnedAway(r *request, err error) bool {
	l := r.path
	if l != nil && errors.Is(err, nvme.ErrNoNamespace) {
		l.gone = true
		c.refresh(l)
		c.cold.head.sub.wake(l.path)
		return true
	}
	return errors.Is(err, nvme.ErrQueueFull) || l == nil || !l.q.QueuePair().Live()
}

// tryAll offers a request to the usable paths in turn, and has it wait if there
// are none. The error is what its caller gets.
func (c *Channel) tryAll(r *request) error {
	now := c.p.Now()
	full := false
	r.slow = true
	for _, slot := range append([]uint8(nil), c.set.Candidates()...) {
		if r.tried>>slot&1 != 0 {
			continue
		}
		err := c.dispatch(r, int(slot), now)
		switch {
		case err == nil:
			return nil
		case !c.turnedAway(r, err):
			return err
		}
		full = full || errors.Is(err, nvme.ErrQueueFull)
	}
	if full {
		return nvme.ErrQueueFull
	}
	return c.enqueue(r)
}

// enqueue has a new request wait for a path.
func (c *Channel) enqueue(r *request) error {
	if err := c.check(r); err != nil {
		return err
	}
	if c.refuse {
		return errNoPath
	}
	c.wait(r)
	return nil
}

// check finds what is wrong with a request while no path does.
func (c *Channel) check(r *request) error {
	if r.kind >= kindDeallocate {
		return nil
	}
	if r.blocks == 0 || r.kind != kindIssue && uint64(len(r.buf)) != r.blocks*uint64(c.width) {
		return fmt.Errorf("%w: %d bytes for %d blocks of %d", nvme.ErrLength, len(r.buf), r.blocks, c.width)
	}
	if r.lba >= c.blocks || r.blocks > c.blocks-r.lba {
		return fmt.Errorf("%w: LBA %d, %d blocks, namespace of %d", nvme.ErrOutOfRange, r.lba, r.blocks, c.blocks)
	}
	return nil
}

// wait puts r into the list of those that wait for a path, which is in order of
// submission.
func (c *Channel) wait(r *request) {
	r.state, r.slow = requestWaiting, true
	at := c.waiting.tail
	for at != nil && at.seq > r.seq {
		at = at.prev
	}
	c.waiting.insertAfter(at, r)
}

// park keeps r until its path is quiet, or until some time.
func (c *Channel) park(r *request) {
	r.state = requestParked
	c.parked.insertAfter(c.parked.tail, r)
	if r.quiet {
		c.look = true // it may have become quiet just now
	} else {
		c.due = min(c.due, r.due)
	}
}

func (l *requestList) insertAfter(at, r *request) {
	r.prev = at
	if at == nil {
		r.next, l.head = l.head, r
	} else {
		r.next, at.next = at.next, r
	}
	if r.next == nil {
		l.tail = r
	} else {
		r.next.prev = r
	}
	l.n++
}

func (l *requestList) remove(r *request) {
	if r.prev == nil {
		l.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.next, r.prev = nil, nil
	l.n--
}

// failover tells whether another path may do better.
func failover(st nvme.Status) bool {
	return !st.DNR() && (st.IsPath() || st.Code() == nvme.StatusAbortedSQDeletion)
}

// ended takes the completion of a request that did not succeed.
func (c *Channel) ended(r *request, st nvme.Status) {
	l := r.path
	path := st.IsPath() || st.Code() == nvme.StatusAbortedSQDeletion
	c.set.Complete(&r.ticket, c.p.Now(), !path)
	if st.IsANA() {
		c.denied(l)
	}
	if !failover(st) || r.cancel || c.closed {
		c.finish(r, st)
		return
	}
	r.slow = true
	l.failovers++
	c.tellFailover(l, st)
	r.status = st
	c.again(r, l, st)
}

// again finds out when r may be sent once more, after path l has failed it.
func (c *Channel) again(r *request, l *link, st nvme.Status) {
	if st.Code() == nvme.StatusCommandAbortedByHost {
		r.tried = 0
		lost := l.q.QueuePair().Association()
		if !r.safe && !c.cold.head.sub.cfg.ghosts && !l.path.member.ctrl.Quiet(lost) {
			r.quiet, r.of = true, lost
			c.park(r)
			return
		}
		c.wait(r)
		return
	}
	// The controller has refused it, or it was never sent.
	if l.usable {
		r.tried |= 1 << l.slot
	}
	if c.untried(r) {
		c.wait(r)
		return
	}
	r.tried = 0
	limit := uint16(refusedRounds)
	switch {
	case l.pending: // it may be let in when the ANA log was read
		limit += uint16(l.path.member.anatt() / time.Second)
	case len(c.set.Candidates()) == 0:
		c.wait(r)
		return
	}
	if r.rounds++; r.rounds > limit {
		c.finish(r, st)
		return
	}
	r.quiet, r.due = false, c.p.Now()+int64(refusedWait)<<min(r.rounds-1, refusedRounds)
	c.park(r)
}

// untried tells whether there is a usable path that has not refused r.
func (c *Channel) untried(r *request) bool {
	for _, slot := range c.set.Candidates() {
		if r.tried>>slot&1 == 0 {
			return true
		}
	}
	return false
}

// finish completes a request that is in no list.
func (c *Channel) finish(r *request, st nvme.Status) {
	done, cdone, arg := r.done, r.cdone, r.arg
	c.put(r)
	switch {
	case done != nil:
		done(arg, st)
	case cdone != nil:
		cdone(arg, &nvme.Completion{StatusPhase: uint16(st) << 1})
	}
}

// pump sends what waits, as far as there are paths, and returns how much was
// done.
func (c *Channel) pump(now int64) int {
	n := 0
	if c.parked.head != nil && (c.look || now >= c.due) {
		n += c.unpark(now)
	}
	for c.waiting.head != nil {
		r := c.waiting.head
		if c.refuse {
			c.waiting.remove(r)
			c.finish(r, c.hopeless(r))
			n++
			continue
		}
		err := c.sendAgain(r, now)
		if errors.Is(err, nvme.ErrQueueFull) || errors.Is(err, errNoPath) {
			break
		}
		n++
		if err != nil {
			c.finish(r, statusOf(err))
		}
	}
	return n
}

// hopeless is what an I/O ends with for which there is no path.
func (c *Channel) hopeless(r *request) nvme.Status {
	if r.status != 0 {
		return r.status
	}
	return nvme.StatusHostPathError
}

// sendAgain sends the first of those that wait. It stays there if the error is
// ErrQueueFull or errNoPath.
func (c *Channel) sendAgain(r *request, now int64) error {
	slot := c.set.Select(now, r.bytes, r.dir)
	if slot < 0 {
		return errNoPath
	}
	c.waiting.remove(r)
	err := error(nvme.ErrNotLive)
	if r.tried>>slot&1 == 0 {
		if err = c.dispatch(r, slot, now); err == nil {
			return nil
		}
		if !c.turnedAway(r, err) {
			return err
		}
	}
	full := errors.Is(err, nvme.ErrQueueFull)
	for _, other := range append([]uint8(nil), c.set.Candidates()...) {
		if int(other) == slot || r.tried>>other&1 != 0 {
			continue
		}
		if err = c.dispatch(r, int(other), now); err == nil {
			return nil
		}
		if !c.turnedAway(r, err) {
			return err
		}
		full = full || errors.Is(err, nvme.ErrQueueFull)
	}
	if !full {
		r.tried = 0
	}
	c.wait(r)
	if full {
		return nvme.ErrQueueFull
	}
	return errNoPath
}

// unpark has those wait for a path that were parked for long enough.
func (c *Channel) unpark(now int64) int {
	n := 0
	c.look, c.due = false, noTime
	for r := c.parked.head; r != nil; {
		next := r.next
		switch {
		case c.refuse:
			// Nothing is waited for: its fate on the lost path stays unknown.
			c.parked.remove(r)
			c.wait(r)
			n++
		case r.quiet && r.path.path.member.ctrl.Quiet(r.of), !r.quiet && now >= r.due:
			c.parked.remove(r)
			c.wait(r)
			n++
		case !r.quiet:
			c.due = min(c.due, r.due)
		}
		r = next
	}
	return n
}

// denied follows an ANA error: the path is not used before the log was read
// again, if the controller has one.
func (c *Channel) denied(l *link) {
	if l.path.member.reportsANA() {
		l.pending = true
		c.refresh(l)
		c.cold.head.sub.reread(l.path)
	}
}

func (c *Channel) tellFailover(l *link, st nvme.Status) {
	if l.told {
		return
	}
	l.told = true
	h := c.cold.head
	h.sub.cfg.Logger.Info("failover", "head", h.name, "path", l.path.name, "status", st.Error())
	if f := h.sub.cfg.Events.Failover; f != nil {
		h.sub.events.post(func() { f(h, l.path, st) })
	}
}

// refresh tells the policy what a path is good for now.
func (c *Channel) refresh(l *link) {
	if c.links[l.slot] != l {
		return
	}
	qp := l.q.QueuePair()
	p := l.seen
	p.Usable = p.Usable && l.live && !l.gone && !l.pending && qp.Association() == l.association
	l.usable = p.Usable && p.State.Accessible()
	if err := c.set.Put(l.slot, p); err != nil {
		c.cold.head.sub.cfg.Logger.Error("path", "head", c.cold.head.name, "path", l.path.name, "error", err)
	}
}

// cancel gives up a request that was submitted with arg.
func (c *Channel) cancel(arg any) {
	for i := range c.cold.all {
		r := &c.cold.all[i]
		if r.state == requestFree || r.arg != arg {
			continue
		}
		r.cancel, r.slow = true, true
		switch r.state {
		case requestWaiting:
			c.waiting.remove(r)
			c.finish(r, nvme.StatusCommandAbortedByHost)
		case requestParked:
			c.parked.remove(r)
			c.finish(r, nvme.StatusCommandAbortedByHost)
		case requestSent:
			r.path.q.QueuePair().Cancel(r)
		}
	}
}

// failAll completes what waits, when the channel is closed.
func (c *Channel) failAll(st nvme.Status) {
	for _, list := range []*requestList{&c.waiting, &c.parked} {
		for list.head != nil {
			r := list.head
			list.remove(r)
			c.finish(r, st)
		}
	}
}

const latencyDirs = 4 // policy.Dirs, rounded up

// enforce that every kind has a row.
var _ [latencyDirs - policy.Dirs]struct{}
