package mpath

import (
	"fmt"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// Path is a way to the namespace of a head: a controller, and the namespace as
// that has it. Any goroutine.
type Path struct {
	head   *Head
	member *member
	ns     *nvme.Namespace
	slot   int
	name   string

	// Under the subsystem's lock.
	state   nvme.ANAState
	group   uint32
	weight  int
	changes *time.Timer // runs while the state is change: ANATT
	expired bool        // and was for too long
	removed bool
	up      bool // by what was told last
}

// Name names the path as Linux does, such as "nvme0c1n1": head, controller and
// NSID there.
func (p *Path) Name() string { return p.name }

// Head returns the head that the path leads to.
func (p *Path) Head() *Head { return p.head }

// Controller returns the path's controller.
func (p *Path) Controller() *nvme.Controller { return p.member.ctrl }

// Namespace returns the namespace as the controller has it.
func (p *Path) Namespace() *nvme.Namespace { return p.ns }

// ANA returns the ANA state of the namespace by this path, and its ANA group; 0
// where the controller does not report any, and the state is optimized then.
func (p *Path) ANA() (nvme.ANAState, uint32) {
	p.head.sub.mu.Lock()
	defer p.head.sub.mu.Unlock()
	return p.state, p.group
}

// Usable tells whether the path takes I/O: the controller is live, the namespace
// was looked at since, and the ANA state allows it.
func (p *Path) Usable() bool {
	p.head.sub.mu.Lock()
	defer p.head.sub.mu.Unlock()
	return p.usable()
}

func (p *Path) usable() bool {
	return p.member.live && !p.removed && !p.expired && p.state.Accessible()
}

// mayCome tells whether the path is usable or may become so by itself.
func (p *Path) mayCome() bool {
	return !p.removed && !p.expired && p.state != nvme.ANAPersistentLoss
}

// RelativeThroughput returns the weight of the path for the service-time policy.
func (p *Path) RelativeThroughput() int {
	p.head.sub.mu.Lock()
	defer p.head.sub.mu.Unlock()
	return p.weight
}

// SetRelativeThroughput sets the weight of the path for the service-time policy,
// 0 to policy.MaxWeight; 0 makes it a standby path. It is accepted under any
// policy. The error wraps policy.ErrWeight.
func (p *Path) SetRelativeThroughput(n int) error {
	if n < 0 || n > policy.MaxWeight {
		return fmt.Errorf("mpath: %s: relative_throughput %d: %w", p.name, n, policy.ErrWeight)
	}
	p.head.sub.mu.Lock()
	defer p.head.sub.mu.Unlock()
	p.weight = n
	p.head.push()
	return nil
}

// downCause says why a path is not usable. With the lock held.
func (p *Path) downCause() error {
	switch {
	case !p.member.live:
		if p.member.cause != nil {
			return p.member.cause
		}
		return fmt.Errorf("%w: %s", nvme.ErrNotLive, p.member.ctrl.State())
	case p.expired:
		return ErrANATT
	}
	return fmt.Errorf("mpath: ANA state %v", p.state)
}

// setState takes in the ANA state and group of a path. With the lock held.
func (p *Path) setState(state nvme.ANAState, group uint32) {
	from := p.state
	p.state, p.group = state, group
	if state == from {
		return
	}
	if p.changes != nil {
		p.changes.Stop()
		p.changes = nil
	}
	p.expired = false
	if state == nvme.ANAChange {
		p.watch()
	}
	s := p.head.sub
	s.cfg.Logger.Info("ANA state", "head", p.head.name, "path", p.name, "from", from.String(), "to", state.String())
	if f := s.cfg.Events.ANAChange; f != nil {
		s.events.post(func() { f(p.head, p, from, state) })
	}
}

// watch has a path fail that stays in the change state for longer than ANATT.
func (p *Path) watch() {
	s := p.head.sub
	var t *time.Timer
	t = time.AfterFunc(p.member.anatt(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.changes != t {
			return
		}
		p.expired = true
		p.head.update()
	})
	p.changes = t
}

// tell tells the listener when a path begins or ceases to be usable. With the
// lock held.
func (p *Path) tell() {
	up := p.usable()
	if up == p.up {
		return
	}
	p.up = up
	s, h := p.head.sub, p.head
	if up {
		if f := s.cfg.Events.PathUp; f != nil {
			s.events.post(func() { f(h, p) })
		}
		return
	}
	err := p.downCause()
	s.cfg.Logger.Warn("path down", "head", h.name, "path", p.name, "cause", err)
	if f := s.cfg.Events.PathDown; f != nil {
		s.events.post(func() { f(h, p, err) })
	}
}
