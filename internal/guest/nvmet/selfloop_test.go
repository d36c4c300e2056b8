//go:build guest

package nvmet_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
)

const (
	nqnA  = "nqn.2014-08.org.qpoll:a"
	hostA = "nqn.2014-08.org.nvmexpress:uuid:8c4a1f4e-6a0c-4f6c-9d5e-0d6a5c3b2a10"
	uuid1 = "6a2f5d3c-91c4-4e7e-8f0e-5b1f3c7d9e21"
	guid1 = "00112233-4455-6677-8899-aabbccddeeff"
)

// loop is a guest whose kernel is target and initiator at once.
type loop struct {
	g     *guest.Guest
	tgt   *nvmet.Target
	sub   *nvmet.Subsystem
	ports [2]*nvmet.Port
	ctrl  [2]*nvmehost.Controller
}

// check fails the test for an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLoop(t *testing.T) *loop {
	ctx := t.Context()
	l := &loop{g: guest.Boot(t, guest.Config{MemoryMiB: 768, Modules: append(nvmehost.Modules, nvmet.Modules...)})}
	var err error
	l.tgt, err = nvmet.Start(ctx, l.g)
	check(t, err)
	check(t, l.tgt.LoadRAMDisks(ctx, 1, 16))
	l.sub, err = l.tgt.AddSubsystem(ctx, nvmet.SubsystemConfig{
		NQN: nqnA, Serial: "SN0042", Model: "qpoll test model", CntlidMin: 100, CntlidMax: 120,
		Namespaces: []nvmet.NamespaceConfig{
			{NSID: 1, Backend: nvmet.NullBlk{MiB: 32, BlockSize: 4096}, UUID: uuid1, NGUID: guid1},
			{NSID: 2, Backend: nvmet.Loop{MiB: 16}, ANAGroup: 2},
			{NSID: 3, Backend: nvmet.RAMDisk{Index: 0}},
		},
	})
	check(t, err)
	for i, ana := range []map[uint32]nvmet.ANAState{
		{1: nvmet.Optimized, 2: nvmet.NonOptimized},
		{1: nvmet.NonOptimized, 2: nvmet.Optimized},
	} {
		l.ports[i], err = l.tgt.AddPort(ctx, nvmet.PortConfig{
			Internal: true, ANA: ana, MaxQueueSize: 64, Subsystems: []*nvmet.Subsystem{l.sub},
		})
		check(t, err)
	}
	return l
}

func TestSelfLoop(t *testing.T) {
	l := newLoop(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *loop)
	}{
		{"Connect", testConnect}, {"Data", testData}, {"IOPolicy", testIOPolicy}, {"ANA", testANA},
		{"Namespaces", testNamespaces}, {"MediaError", testMediaError}, {"PortRestart", testPortRestart},
		{"Reset", testReset}, {"Hosts", testHosts}, {"Remove", testRemove},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(t, l) }) {
			return // each builds on what came before
		}
	}
}

func testConnect(t *testing.T, l *loop) {
	ctx := t.Context()
	for i, c := range []nvmehost.ConnectConfig{
		{HeaderDigest: true, DataDigest: true, QueueSize: 32, NrIOQueues: 2},
		{NrIOQueues: 1},
	} {
		c.NQN, c.Trsvcid, c.HostNQN, c.HostID = nqnA, l.ports[i].Trsvcid(), hostA, hostA[len(hostA)-36:]
		c.KeepAlive, c.ReconnectDelay, c.CtrlLoss = 5*time.Second, time.Second, nvmehost.Forever
		var err error
		l.ctrl[i], err = nvmehost.Connect(ctx, l.g, c)
		check(t, err)
	}
	for i, queues := range []int{3, 2} {
		check(t, l.ctrl[i].WaitInfo(ctx, "namespaces", func(c nvmehost.ControllerInfo) bool { return len(c.Paths) == 3 }))
		c, err := l.ctrl[i].Info(ctx)
		check(t, err)
		if c.State != nvmehost.Live || c.NQN != nqnA || c.HostNQN != hostA || c.Transport != "tcp" || c.QueueCount != queues ||
			!strings.Contains(c.Address, "trsvcid="+strconv.Itoa(l.ports[i].Trsvcid())) {
			t.Errorf("controller %+v", c)
		}
		if c.Cntlid != int(l.ctrl[i].Cntlid) || c.Cntlid < 100 || c.Cntlid > 120 {
			t.Errorf("controller ID %d and %d", c.Cntlid, l.ctrl[i].Cntlid)
		}
	}
	s, err := nvmehost.FindSubsystem(ctx, l.g, nqnA)
	check(t, err)
	if s.Model != "qpoll test model" || s.Serial != "SN0042" {
		t.Errorf("subsystem %+v", s)
	}
	n, err := nvmehost.WaitNamespace(ctx, l.g, nqnA, 1)
	check(t, err)
	if n.UUID != uuid1 || n.NGUID != guid1 || n.Bytes != 32<<20 {
		t.Errorf("namespace %+v", n)
	}
}

