//go:build guest

package interop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// TestTarget runs the kernel's initiator against our target.
func TestTarget(t *testing.T) {
	k := &kernelHost{g: guest.Boot(t, guest.Config{
		NICs: paths, Modules: nvmehost.Modules, MemoryMiB: 768,
		Files: map[string]string{guestioPath: guest.Build(t, "github.com/qpoll/qpoll/internal/guest/interop/guestio")},
	})}
	k.g.Shell(t, "dd if=/dev/urandom of=/tmp/random bs=1M count=4 2>/dev/null")
	quiet(t, k.g, expected{})
	idle := k.idle(t)
	lossy := expected{loss: true}
	for _, c := range []struct {
		name     string
		run      func(*testing.T, *kernelHost)
		expected expected
	}{
		{"Connect", testKernelConnect, expected{}},
		{"Discovery", testKernelDiscovery, expected{}},
		{"Data", testKernelData, expected{}},
		{"FileSystem", testFileSystem, expected{}},
		{"File", testFileBackend, expected{}},
		{"Discard", testDiscard, expected{}},
		{"Admin", testKernelAdmin, expected{notes: []string{`^nvme\d+: .*(Invalid|DNR)`}}},
		{"Variants", testVariants, expected{notes: []string{`queue_size 128 > ctrl sqsize 32, clamping down`}}},
		{"Handshake", testHandshake, expected{notes: []string{
			`digest`, `unsupported cpda`, `failed to connect queue`, `bad type returned 3$`,
		}}},
		{"ManyNamespaces", testManyNamespaces, expected{}},
		{"Multipath", testMultipath, expected{}},
		{"ANA", testKernelANA, lossy},
		{"Namespaces", testKernelNamespaces, expected{}},
		{"Failover", testFailover, lossy},
		{"Cuts", testKernelCuts, lossy},
		{"Restart", testKernelRestart, lossy},
		{"Reset", testKernelReset, lossy},
		{"Stall", testKernelStall, lossy},
		{"Link", testKernelLink, lossy},
		{"Refused", testKernelRefused, expected{notes: []string{
			`Connect Invalid Data Parameter, subsysnqn "nqn.2014-08.org.qpoll:wrong"`,
			`Connect for subsystem \S+ is not allowed, hostnqn: `, `failed to connect queue: 0 ret=`,
		}}},
		{"KeepAlive", idle, expected{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer quiet(t, k.g, c.expected)
			c.run(t, k)
		})
	}
}

// paths is the number of interfaces of the guest, and of ports of each target,
// which are reached through them.
const paths = 2

// kernelHost is a guest whose kernel is the initiator.
type kernelHost struct {
	g    *guest.Guest
	made int // targets
}

// served is a target of ours with one subsystem.
type served struct {
	k      *kernelHost
	target *target.Target
	sub    *target.Subsystem
	ports  []*target.Port

	mu         sync.Mutex
	terminated []error
	refused    []error
	ended      []error // why queues were disconnected
}

// serve starts a target with a subsystem, whose name is filled in, on two ports.
func (k *kernelHost) serve(t *testing.T, cfg target.SubsystemConfig, transport target.Transport) *served {
	t.Helper()
	k.made++
	s := &served{k: k}
	cfg.NQN = fmt.Sprintf("nqn.2026-01.io.github.qpoll:interop%d", k.made)
	locked := func(list *[]error, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		*list = append(*list, err)
	}
	var err error
	s.target, err = target.New(target.Config{
		Subsystems: []target.SubsystemConfig{cfg},
		Ports:      make([]target.PortConfig, paths),
		Transport:  transport,
		Events: &target.Events{
			Refuse:     func(_ netip.AddrPort, err error) { locked(&s.refused, err) },
			Terminate:  func(_ netip.AddrPort, err error) { locked(&s.terminated, err) },
			Disconnect: func(_ *target.Subsystem, _, _ uint16, err error) { locked(&s.ended, err) },
		},
	})
	check(t, err)
	check(t, s.target.Start(newPoller(t, "target0"), newPoller(t, "target1")))
	t.Cleanup(func() {
		check(t, s.target.Close())
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.terminated) > 0 {
			t.Errorf("the target has terminated connections: %v", s.terminated)
		}
	})
	s.sub, s.ports = s.target.Subsystem(""), s.target.Ports()
	return s
}

