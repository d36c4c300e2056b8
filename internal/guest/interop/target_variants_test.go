//go:build guest

package interop

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// testVariants has the kernel work with a target that moves data in other ways
// than usual, and with options of its own.
func testVariants(t *testing.T, k *kernelHost) {
	for _, c := range []struct {
		name  string
		tr    target.Transport
		sub   target.SubsystemConfig
		ns    target.NamespaceConfig
		host  nvmehost.ConnectConfig
		attrs map[string]string // of the request queue
	}{
		{
			name: "SmallPDUs", tr: target.Transport{MaxC2HData: 4096, MaxH2CData: 4096, R2TLength: 12 << 10, InCapsule: -1},
			host: nvmehost.ConnectConfig{HeaderDigest: true, DataDigest: true},
		},
		{
			// With digests the kernel of 6.12 pauses at times before the end of
			// such a capsule.
			name: "LargeCapsules", tr: target.Transport{InCapsule: 64 << 10},
			host: nvmehost.ConnectConfig{DisableSQFlow: true},
		},
		{
			name: "SmallTransfers", sub: target.SubsystemConfig{MaxTransfer: 64 << 10, QueueEntries: 32, IOQueues: 1},
			host:  nvmehost.ConnectConfig{NrIOQueues: 4},
			attrs: map[string]string{"max_hw_sectors_kb": "64"},
		},
		{
			name: "LargeTransfers", sub: target.SubsystemConfig{MaxTransfer: 4 << 20}, ns: target.NamespaceConfig{Boundary: 64},
			host:  nvmehost.ConnectConfig{NrIOQueues: 1, NrPollQueues: 1, NrWriteQueues: 1},
			attrs: map[string]string{"chunk_sectors": "64"},
		},
		{
			name: "LargeBlocks", ns: target.NamespaceConfig{BlockSize: 4096, WriteGranularity: 4},
			attrs: map[string]string{"logical_block_size": "4096", "minimum_io_size": "16384"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.ns.Backend = memory(t, 16).Backend
			c.sub.Namespaces = []target.NamespaceConfig{c.ns}
			s := k.serve(t, c.sub, c.tr)
			s.connect(t, 1, c.host)
			dev := s.device(t, 1)
			for a, want := range c.attrs {
				if got := k.queueAttr(t, dev, a); got != want {
					t.Errorf("%s is %s, want %s", a, got, want)
				}
			}
			if c.ns.BlockSize == 0 {
				w := k.work(t, dev)
				w.progress(t)
				w.stop(t)
			}
			k.g.Shell(t, fmt.Sprintf(`
				dd if=/tmp/random of=%[1]s bs=4M oflag=direct 2>/dev/null
				dd if=%[1]s bs=4M count=1 iflag=direct 2>/dev/null | cmp - /tmp/random
				blkdiscard -o 1M -l 1M %[1]s
				dd if=%[1]s bs=1M skip=1 count=1 iflag=direct 2>/dev/null | cmp -n 1048576 - /dev/zero`, dev))
			if n := s.sub.Stats().Errors; n > 0 {
				t.Errorf("%d commands have failed", n)
			}
		})
	}
}

// testHandshake has the two disagree about how to talk.
func testHandshake(t *testing.T, k *kernelHost) {
	for _, c := range []struct {
		name string
		tr   target.Transport
		host nvmehost.ConnectConfig
	}{
		{"Declined", target.Transport{HeaderDigest: target.DigestDeclined}, nvmehost.ConnectConfig{HeaderDigest: true}},
		{"Alignment", target.Transport{CPDA: 3}, nvmehost.ConnectConfig{}},
		{"Required", target.Transport{DataDigest: target.DigestRequired}, nvmehost.ConnectConfig{}},
	} {
		s := k.serve(t, target.SubsystemConfig{}, c.tr)
		_, err := nvmehost.Connect(t.Context(), k.g, s.options(0, c.host))
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			t.Errorf("%s: %v", c.name, err)
		}
		s.mu.Lock()
		if c.name == "Required" && len(s.terminated) == 0 {
			t.Error("the target has not terminated the connection")
		}
		s.terminated = nil
		s.mu.Unlock()
	}
}

// testManyNamespaces has the kernel find many namespaces, far apart, and follow
// when they come and go faster than it can look.
func testManyNamespaces(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	const many = 12
	cfg := target.SubsystemConfig{MaxNSID: 100_000, MaxNamespaces: 2 * many, ANAGroups: many}
	null := func(i int) target.NamespaceConfig {
		return target.NamespaceConfig{NSID: uint32(1 + i*7919), Backend: backend.NewNull(1 << 30), ANAGroup: uint32(1 + i%many)}
	}
	for i := range many {
		cfg.Namespaces = append(cfg.Namespaces, null(i))
	}
	s := k.serve(t, cfg, target.Transport{})
	c := s.connect(t, 0, nvmehost.ConnectConfig{})
	has := func(want int) {
		t.Helper()
		check(t, c.WaitInfo(ctx, fmt.Sprintf("%d namespaces", want), func(i nvmehost.ControllerInfo) bool {
			return len(i.Paths) == want
		}))
	}
	has(many)
	for _, n := range s.sub.Namespaces()[many/2:] {
		n.Remove()
	}
	for i := many / 2; i < many; i++ {
		_, err := s.sub.AddNamespace(null(i))
		check(t, err)
		check(t, s.ports[0].SetANA(uint32(1+i%many), nvme.ANANonOptimized))
	}
	for _, n := range s.sub.Namespaces()[:3] {
		n.Remove()
	}
	has(many - 3)
	check(t, c.WaitInfo(ctx, "the states", func(i nvmehost.ControllerInfo) bool {
		for _, p := range i.Paths {
			want := nvme.ANAOptimized
			if p.ANAGroup > many/2 {
				want = nvme.ANANonOptimized
			}
			if p.ANAState != want.String() {
				return false
			}
		}
		return true
	}))
	all, err := nvmehost.Namespaces(ctx, k.g, s.sub.NQN())
	check(t, err)
	for _, n := range all {
		if !strings.HasPrefix(n.Device, "/dev/nvme") || n.Bytes != 1<<30 {
			t.Errorf("namespace %+v", n)
		}
	}
}