// compare writes random data to a namespace and compares what can be read back
// through the initiator.
func compare(t *testing.T, l *loop, nsid uint32, seed string) {
	t.Helper()
	n, err := nvmehost.WaitNamespace(t.Context(), l.g, nqnA, nsid)
	check(t, err)
	l.g.Shell(t, `
		dd if=/dev/urandom of=/tmp/`+seed+` bs=64k count=32 2>/dev/null
		dd if=/tmp/`+seed+` of=`+n.Device+` bs=64k count=32 oflag=direct 2>/dev/null
		dd if=`+n.Device+` bs=4k count=512 iflag=direct 2>/dev/null | cmp - /tmp/`+seed)
}

func testData(t *testing.T, l *loop) {
	for nsid := range uint32(3) {
		compare(t, l, nsid+1, "data"+strconv.Itoa(int(nsid)))
	}
	// What the target holds is what was written.
	l.g.Shell(t, `
		dd if=/dev/ram0 bs=64k count=32 2>/dev/null | cmp - /tmp/data2
		dd if=/tmp/nvmet/qpoll2 bs=64k count=32 2>/dev/null | cmp - /tmp/data1`)
}

func testIOPolicy(t *testing.T, l *loop) {
	for _, p := range []string{nvmehost.PolicyRoundRobin, nvmehost.PolicyQueueDepth, nvmehost.PolicyNUMA} {
		check(t, nvmehost.SetIOPolicy(t.Context(), l.g, nqnA, p))
		s, err := nvmehost.FindSubsystem(t.Context(), l.g, nqnA)
		check(t, err)
		if s.IOPolicy != p {
			t.Errorf("policy %q, want %q", s.IOPolicy, p)
		}
		compare(t, l, 1, "policy")
	}
	if err := nvmehost.SetIOPolicy(t.Context(), l.g, nqnA, "fastest"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a policy that does not exist: %v", err)
	}
}

func testANA(t *testing.T, l *loop) {
	ctx := t.Context()
	check(t, l.ctrl[0].WaitANA(ctx, 1, string(nvmet.Optimized)))
	check(t, l.ctrl[1].WaitANA(ctx, 1, string(nvmet.NonOptimized)))
	check(t, l.ctrl[1].WaitANA(ctx, 2, string(nvmet.Optimized)))
	for _, s := range []nvmet.ANAState{nvmet.Inaccessible, nvmet.PersistentLoss, nvmet.Change, nvmet.Optimized} {
		check(t, l.ports[0].SetANA(ctx, 1, s))
		check(t, l.ctrl[0].WaitANA(ctx, 1, string(s)))
		if got, err := l.ports[0].ANA(ctx, 1); got != s || err != nil {
			t.Errorf("state %q, %v", got, err)
		}
		// The other path serves meanwhile.
		compare(t, l, 1, "ana")
		check(t, l.ctrl[0].WaitANA(ctx, 2, string(nvmet.NonOptimized)))
	}
	if err := l.ports[0].SetANA(ctx, 1, "bored"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a state that does not exist: %v", err)
	}
}

// waitCount waits until the initiator sees n namespaces on the first path.
func waitCount(ctx context.Context, l *loop, n int) error {
	return l.ctrl[0].WaitInfo(ctx, strconv.Itoa(n)+" namespaces", func(c nvmehost.ControllerInfo) bool { return len(c.Paths) == n })
}

func testNamespaces(t *testing.T, l *loop) {
	ctx := t.Context()
	n, err := l.sub.AddNamespace(ctx, nvmet.NamespaceConfig{NSID: 9, Backend: nvmet.File{MiB: 8}, Disabled: true})
	check(t, err)
	check(t, n.Enable(ctx))
	check(t, waitCount(ctx, l, 4))
	compare(t, l, 9, "file")
	check(t, n.Disable(ctx))
	check(t, waitCount(ctx, l, 3))
	check(t, n.Enable(ctx))
	check(t, waitCount(ctx, l, 4))
	check(t, nvmet.ResizeFile(ctx, l.g, n.Path(), 12))
	check(t, n.Revalidate(ctx))
	check(t, l.g.Until(ctx, "new size", func() (bool, error) {
		got, err := nvmehost.WaitNamespace(ctx, l.g, nqnA, 9)
		return got.Bytes == 12<<20, err
	}))
	check(t, n.SetANAGroup(ctx, 2))
	check(t, l.ctrl[1].WaitInfo(ctx, "group 2", func(c nvmehost.ControllerInfo) bool {
		return len(c.Paths) == 4 && c.Paths[3].ANAGroup == 2
	}))
	check(t, n.Remove(ctx))
	check(t, waitCount(ctx, l, 3))
	if ok, err := l.g.Exists(ctx, n.Path()); ok || err != nil {
		t.Errorf("backend is still there: %v, %v", ok, err)
	}
}

