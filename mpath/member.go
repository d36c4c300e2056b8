package mpath

import (
	"context"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// member is a controller of a subsystem, and what is known of its namespaces. A
// goroutine of its own looks at them when something has changed.
type member struct {
	sub     *Subsystem
	address string
	ctrl    *nvme.Controller // set before it joins
	life    context.Context  // ends with the member
	end     context.CancelFunc
	tasks   chan struct{} // holds one: there is something to look at
	scanned chan struct{} // closed after the first scan

	// Under the subsystem's lock.
	joined      bool
	index       int
	node        int
	live        bool   // and its namespaces were looked at
	association uint64 // in which they were
	logs        uint64 // counts the ANA logs that were taken in
	change      uint64 // change count of the last one
	cause       error  // why it is not live
	rescan      bool   // look at namespaces and the ANA log
	reread      bool   // read the ANA log
	first       error
	paths       []*Path
}

const (
	scanRetry    = 100 * time.Millisecond
	defaultANATT = 10 * time.Second
)

func newMember(s *Subsystem, address string) *member {
	m := &member{sub: s, address: address, node: -1, tasks: make(chan struct{}, 1), scanned: make(chan struct{}), rescan: true}
	m.life, m.end = context.WithCancel(s.life)
	return m
}

// config is how the controller is opened: as the user wants it, but its events
// come here first.
func (m *member) config() *nvme.Config {
	cfg := *m.sub.cfg.Controller
	var ev nvme.Events
	if cfg.Events != nil {
		ev = *cfg.Events
	}
	user := ev
	ev.State = func(c *nvme.Controller, from, to nvme.State, err error) {
		m.stateChanged(c, to, err)
		if user.State != nil {
			user.State(c, from, to, err)
		}
	}
	ev.NamespacesChanged = func(c *nvme.Controller, nsids []uint32) {
		m.ask(true)
		if user.NamespacesChanged != nil {
			user.NamespacesChanged(c, nsids)
		}
	}
	ev.ANAChanged = func(c *nvme.Controller, log *nvme.ANALog) {
		m.take(log)
		if user.ANAChanged != nil {
			user.ANAChanged(c, log)
		}
	}
	ev.Quiet = func(c *nvme.Controller, association uint64) {
		m.sub.quiet()
		if user.Quiet != nil {
			user.Quiet(c, association)
		}
	}
	cfg.Events = &ev
	return &cfg
}

// quiet has all channels look at what they have parked.
func (s *Subsystem) quiet() {
	for _, h := range s.Heads() {
		for _, c := range h.open() {
			postLater(c.p, func() { c.look = true })
		}
	}
}

// ask has the member's goroutine look at namespaces, or only at the ANA log.
func (m *member) ask(all bool) {
	m.sub.mu.Lock()
	m.rescan = m.rescan || all
	m.reread = true
	m.sub.mu.Unlock()
	select {
	case m.tasks <- struct{}{}:
	default: // there is something to look at already
	}
}

// wake and reread are for channels, on whose cores no lock is taken that anybody
// waits with.
func (s *Subsystem) wake(p *Path)   { go p.member.ask(true) }
func (s *Subsystem) reread(p *Path) { go p.member.ask(false) }

func (m *member) stateChanged(c *nvme.Controller, to nvme.State, err error) {
	if to == nvme.StateLive {
		m.ask(true)
		return
	}
	s := m.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.live || m.cause == nil {
		m.cause = err
	}
	m.live = false
	if to == nvme.StateDead {
		m.leave(fmt.Errorf("%w: %w", nvme.ErrDead, cause(err)))
		return
	}
	for _, p := range m.paths {
		p.head.update()
	}
}

func cause(err error) error {
	if err == nil {
		return ErrClosed
	}
	return err
}

// work is the member's goroutine.
func (m *member) work() {
	m.ask(true)
	for {
		select {
		case <-m.life.Done():
			return
		case <-m.tasks:
		}
		m.sub.mu.Lock()
		all, log := m.rescan, m.reread
		m.rescan, m.reread = false, false
		m.sub.mu.Unlock()
		var err error
		switch {
		case m.ctrl.State() != nvme.StateLive:
			continue // it will be asked again
		case all:
			err = m.scan()
		case log:
			err = m.readLog()
		}
		if err != nil && m.life.Err() == nil {
			m.sub.cfg.Logger.Warn("look at namespaces", "controller", m.address, "error", err)
			m.failedScan(err)
			pause(m.life, scanRetry)
			m.ask(all)
		}
	}
}

// firstScan waits until the namespaces have been looked at once.
func (m *member) firstScan(ctx context.Context) error {
	select {
	case <-m.scanned:
		m.sub.mu.Lock()
		defer m.sub.mu.Unlock()
		return m.first
	case <-m.life.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("mpath: %s: look at namespaces: %w", m.address, context.Cause(ctx))
	}
}

func (m *member) failedScan(err error) {
	if m.ctrl.State() != nvme.StateLive {
		return // lost meanwhile; it comes back
	}
	m.endFirst(err)
}

func (m *member) endFirst(err error) {
	m.sub.mu.Lock()
	defer m.sub.mu.Unlock()
	select {
	case <-m.scanned:
	default:
		m.first = err
		close(m.scanned)
		m.sub.announce()
	}
}

// leave takes all paths of the member out of their heads. With the lock held.
func (m *member) leave(why error) {
	m.live = false
	m.joined = false
	for len(m.paths) > 0 {
		m.paths[0].leave(why)
	}
}

func (m *member) reportsANA() bool { return m.ctrl.Identify().ReportsANA() }

// anatt returns how long the controller takes for a change of ANA states.
func (m *member) anatt() time.Duration {
	if d := m.ctrl.Identify().ANATransitionTime(); d > 0 {
		return d
	}
	return defaultANATT
}
