//go:build guest

package interop

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
)

// testKernelNamespaces has namespaces come, change their size and go; the kernel
// notices by itself.
func testKernelNamespaces(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connectAll(t, nvmehost.ConnectConfig{})
	cfg := memory(t, 8)
	cfg.NSID = 7
	n, err := s.sub.AddNamespace(cfg)
	check(t, err)
	for i := range c {
		check(t, c[i].WaitANA(ctx, 7, nvme.ANAOptimized.String()))
	}
	dev := s.device(t, 7)
	s.copyAndCompare(t, dev)
	for _, mib := range []int64{24, 6} {
		check(t, n.Resize(mib<<20))
		check(t, k.g.Until(ctx, fmt.Sprintf("a size of %d MiB", mib), func() (bool, error) {
			got, err := nvmehost.WaitNamespace(ctx, k.g, s.sub.NQN(), 7)
			return got.Bytes == mib<<20, err
		}))
		k.g.Shell(t, fmt.Sprintf("dd if=/tmp/random of=%s bs=64k count=16 seek=%d oflag=direct 2>/dev/null", dev, mib<<4-16))
	}
	n.SetReadOnly(true)
	check(t, k.g.Until(ctx, "write protection", func() (bool, error) {
		ro, err := k.g.ReadAttr(ctx, "/sys/block/"+strings.TrimPrefix(dev, "/dev/")+"/ro")
		return ro == "1", err
	}))
	n.SetReadOnly(false)
	n.Remove()
	for i := range c {
		check(t, c[i].WaitInfo(ctx, "one namespace", func(i nvmehost.ControllerInfo) bool { return len(i.Paths) == 1 }))
	}
	// Another one in the same place is another device.
	cfg = memory(t, 8)
	cfg.NSID, cfg.UUID = 7, [16]byte{1, 2, 3}
	_, err = s.sub.AddNamespace(cfg)
	check(t, err)
	for i := range c {
		check(t, c[i].WaitANA(ctx, 7, nvme.ANAOptimized.String()))
	}
	k.g.Shell(t, "dd if="+s.device(t, 7)+" bs=1M count=8 iflag=direct 2>/dev/null | cmp -n 8388608 - /dev/zero")
}

// testKernelDiscovery has the kernel connect to the discovery service, and hear
// of changes.
func testKernelDiscovery(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connect(t, 1, nvmehost.ConnectConfig{NQN: nvmehost.DiscoveryNQN, KeepAlive: 30e9})
	typ, err := k.g.ReadAttr(ctx, "/sys/class/nvme/"+c.Name+"/cntrltype")
	check(t, err)
	info, err := c.Info(ctx)
	check(t, err)
	if typ != "discovery" || info.QueueCount != 1 || info.State != nvmehost.Live || info.NQN != nvmehost.DiscoveryNQN {
		t.Errorf("controller of type %q: %+v", typ, info)
	}
	if got, want := k.discovered(t, c), s.records(s.sub.NQN()); !slices.Equal(got, want) {
		t.Errorf("discovery log %q, want %q", got, want)
	}
	// A change comes as an event, for which the kernel wakes udev.
	out := &lines{}
	p, err := k.g.Start(ctx, guest.Command{Argv: []string{"uevent", "env"}, Stdout: out})
	check(t, err)
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	eventually(t, "somebody to listen", func() bool {
		check(t, k.g.WriteFile(ctx, "/sys/class/nvme/"+c.Name+"/uevent", "change"))
		return slices.Contains(out.get(), "ACTION=change")
	})
	const another = "nqn.2026-01.io.github.qpoll:another"
	_, err = s.target.AddSubsystem(target.SubsystemConfig{NQN: another})
	check(t, err)
	want := fmt.Sprintf("NVME_AEN=%#x", uint32(nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeDiscoveryLogChange, nvme.LogDiscovery, 0).Result()))
	eventually(t, want, func() bool { return slices.Contains(out.get(), want) })
	check(t, p.Signal(syscall.SIGTERM))
	<-ended
	if got, want := k.discovered(t, c), s.records(s.sub.NQN(), another); !slices.Equal(got, want) {
		t.Errorf("discovery log %q, want %q", got, want)
	}
}

// discovered reads the discovery log through the kernel: subsystems with their
// addresses.
func (k *kernelHost) discovered(t *testing.T, c *nvmehost.Controller) []string {
	t.Helper()
	const most = 16
	n := nvme.DiscoveryHeaderSize + most*1024
	b, err := k.admin(t.Context(), "/dev/"+c.Name, nvme.GetLogPage(nvme.LogDiscovery, 0, n, 0), n)
	check(t, err)
	var h nvme.DiscoveryHeader
	check(t, h.UnmarshalBinary(b))
	size, err := h.Size(most)
	check(t, err)
	var log nvme.DiscoveryLog
	check(t, log.UnmarshalBinary(b[:size]))
	var all []string
	for _, e := range log.Entries {
		nqn, err := e.SubsystemNQN()
		check(t, err)
		if e.SUBTYPE == nvme.SubTypeNVM {
			all = append(all, nqn+" at "+e.TransportAddress()+":"+e.ServiceID())
		}
	}
	return sorted(all)
}

// records returns what the discovery log must have for subsystems at all ports.
func (s *served) records(nqns ...string) []string {
	var all []string
	for _, nqn := range nqns {
		for _, p := range s.ports {
			all = append(all, nqn+" at "+p.Addr().String())
		}
	}
	return sorted(all)
}