func testMediaError(t *testing.T, l *loop) {
	ctx := t.Context()
	n, err := l.sub.AddNamespace(ctx, nvmet.NamespaceConfig{NSID: 7, Backend: nvmet.NullBlk{
		MiB: 8, Delay: time.Millisecond, Attrs: map[string]string{"badblocks": "+80-95"},
	}})
	check(t, err)
	check(t, waitCount(ctx, l, 4))
	h, err := nvmehost.WaitNamespace(ctx, l.g, nqnA, 7)
	check(t, err)
	l.g.Shell(t, "dd if="+h.Device+" of=/dev/null bs=4k count=10 iflag=direct")
	_, err = l.g.Run(ctx, "dd", "if="+h.Device, "of=/dev/null", "bs=4k", "skip=10", "count=1", "iflag=direct")
	if err == nil || !strings.Contains(err.Error(), "error") {
		t.Errorf("reading a bad block: %v", err)
	}
	check(t, n.Remove(ctx))
	check(t, waitCount(ctx, l, 3))
}

func testPortRestart(t *testing.T, l *loop) {
	ctx := t.Context()
	check(t, l.ports[0].Stop(ctx))
	check(t, l.ctrl[0].WaitState(ctx, nvmehost.Connecting))
	compare(t, l, 1, "restart")
	check(t, l.ports[0].Start(ctx))
	check(t, l.ctrl[0].WaitState(ctx, nvmehost.Live))
	// All the way: the port goes, and one like it comes.
	check(t, l.ports[1].Remove(ctx))
	check(t, l.ctrl[1].WaitState(ctx, nvmehost.Connecting))
	var err error
	l.ports[1], err = l.tgt.AddPort(ctx, nvmet.PortConfig{
		ID: l.ports[1].ID(), Internal: true, Trsvcid: l.ports[1].Trsvcid(), InlineData: 4096,
		ANA: map[uint32]nvmet.ANAState{2: nvmet.Inaccessible}, Subsystems: []*nvmet.Subsystem{l.sub},
	})
	check(t, err)
	check(t, l.ctrl[1].WaitState(ctx, nvmehost.Live))
	check(t, l.ctrl[1].WaitANA(ctx, 2, string(nvmet.Inaccessible)))
	compare(t, l, 2, "again")
}

func testReset(t *testing.T, l *loop) {
	ctx := t.Context()
	check(t, l.ctrl[0].Reset(ctx))
	check(t, l.ctrl[0].WaitState(ctx, nvmehost.Live))
	check(t, l.ctrl[0].Rescan(ctx))
	compare(t, l, 1, "reset")
}

func testHosts(t *testing.T, l *loop) {
	ctx := t.Context()
	const nqn, other = "nqn.2014-08.org.qpoll:b", "nqn.2014-08.org.qpoll:host:other"
	sub, err := l.tgt.AddSubsystem(ctx, nvmet.SubsystemConfig{
		NQN: nqn, Hosts: []string{hostA}, QueuesMax: 1, Firmware: "FW7", IEEE: "0x0050c2", Version: "1.4", PI: true,
	})
	check(t, err)
	for attr, want := range map[string]string{"attr_firmware": "FW7", "attr_ieee_oui": "0x0050c2", "attr_version": "1.4", "attr_qid_max": "1"} {
		if got, err := sub.Attr(ctx, attr); got != want || err != nil {
			t.Errorf("%s: got %q, %v", attr, got, err)
		}
	}
	check(t, l.ports[0].Link(ctx, sub))
	cfg := nvmehost.ConnectConfig{NQN: nqn, Trsvcid: l.ports[0].Trsvcid(), HostNQN: other, HostID: uuid1}
	if _, err := nvmehost.Connect(ctx, l.g, cfg); err == nil {
		t.Error("a host that is not allowed could connect")
	}
	check(t, sub.AllowHost(ctx, other))
	c, err := nvmehost.Connect(ctx, l.g, cfg)
	check(t, err)
	check(t, c.WaitInfo(ctx, "one I/O queue", func(i nvmehost.ControllerInfo) bool { return i.QueueCount == 2 }))
	check(t, c.Disconnect(ctx))
	if _, err := c.Info(ctx); !errors.Is(err, nvmehost.ErrNoController) {
		t.Errorf("after disconnect: %v", err)
	}
	check(t, sub.DisallowHost(ctx, other))
	if _, err := nvmehost.Connect(ctx, l.g, cfg); err == nil {
		t.Error("a host that is not allowed any more could connect")
	}
	check(t, l.ports[0].Unlink(ctx, sub))
	check(t, sub.Remove(ctx))
}

func testRemove(t *testing.T, l *loop) {
	ctx := t.Context()
	for i := range l.ctrl {
		check(t, l.ctrl[i].Disconnect(ctx))
		check(t, l.ports[i].Remove(ctx))
	}
	check(t, l.sub.Remove(ctx))
	for _, d := range []string{"ports", "subsystems"} {
		if left, err := l.g.List(ctx, "/sys/kernel/config/nvmet/"+d); len(left) > 0 || err != nil {
			t.Errorf("%s: %q, %v", d, left, err)
		}
	}
	if all, err := nvmehost.Controllers(ctx, l.g); len(all) > 0 || err != nil {
		t.Errorf("controllers %+v, %v", all, err)
	}
}
