//go:build guest

package interop

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
)

// pathIOs returns how many reads and writes have gone down a controller's path to
// a namespace.
func pathIOs(t *testing.T, k *kernelHost, c *nvmehost.Controller, nsid uint32) int {
	t.Helper()
	info, err := c.Info(t.Context())
	check(t, err)
	i := slices.IndexFunc(info.Paths, func(p nvmehost.Path) bool { return p.NSID == nsid })
	if i < 0 {
		t.Fatalf("no path to namespace %d in %+v", nsid, info)
	}
	stat, err := k.g.ReadAttr(t.Context(), "/sys/class/nvme/"+c.Name+"/"+info.Paths[i].Name+"/stat")
	check(t, err)
	f := strings.Fields(stat)
	reads, err1 := strconv.Atoi(f[0])
	writes, err2 := strconv.Atoi(f[4])
	check(t, errors.Join(err1, err2))
	return reads + writes
}

// testMultipath spreads I/O over two ports by each policy of the kernel.
func testMultipath(t *testing.T, k *kernelHost) {
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	dev := s.device(t, 1)
	for _, p := range []struct {
		policy string
		both   bool // uses both paths
	}{{nvmehost.PolicyRoundRobin, true}, {nvmehost.PolicyQueueDepth, true}, {nvmehost.PolicyNUMA, false}} {
		check(t, nvmehost.SetIOPolicy(t.Context(), k.g, s.sub.NQN(), p.policy))
		var before, after [paths]int
		for i := range c {
			before[i] = pathIOs(t, k, c[i], 1)
		}
		s.parallel(t, dev)
		for i := range c {
			after[i] = pathIOs(t, k, c[i], 1) - before[i]
		}
		t.Logf("%s: %d I/Os", p.policy, after)
		if most, least := max(after[0], after[1]), min(after[0], after[1]); p.both && least < most/10 || !p.both && least > most/10 {
			t.Errorf("%s: %d I/Os went down the paths", p.policy, after)
		}
	}
	s.sameAsHost(t, dev)
}

// testKernelANA changes the state of an ANA group at a port, and then at both,
// under load.
func testKernelANA(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	check(t, nvmehost.SetIOPolicy(ctx, k.g, s.sub.NQN(), nvmehost.PolicyRoundRobin))
	w := k.work(t, s.device(t, 1))
	for _, state := range []nvme.ANAState{
		nvme.ANANonOptimized, nvme.ANAInaccessible, nvme.ANAPersistentLoss, nvme.ANAChange, nvme.ANAOptimized,
	} {
		check(t, s.ports[0].SetANA(1, state))
		check(t, c[0].WaitANA(ctx, 1, state.String()))
		check(t, c[1].WaitANA(ctx, 1, nvme.ANAOptimized.String()))
		w.progress(t) // what was under way has ended
		before := pathIOs(t, k, c[0], 1)
		w.progress(t)
		if n := pathIOs(t, k, c[0], 1) - before; (n > 0) != (state == nvme.ANAOptimized) {
			t.Errorf("%d I/Os went down a path that is %v", n, state)
		}
	}
	// Without any path, I/O waits for one.
	for i, p := range s.ports {
		check(t, p.SetANA(1, nvme.ANAInaccessible))
		check(t, c[i].WaitANA(ctx, 1, nvme.ANAInaccessible.String()))
	}
	check(t, k.g.Until(ctx, "I/O to be requeued", func() (bool, error) {
		res, err := k.g.Run(ctx, "dmesg")
		return err == nil && strings.Contains(string(res.Stdout), "no usable path - requeuing I/O"), err
	}))
	check(t, s.ports[1].SetANA(1, nvme.ANANonOptimized))
	w.progress(t)
	check(t, s.ports[0].SetANA(1, nvme.ANAOptimized))
	w.progress(t)
	w.stop(t)
	// The namespace moves to a group whose states differ.
	check(t, s.ports[0].SetANA(5, nvme.ANANonOptimized))
	check(t, s.sub.Namespace(1).SetANAGroup(5))
	check(t, c[0].WaitInfo(ctx, "group 5", func(i nvmehost.ControllerInfo) bool {
		return i.Paths[0].ANAGroup == 5 && i.Paths[0].ANAState == nvme.ANANonOptimized.String()
	}))
}
