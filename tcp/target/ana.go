package target

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// state returns the state of an ANA group at the port. The caller holds the
// target's lock.
func (p *Port) state(group uint32) nvme.ANAState {
	if s, ok := p.states[group]; ok {
		return s
	}
	return nvme.ANAOptimized
}

// SetANA changes the state of an ANA group at the port, for all subsystems that
// report ANA. Hosts that are connected there are told. Commands that have
// arrived are still executed.
func (p *Port) SetANA(group uint32, s nvme.ANAState) error {
	if group == 0 || !s.Valid() {
		return bad("ANA group %d in state %v", group, s)
	}
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.state(group) == s {
		return nil
	}
	p.states[group] = s
	for _, sub := range t.subsystems {
		if !sub.cfg.NoANA && p.serves(sub) {
			sub.anaChanges++
			sub.changed()
			sub.anaChanged(p)
		}
	}
	return nil
}

// ANA returns the state of an ANA group at the port.
func (p *Port) ANA(group uint32) nvme.ANAState {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	return p.state(group)
}

// groups returns the ANA groups that have namespaces, with these, by rising
// identifier.
func (s *Subsystem) groups() []nvme.ANAGroup {
	var list []nvme.ANAGroup
	for _, n := range s.namespaces {
		at, ok := slices.BinarySearchFunc(list, n.cfg.ANAGroup, func(g nvme.ANAGroup, id uint32) int { return int(g.ID) - int(id) })
		if !ok {
			list = slices.Insert(list, at, nvme.ANAGroup{ID: n.cfg.ANAGroup})
		}
		list[at].NSIDs = append(list[at].NSIDs, n.nsid)
	}
	return list
}

// anaLog is the Asymmetric Namespace Access log page for the controllers at a
// port.
func (s *Subsystem) anaLog(p *Port, groupsOnly bool) []byte {
	log := nvme.ANALog{ChangeCount: s.anaChanges, Groups: s.groups()}
	for i := range log.Groups {
		g := &log.Groups[i]
		g.State, g.ChangeCount = p.state(g.ID), s.anaChanges
		if groupsOnly {
			g.NSIDs = nil
		}
	}
	b, err := log.AppendBinary(nil)
	if err != nil {
		return nil // more groups than SubsystemConfig.ANAGroups allows
	}
	return b
}
