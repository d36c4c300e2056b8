package mpath

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// scan looks at the namespaces of a live controller and has them join heads or
// leave.
func (m *member) scan() error {
	association := m.ctrl.Association()
	var log *nvme.ANALog
	if m.reportsANA() {
		var err error
		if log, err = m.ctrl.ReadANALog(m.life); err != nil {
			return err
		}
	}
	active, err := m.ctrl.ActiveNamespaces(m.life)
	if err != nil {
		return err
	}
	var found []*nvme.Namespace
	for _, id := range active {
		ns, err := m.ctrl.Namespace(m.life, id)
		switch {
		case err == nil:
			found = append(found, ns)
		case errors.Is(err, nvme.ErrNoNamespace): // just removed
		case m.ctrl.State() != nvme.StateLive || m.life.Err() != nil:
			return err
		default:
			m.conflict(id, err)
		}
	}
	s := m.sub
	s.mu.Lock()
	if m.ctrl.State() != nvme.StateLive || m.ctrl.Association() != association || !m.joined {
		s.mu.Unlock()
		return nil // lost meanwhile; another scan follows
	}
	m.live, m.cause, m.association = true, nil, association
	m.settle(found, log)
	s.mu.Unlock()
	m.endFirst(nil)
	return nil
}

// settle compares what there is with what was. With the lock held.
func (m *member) settle(found []*nvme.Namespace, log *nvme.ANALog) {
	for _, p := range slices.Clone(m.paths) {
		if p.ns.Gone() || !slices.Contains(found, p.ns) {
			p.leave(fmt.Errorf("%w: it left, or is another one now", nvme.ErrNoNamespace))
		}
	}
	for _, ns := range found {
		if ns.Gone() || slices.ContainsFunc(m.paths, func(p *Path) bool { return p.ns == ns }) {
			continue
		}
		if err := m.joinHead(ns, log); err != nil {
			m.conflict(ns.ID(), err)
		}
	}
	m.apply(log)
	for _, p := range m.paths {
		p.head.resize(p.ns)
		for _, c := range p.head.channels {
			if c != nil && !c.cold.ended {
				c.attach()
			}
		}
		p.head.update()
	}
}

// resize takes in the size of a namespace.
func (h *Head) resize(ns *nvme.Namespace) {
	if n := ns.Blocks(); n != 0 {
		h.blocks = n
	}
}

// conflict tells of a namespace that could not join. Without the lock, or with.
func (m *member) conflict(nsid uint32, err error) {
	s := m.sub
	s.cfg.Logger.Error("namespace cannot join", "controller", m.address, "nsid", nsid, "error", err)
	if f := s.cfg.Events.Conflict; f != nil {
		s.events.post(func() { f(s, m.ctrl, nsid, err) })
	}
}

// joinHead makes a namespace a path of the head that stands for it. With the lock
// held.
func (m *member) joinHead(ns *nvme.Namespace, log *nvme.ANALog) error {
	h, err := m.sub.headFor(m, ns)
	if err != nil {
		return err
	}
	slot := 0
	for slices.ContainsFunc(h.paths, func(p *Path) bool { return p.slot == slot }) {
		slot++
	}
	if slot >= policy.MaxPaths {
		return fmt.Errorf("%w paths to %s: %d is the most", ErrPaths, h.name, policy.MaxPaths)
	}
	p := &Path{
		head: h, member: m, ns: ns, slot: slot, weight: policy.DefaultWeight,
		name: fmt.Sprintf("nvme%dc%dn%d", h.number(), m.index, ns.ID()),
	}
	h.paths = append(h.paths, p)
	slices.SortFunc(h.paths, func(a, b *Path) int { return a.slot - b.slot })
	m.paths = append(m.paths, p)
	m.sub.cfg.Logger.Info("path", "head", h.name, "path", p.name, "controller", m.address, "namespace", h.ident.String())
	if f := m.sub.cfg.Events.PathAdded; f != nil {
		m.sub.events.post(func() { f(h, p) })
	}
	return nil
}

