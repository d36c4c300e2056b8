package mpath

import (
	"context"
	"errors"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// link is what a channel has of a path: a queue pair, and what it knows. From
// when the channel has it, it belongs to the channel's core, but for path and
// slot, which stay.
type link struct {
	q    *nvme.NamespaceQueue
	path *Path
	slot int

	seen        policy.Path // by the last view
	association uint64      // that seen is about
	log         uint64      // which reading of the ANA log seen is from

	usable  bool // the policy may choose it
	live    bool // the queue pair is
	gone    bool // the namespace has left
	pending bool // an ANA error was met, and the log not read since
	told    bool // of a failover from here

	failovers uint64
	latency   [latencyDirs]Latency
}

// linkState is how far a channel has come with a path; under the subsystem's
// lock.
type linkState struct {
	l      *link
	open   bool // l.q is there
	failed error
}

// openLink opens the queue pair of a path for a channel, once the controller is
// live.
func (c *Channel) openLink(ctx context.Context, p *Path) error {
	l := &link{path: p, slot: p.slot}
	cfg := c.cold.queue
	cfg.Failover = true
	cfg.Notify = func(_ *nvme.QueuePair, live bool) {
		l.live = live
		c.refresh(l)
	}
	q, err := p.ns.Queue(ctx, c.p, cfg)
	s := c.cold.head.sub
	s.mu.Lock()
	state := c.cold.links[p]
	if err == nil && (state == nil || c.cold.ended) {
		s.mu.Unlock() // the path or the channel went meanwhile
		return errors.Join(ErrClosed, q.Close(ctx))
	}
	defer s.mu.Unlock()
	if state == nil {
		return err
	}
	if err != nil {
		state.failed = err
		s.cfg.Logger.Warn("path without a queue", "head", c.cold.head.name, "path", p.name, "poller", c.p.Name(), "error", err)
	} else {
		l.q = q
		state.l, state.open = l, true
	}
	c.cold.head.push()
	return err
}

// attach opens links to paths that have none, or that failed before. It returns
// channels that are closed when those to controllers that are live are open, or
// have failed. With the lock held.
func (c *Channel) attach() []chan struct{} {
	var wait []chan struct{}
	for _, p := range c.cold.head.paths {
		state := c.cold.links[p]
		if state != nil && state.failed == nil {
			continue
		}
		c.cold.links[p] = &linkState{}
		done := make(chan struct{})
		c.cold.opening.Go(func() {
			defer close(done)
			ctx, cancel := context.WithCancel(p.member.life)
			defer cancel()
			defer context.AfterFunc(c.cold.life, cancel)()
			_ = c.openLink(ctx, p)
		})
		if p.member.live {
			wait = append(wait, done)
		}
	}
	return wait
}

// detach takes the links to a path away, and closes their queue pairs when
// nothing is in flight on them any more. With the lock held.
func (c *Channel) detach(p *Path) {
	state := c.cold.links[p]
	delete(c.cold.links, p)
	if state == nil || !state.open {
		return
	}
	c.cold.opening.Go(func() { c.retire(state.l) })
}

// retire closes the queue pair of a link that is not used any more. What is in
// flight ends first: of a lost queue, whose association lives on, nobody could
// say when it is quiet.
func (c *Channel) retire(l *link) {
	qp := l.q.QueuePair()
	for busy := true; busy && c.cold.life.Err() == nil; {
		c.p.CallAnyway(func() { busy = c.links[l.slot] == l || qp.Live() && qp.InFlight() > 0 })
		if busy {
			pause(c.cold.life, retireWait)
		}
	}
	_ = qp.Close(context.Background())
}
