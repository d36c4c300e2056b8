package mpath

import "github.com/qpoll/qpoll/nvme"

// readLog reads the ANA log and takes it in.
func (m *member) readLog() error {
	if !m.reportsANA() {
		return nil
	}
	log, err := m.ctrl.ReadANALog(m.life)
	if err != nil {
		return err
	}
	m.take(log)
	return nil
}

// take takes in an ANA log that was read from the member's controller.
func (m *member) take(log *nvme.ANALog) {
	s := m.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.live || m.association != m.ctrl.Association() {
		return // there will be a scan
	}
	if log.ChangeCount < m.change {
		return // overtaken by a newer one
	}
	m.apply(log)
	for _, p := range m.paths {
		p.head.update()
	}
}

// apply sets the states of all paths from a log. With the lock held.
func (m *member) apply(log *nvme.ANALog) {
	m.logs++
	if log == nil {
		m.change = 0
		for _, p := range m.paths {
			p.setState(nvme.ANAOptimized, 0)
		}
		return
	}
	m.change = log.ChangeCount
	for _, p := range m.paths {
		p.setState(stateIn(log, p.ns))
	}
}

// stateIn finds a namespace in an ANA log. A namespace that is in no group, or in
// one whose state is none, is not accessible: the controller has to say where it
// is.
func stateIn(log *nvme.ANALog, ns *nvme.Namespace) (nvme.ANAState, uint32) {
	for i := range log.Groups {
		g := &log.Groups[i]
		for _, id := range g.NSIDs {
			if id != ns.ID() {
				continue
			}
			if !g.State.Valid() {
				return nvme.ANAInaccessible, g.ID
			}
			return g.State, g.ID
		}
	}
	return nvme.ANAInaccessible, ns.ANAGroup()
}