// headFor finds the head that a namespace belongs to, or makes one.
func (s *Subsystem) headFor(m *member, ns *nvme.Namespace) (*Head, error) {
	ids := ns.IDs()
	if ids.CSI != nvme.CSINVM {
		return nil, fmt.Errorf("%w: command set %d", nvme.ErrUnsupported, ids.CSI)
	}
	var same *Head
	for _, h := range s.heads {
		switch {
		case h.ident.Same(&ids):
			same = h
		case overlap(&h.ident, &ids):
			return nil, fmt.Errorf("%w: %v shares an identifier with %s (%v), but not all that both have", ErrIdentity, &ids, h.name, &h.ident)
		}
	}
	if same == nil {
		return s.newHead(ns)
	}
	return same, same.admits(m, ns)
}

// admits tells whether a namespace of the head's identity may be a path of it.
func (h *Head) admits(m *member, ns *nvme.Namespace) error {
	switch {
	case len(h.paths) == 0: // all that it was is gone
		h.shared = ns.Shared()
		if int(h.width) != ns.BlockSize() {
			return fmt.Errorf("%w: %s had blocks of %d bytes, and has %d now", ErrIdentity, h.name, h.width, ns.BlockSize())
		}
	case !h.shared || !ns.Shared():
		return fmt.Errorf("%w: %s is private to a controller (NMIC), but %s and %s both have it",
			ErrIdentity, h.ident.String(), h.paths[0].member.address, m.address)
	case slices.ContainsFunc(h.paths, func(p *Path) bool { return p.member == m }):
		return fmt.Errorf("%w: two namespaces of %s are %s", ErrIdentity, m.address, h.ident.String())
	case int(h.width) != ns.BlockSize() || h.paths[0].ns.Blocks() != ns.Blocks() && !h.paths[0].ns.Gone() && h.paths[0].member.live:
		return fmt.Errorf("%w: %s has %d blocks of %d bytes at %s, %d of %d at %s", ErrIdentity, h.ident.String(),
			h.paths[0].ns.Blocks(), h.width, h.paths[0].member.address, ns.Blocks(), ns.BlockSize(), m.address)
	}
	return nil
}

// overlap tells whether two identities have one identifier in common.
func overlap(a, b *nvme.NamespaceIdentity) bool {
	return a.EUI64 == b.EUI64 && a.EUI64 != [8]byte{} || a.NGUID == b.NGUID && a.NGUID != [16]byte{} ||
		a.UUID == b.UUID && a.UUID != [16]byte{}
}

// newHead makes a head for a namespace that none stands for yet. A namespace
// without any identifier has one of its own.
func (s *Subsystem) newHead(ns *nvme.Namespace) (*Head, error) {
	group, err := policy.NewGroup(s.cfg.Channels, s.cfg.PolicyConfig)
	if err != nil {
		return nil, err
	}
	h := &Head{
		sub: s, ident: ns.IDs(), group: group, channels: make([]*Channel, s.cfg.Channels), turn: make(chan struct{}, 1),
		name:   fmt.Sprintf("nvme%dn%d", len(s.heads), ns.ID()),
		shared: ns.Shared() && !identityZero(ns), policy: s.cfg.Policy, removal: max(s.cfg.DelayedRemoval, 0),
		width: uint32(ns.BlockSize()), blocks: ns.Blocks(),
		shift: orDefault(s.cfg.PolicyConfig.LatencyShift, policy.DefaultLatencyShift),
		batch: orDefault(s.cfg.PolicyConfig.LatencyBatch, policy.DefaultLatencyBatch),
	}
	s.heads = append(s.heads, h)
	s.announce()
	if f := s.cfg.Events.HeadAdded; f != nil {
		s.events.post(func() { f(h) })
	}
	return h, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func identityZero(ns *nvme.Namespace) bool {
	ids := ns.IDs()
	return ids.IsZero()
}

// number is the head's, as in its name.
func (h *Head) number() int { return slices.Index(h.sub.heads, h) }

// leave takes a path out of its head. With the lock held.
func (p *Path) leave(why error) {
	h, m := p.head, p.member
	p.removed = true
	if p.changes != nil {
		p.changes.Stop()
		p.changes = nil
	}
	is := func(o *Path) bool { return o == p }
	h.paths = slices.DeleteFunc(h.paths, is)
	m.paths = slices.DeleteFunc(m.paths, is)
	for _, c := range h.channels {
		if c != nil && !c.cold.ended {
			c.detach(p)
		}
	}
	p.up = false
	h.sub.cfg.Logger.Warn("path removed", "head", h.name, "path", p.name, "cause", why)
	if f := h.sub.cfg.Events.PathRemoved; f != nil {
		h.sub.events.post(func() { f(h, p, why) })
	}
	h.update()
}
