//go:build guest

package nvmet_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
)

// bootTwo boots a target and an initiator at the same time.
func bootTwo(t *testing.T) (tgtGuest, iniGuest *guest.Guest) {
	cfgs := []guest.Config{
		{Name: "target", NICs: 2, Modules: nvmet.Modules},
		{Name: "initiator", NICs: 2, Modules: nvmehost.Modules},
	}
	gs := make([]*guest.Guest, len(cfgs))
	var wg sync.WaitGroup
	for i, c := range cfgs {
		wg.Go(func() {
			var err error
			if gs[i], err = guest.Start(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, g := range gs {
		if g != nil {
			g.CloseWith(t)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return gs[0], gs[1]
}

// TestTwoGuests has the kernel of one guest reach that of another on two paths,
// through ports of the host, and cuts one of them.
func TestTwoGuests(t *testing.T) {
	ctx := t.Context()
	tg, ig := bootTwo(t)
	tgt, err := nvmet.Start(ctx, tg)
	check(t, err)
	sub, err := tgt.AddSubsystem(ctx, nvmet.SubsystemConfig{
		NQN:        nqnA,
		Namespaces: []nvmet.NamespaceConfig{{NSID: 1, Backend: nvmet.NullBlk{MiB: 32}, UUID: uuid1}},
	})
	check(t, err)
	var ctrl [2]*nvmehost.Controller
	var ports [2]*nvmet.Port
	for i := range ctrl {
		ports[i], err = tgt.AddPort(ctx, nvmet.PortConfig{NIC: i, Subsystems: []*nvmet.Subsystem{sub}})
		check(t, err)
		ctrl[i], err = nvmehost.Connect(ctx, ig, nvmehost.ConnectConfig{
			NQN: nqnA, Traddr: guest.HostAddr(i), Trsvcid: ports[i].Trsvcid(), HostNQN: hostA, HostID: uuid1,
			NrIOQueues: 1, KeepAlive: 2 * time.Second, ReconnectDelay: time.Second, CtrlLoss: nvmehost.Forever,
			DataDigest: i == 0,
		})
		check(t, err)
	}
	check(t, nvmehost.SetIOPolicy(ctx, ig, nqnA, nvmehost.PolicyRoundRobin))
	n, err := nvmehost.WaitNamespace(ctx, ig, nqnA, 1)
	check(t, err)
	check(t, ctrl[1].WaitANA(ctx, 1, string(nvmet.Optimized)))
	copyAndCompare := `
		dd if=/dev/urandom of=/tmp/x bs=64k count=16 2>/dev/null
		dd if=/tmp/x of=` + n.Device + ` bs=64k count=16 oflag=direct 2>/dev/null
		dd if=` + n.Device + ` bs=32k count=32 iflag=direct 2>/dev/null | cmp - /tmp/x
		md5sum </tmp/x`
	sum := ig.Shell(t, copyAndCompare)
	if got := tg.Shell(t, "dd if=/dev/qpoll1 bs=64k count=16 2>/dev/null | md5sum"); got != sum {
		t.Errorf("the target has %s, the initiator wrote %s", got, sum)
	}
	check(t, ports[1].AddReferral(ctx, "elsewhere", nvmet.Referral{PortID: 9, Traddr: "127.0.0.9", Trsvcid: 8009}))
	testDiscovery(t, ports[0], "")
	testDiscovery(t, ports[1], nvmehost.DiscoveryNQN+" at 127.0.0.9:8009")
	check(t, ports[1].RemoveReferral(ctx, "elsewhere"))
	testDiscovery(t, ports[1], "")
	// Without its link, a path goes when its keep-alive time is over, and
	// I/O goes the other way.
	check(t, ig.SetLink(ctx, 1, false))
	check(t, ctrl[1].WaitState(ctx, nvmehost.Connecting))
	ig.Shell(t, copyAndCompare)
	check(t, ig.SetLink(ctx, 1, true))
	check(t, ctrl[1].WaitState(ctx, nvmehost.Live))
	// So does a target that ends.
	check(t, ports[0].Stop(ctx))
	check(t, ctrl[0].WaitState(ctx, nvmehost.Connecting))
	ig.Shell(t, copyAndCompare)
	check(t, ports[0].Start(ctx))
	check(t, ctrl[0].WaitState(ctx, nvmehost.Live))
}

// testDiscovery checks that the discovery log has the port at the address at
// which the host reaches it, besides the service itself and a referral.
func testDiscovery(t *testing.T, p *nvmet.Port, referral string) {
	t.Helper()
	log, err := discoveryLog(p.HostAddr())
	check(t, err)
	at := " at 127.0.0.1:" + strconv.Itoa(p.Trsvcid())
	want := []string{nqnA + at, nvmehost.DiscoveryNQN + at}
	if referral != "" {
		want = append(want, referral)
	}
	slices.Sort(log)
	slices.Sort(want)
	if !slices.Equal(log, want) {
		t.Errorf("discovery at %s: got %q, want %q", p.HostAddr(), log, want)
	}
}
