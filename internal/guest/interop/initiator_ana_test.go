//go:build guest

package interop

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
)

// testANA changes the states of ANA groups at one of two ports.
func testANA(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, []nvmet.PortConfig{
		{ANA: map[uint32]nvmet.ANAState{1: nvmet.Optimized, 2: nvmet.NonOptimized}},
		{ANA: map[uint32]nvmet.ANAState{1: nvmet.NonOptimized, 2: nvmet.Optimized}},
	}, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4}},
		nvmet.NamespaceConfig{NSID: 2, Backend: nvmet.NullBlk{MiB: 4}, ANAGroup: 2})
	var h [2]*host
	var last [2]uint64
	for i, states := range [][2]nvme.ANAState{{nvme.ANAOptimized, nvme.ANANonOptimized}, {nvme.ANANonOptimized, nvme.ANAOptimized}} {
		h[i] = e.connect(t, i, nvme.Config{})
		log, err := h[i].ReadANALog(ctx)
		check(t, err)
		if s1, n1 := group(log, 1); s1 != states[0] || !slices.Equal(n1, []uint32{1}) {
			t.Errorf("port %d, group 1: %v, namespaces %v", i, s1, n1)
		}
		if s2, n2 := group(log, 2); s2 != states[1] || !slices.Equal(n2, []uint32{2}) {
			t.Errorf("port %d, group 2: %v, namespaces %v", i, s2, n2)
		}
		if g := h[i].namespace(t, 2).ANAGroup(); g != 2 {
			t.Errorf("namespace 2 is in group %d", g)
		}
		last[i] = log.ChangeCount
	}
	b := make([]byte, 4096)
	for _, c := range []struct {
		set  nvmet.ANAState
		see  nvme.ANAState
		want error
	}{
		{nvmet.Inaccessible, nvme.ANAInaccessible, nvme.StatusANAInaccessible},
		{nvmet.Change, nvme.ANAChange, nvme.StatusANATransition},
		{nvmet.NonOptimized, nvme.ANANonOptimized, nil},
		{nvmet.PersistentLoss, nvme.ANAPersistentLoss, nvme.StatusANAPersistentLoss},
		{nvmet.Optimized, nvme.ANAOptimized, nil},
	} {
		check(t, e.ports[0].SetANA(ctx, 1, c.set))
		h[0].waitANA(t, 1, c.see)
		log, err := h[0].ReadANALog(ctx)
		check(t, err)
		if s, _ := group(log, 1); s != c.see || log.ChangeCount <= last[0] {
			t.Errorf("ANA log after %s: %+v, change count was %d", c.set, log, last[0])
		}
		last[0] = log.ChangeCount
		_, err = h[0].namespace(t, 1).ReadAt(b, 0)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("read in state %s: %v, want %v", c.set, err, c.want)
		}
		_, err = h[0].namespace(t, 1).WriteAt(b, 0)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("write in state %s: %v, want %v", c.set, err, c.want)
		}
		// Neither the other group nor the other port is concerned.
		_, err = h[0].namespace(t, 2).WriteAt(b, 0)
		check(t, err)
		_, err = h[1].namespace(t, 1).ReadAt(b, 0)
		check(t, err)
	}
	// The namespace moves from a group that is optimized here to one that is not.
	check(t, e.ns[0].SetANAGroup(ctx, 2))
	h[0].rec.wait(t, "news of the move", func() bool {
		_, ns := group(h[0].rec.ana[len(h[0].rec.ana)-1], 2)
		return slices.Equal(ns, []uint32{1, 2})
	})
	if g := h[0].namespace(t, 1).ANAGroup(); g != 2 {
		t.Errorf("namespace 1 is in group %d", g)
	}
	if n := h[0].rec.count(nvme.StateLive); n != 1 {
		t.Errorf("the connection was lost: live %d times", n)
	}
}

// group returns the state and the namespaces of an ANA group.
func group(log *nvme.ANALog, id uint32) (nvme.ANAState, []uint32) {
	for _, g := range log.Groups {
		if g.ID == id {
			return g.State, g.NSIDs
		}
	}
	return 0, nil
}

// waitANA waits until an event has brought the news of a state.
func (h *host) waitANA(t *testing.T, id uint32, want nvme.ANAState) {
	t.Helper()
	h.rec.wait(t, fmt.Sprintf("news of group %d being %v", id, want), func() bool {
		if len(h.rec.ana) == 0 {
			return false
		}
		s, _ := group(h.rec.ana[len(h.rec.ana)-1], id)
		return s == want
	})
}
