//go:build guest

package interop

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
)

// testDiscovery finds a subsystem at two ports, of which one refers to the other.
func testDiscovery(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, []nvmet.PortConfig{{}, {}}, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4}})
	at := func(p *nvmet.Port, nqn string) string { return fmt.Sprintf("%s at %s", nqn, p.HostAddr()) }
	refer := func(from, to int) {
		p := e.ports[to]
		check(t, e.ports[from].AddReferral(ctx, "other", nvmet.Referral{PortID: p.ID(), Traddr: "127.0.0.1", Trsvcid: p.Trsvcid()}))
	}
	// Referrals in a circle must not be followed for ever.
	refer(0, 1)
	refer(1, 0)
	found, err := nvme.Discover(ctx, address(e.ports[0], ""), config(nvme.Config{}, nil))
	check(t, err)
	var got []string
	for _, d := range found {
		nqn, err := d.Entry.SubsystemNQN()
		check(t, err)
		if d.Entry.SUBTYPE == nvme.SubTypeNVM {
			got = append(got, fmt.Sprintf("%s at %s:%s", nqn, d.Addr.Traddr, d.Addr.Service))
		}
		if d.Entry.TRTYPE != nvme.TRTypeTCP || d.Entry.ADRFAM != nvme.ADRFamIPv4 {
			t.Errorf("entry %+v", d.Entry)
		}
	}
	want := []string{at(e.ports[0], e.sub.NQN()), at(e.ports[1], e.sub.NQN())}
	if slices.Sort(got); !slices.Equal(got, sorted(want)) {
		t.Errorf("found %q, want %q", got, want)
	}
	// What was found can be opened.
	for _, d := range found {
		if d.Entry.SUBTYPE != nvme.SubTypeNVM {
			continue
		}
		c, err := nvme.OpenAddress(ctx, d.Addr, config(nvme.Config{}, nil))
		check(t, err)
		check(t, c.Close(ctx))
	}
	t.Run("Change", func(t *testing.T) { testDiscoveryChange(t, k, e) })
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// testDiscoveryChange stays connected to a discovery controller and is told of
// changes.
func testDiscoveryChange(t *testing.T, k *kernelTarget, e *exported) {
	h := open(t, address(e.ports[0], nvme.DiscoveryNQN), nvme.Config{KeepAlive: 30 * time.Second})
	if !h.Identify().IsDiscovery() {
		t.Errorf("controller type %d", h.Identify().CNTRLTYPE)
	}
	names := func() (all []string) {
		log, err := h.DiscoveryLog(t.Context())
		check(t, err)
		for _, x := range log.Entries {
			if nqn, err := x.SubsystemNQN(); err == nil && x.SUBTYPE == nvme.SubTypeNVM {
				all = append(all, nqn)
			}
		}
		return sorted(all)
	}
	if got := names(); !slices.Equal(got, []string{e.sub.NQN()}) {
		t.Errorf("discovery log %q", got)
	}
	other := k.export(t, nil)
	check(t, e.ports[0].Link(t.Context(), other.sub))
	h.rec.wait(t, "news of the discovery log", func() bool { return h.rec.discover == 1 })
	if got, want := names(), sorted([]string{e.sub.NQN(), other.sub.NQN()}); !slices.Equal(got, want) {
		t.Errorf("discovery log %q, want %q", got, want)
	}
	check(t, e.ports[0].Unlink(t.Context(), other.sub))
	h.rec.wait(t, "news of the discovery log", func() bool { return h.rec.discover == 2 })
	if got := names(); !slices.Equal(got, []string{e.sub.NQN()}) {
		t.Errorf("discovery log %q", got)
	}
}

// testRefused tries what the target does not allow.
func testRefused(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4}})
	refused := func(name, addr string, cfg nvme.Config, want error) {
		t.Helper()
		c, err := nvme.Open(ctx, addr, config(cfg, nil))
		if err == nil {
			c.Close(ctx)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	good := address(e.ports[0], e.sub.NQN())
	refused("alignment of data", good, nvme.Config{Transport: tcp.Config{HPDA: 7}}, tcp.ErrPeerClosed)
	wrong := address(e.ports[0], "nqn.2014-08.org.qpoll:wrong")
	refused("wrong NQN", wrong, nvme.Config{}, nvme.StatusConnectInvalidParameters)
	_, err := nvme.Open(ctx, wrong, config(nvme.Config{}, nil))
	var ce *tcp.ConnectError
	if !errors.As(err, &ce) || !ce.Parameter.InData || ce.Parameter.Offset != 256 {
		t.Errorf("wrong NQN: %v does not name the parameter", err)
	}
	check(t, e.sub.SetAllowAnyHost(ctx, false))
	refused("host not allowed", good, nvme.Config{}, nvme.StatusConnectInvalidHost)
	found, err := nvme.Discover(ctx, address(e.ports[0], ""), config(nvme.Config{}, nil))
	check(t, err)
	for _, d := range found {
		if d.Entry.SUBTYPE == nvme.SubTypeNVM {
			t.Errorf("a host that is not allowed discovers %+v", d)
		}
	}
	check(t, e.sub.AllowHost(ctx, hostNQN))
	h := e.connect(t, 0, nvme.Config{})
	refused("other host", good, nvme.Config{HostNQN: "nqn.2014-08.org.qpoll:host:other"}, nvme.StatusConnectInvalidHost)
	_, err = h.namespace(t, 1).ReadAt(make([]byte, 512), 0)
	check(t, err)
	// A host that is not allowed any more stays until it has to connect again.
	// Trying that once more would be of no use.
	check(t, e.sub.DisallowHost(ctx, hostNQN))
	_, err = h.namespace(t, 1).ReadAt(make([]byte, 512), 0)
	check(t, err)
	check(t, e.ports[0].Stop(ctx))
	h.rec.waitCount(t, nvme.StateConnecting, 1)
	check(t, e.ports[0].Start(ctx))
	h.rec.waitCount(t, nvme.StateDead, 1)
	_, err = h.namespace(t, 1).ReadAt(make([]byte, 512), 0)
	if !errors.Is(err, nvme.ErrDead) || !errors.Is(err, nvme.StatusConnectInvalidHost) {
		t.Errorf("read from a controller that was given up: %v", err)
	}
	check(t, e.ports[0].Stop(ctx))
	refused("nobody listens", good, nvme.Config{}, syscall.ECONNREFUSED)
}
