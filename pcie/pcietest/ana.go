package pcietest

import (
	"github.com/qpoll/qpoll/nvme"
)

// anaStates are the states of the ANA groups; those not named are optimized.
type anaStates struct {
	states  map[uint32]nvme.ANAState
	changes uint64
}

func (a *anaStates) state(group uint32) nvme.ANAState {
	if s, ok := a.states[group]; ok {
		return s
	}
	return nvme.ANAOptimized
}

// SetANA changes the state of an ANA group, 1 to 32. Hosts that have asked for
// it are told. It is for a Config with ANA.
func (c *Controller) SetANA(group uint32, s nvme.ANAState) error {
	if group == 0 || group > anaGroups || !s.Valid() || !c.cfg.ANA {
		return bad("ANA group %d in state %v", group, s)
	}
	c.lock()
	defer c.unlock()
	a := &c.ana
	if a.state(group) == s {
		return nil
	}
	if a.states == nil {
		a.states = map[uint32]nvme.ANAState{}
	}
	a.states[group] = s
	a.changes++
	c.touch(func() { c.raise(nvme.AsyncNotice, nvme.NoticeANAChange, nvme.LogANA) })
	c.interrupts()
	return nil
}

// anaStatus is what commands to a namespace fail with for its state.
func (c *Controller) anaStatus(n *namespace) nvme.Status {
	if !c.cfg.ANA {
		return 0
	}
	switch c.ana.state(n.cfg.ANAGroup) {
	case nvme.ANAInaccessible:
		return nvme.StatusANAInaccessible
	case nvme.ANAPersistentLoss:
		return nvme.StatusANAPersistentLoss
	case nvme.ANAChange:
		return nvme.StatusANATransition
	}
	return 0
}

// anaLog is the Asymmetric Namespace Access log page.
func (c *Controller) anaLog(groupsOnly bool) ([]byte, error) {
	l := nvme.ANALog{ChangeCount: c.ana.changes}
	for id := uint32(1); id <= anaGroups; id++ {
		g := nvme.ANAGroup{ID: id, ChangeCount: c.ana.changes, State: c.ana.state(id)}
		found := false
		for _, n := range c.spaces {
			if n.attached && n.cfg.ANAGroup == id {
				found = true
				if !groupsOnly {
					g.NSIDs = append(g.NSIDs, n.nsid)
				}
			}
		}
		if found {
			l.Groups = append(l.Groups, g)
		}
	}
	return l.AppendBinary(nil)
}