// memory is a namespace of so many MiB.
func memory(t *testing.T, mib int64) target.NamespaceConfig {
	t.Helper()
	m, err := backend.NewMemory(backend.MemoryConfig{Size: mib << 20, MaxSize: 64 << 20})
	check(t, err)
	return target.NamespaceConfig{Backend: m}
}

// simple starts a target with one namespace of memory.
func (k *kernelHost) simple(t *testing.T) *served {
	t.Helper()
	return k.serve(t, target.SubsystemConfig{Namespaces: []target.NamespaceConfig{memory(t, 16)}}, target.Transport{})
}

// options completes what the kernel is told to connect to a port.
func (s *served) options(port int, c nvmehost.ConnectConfig) nvmehost.ConnectConfig {
	if c.NQN == "" {
		c.NQN = s.sub.NQN()
	}
	c.Traddr, c.Trsvcid = guest.HostAddr(port), int(s.ports[port].Addr().Port())
	c.HostNQN, c.HostID = hostNQN, hostID
	if c.NrIOQueues == 0 {
		c.NrIOQueues = 2
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = time.Minute // a busy machine
	}
	if c.ReconnectDelay == 0 {
		c.ReconnectDelay = time.Second
	}
	if c.CtrlLoss == 0 {
		c.CtrlLoss = 10 * time.Minute
	}
	return c
}

// connect has the kernel connect to a port, and disconnect in the end.
func (s *served) connect(t *testing.T, port int, c nvmehost.ConnectConfig) *nvmehost.Controller {
	t.Helper()
	ctrl, err := nvmehost.Connect(t.Context(), s.k.g, s.options(port, c))
	check(t, err)
	t.Cleanup(func() {
		err := ctrl.Disconnect(context.Background())
		if err != nil && !errors.Is(err, nvmehost.ErrNoController) {
			t.Errorf("disconnect %s: %v", ctrl.Name, err)
		}
	})
	return ctrl
}

// connectAll connects to all ports and waits until all paths to namespace 1 are
// there.
func (s *served) connectAll(t *testing.T, c nvmehost.ConnectConfig) []*nvmehost.Controller {
	t.Helper()
	var all []*nvmehost.Controller
	for port := range s.ports {
		all = append(all, s.connect(t, port, c))
	}
	for _, c := range all {
		check(t, c.WaitANA(t.Context(), 1, nvme.ANAOptimized.String()))
	}
	return all
}

// device waits for a namespace in the guest and returns its block device.
func (s *served) device(t *testing.T, nsid uint32) string {
	t.Helper()
	n, err := nvmehost.WaitNamespace(t.Context(), s.k.g, s.sub.NQN(), nsid)
	check(t, err)
	return n.Device
}

// copyAndCompare writes random data to the beginning of a device in blocks of
// several sizes, past the page cache and through it, and compares what can be
// read.
func (s *served) copyAndCompare(t *testing.T, dev string) {
	t.Helper()
	s.k.g.Shell(t, "dev="+dev+`
		try() { # count, block sizes to write and to read
			dd if=/tmp/random of=$dev bs=$2 count=$1 skip=$3 oflag=direct 2>/dev/null
			dd if=/tmp/random bs=$2 count=$1 skip=$3 2>/dev/null >/tmp/want
			dd if=$dev bs=$2 count=$1 iflag=direct 2>/dev/null | cmp - /tmp/want
		}
		try 40 512 3
		try 30 4096 5
		try 12 12288 7
		try 12 66048 9
		try 3 1048576 1
		dd if=/tmp/random of=$dev bs=64k conv=fsync 2>/dev/null
		dd if=$dev bs=1M count=4 iflag=direct 2>/dev/null | cmp - /tmp/random`)
}
