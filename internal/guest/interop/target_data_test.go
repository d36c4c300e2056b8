//go:build guest

package interop

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
)

// testKernelConnect looks at what the kernel makes of target and namespaces.
func testKernelConnect(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	uuid, err := nvme.ParseUUID(uuid1)
	check(t, err)
	nguid, err := nvme.ParseUUID(nguid1)
	check(t, err)
	a, b := memory(t, 32), memory(t, 16)
	a.UUID, a.NGUID = uuid, nguid
	b.NSID, b.BlockSize, b.ANAGroup = 9, 4096, 3
	s := k.serve(t, target.SubsystemConfig{
		Serial: "SN0042", Model: "interop model", Firmware: "FW7",
		Namespaces: []target.NamespaceConfig{a, b},
	}, target.Transport{})
	c := s.connect(t, 0, nvmehost.ConnectConfig{NrIOQueues: 2, QueueSize: 64})
	check(t, c.WaitInfo(ctx, "two namespaces", func(i nvmehost.ControllerInfo) bool { return len(i.Paths) == 2 }))
	info, err := c.Info(ctx)
	check(t, err)
	if info.State != nvmehost.Live || info.NQN != s.sub.NQN() || info.HostNQN != hostNQN || info.QueueCount != 3 || info.SQSize != 63 {
		t.Errorf("controller %+v", info)
	}
	ctrls := s.sub.Controllers()
	if len(ctrls) != 1 || ctrls[0].Host != hostNQN || nvme.FormatUUID(ctrls[0].HostID) != hostID ||
		len(ctrls[0].Queues) != 2 || !ctrls[0].Ready || int(ctrls[0].ID) != info.Cntlid {
		t.Errorf("the target has %+v", ctrls)
	}
	sub, err := nvmehost.FindSubsystem(ctx, k.g, s.sub.NQN())
	check(t, err)
	if sub.Serial != "SN0042" || sub.Model != "interop model" {
		t.Errorf("subsystem %+v", sub)
	}
	for _, want := range []nvmehost.Namespace{
		{NSID: 1, Bytes: 32 << 20, UUID: uuid1, NGUID: nguid1},
		{NSID: 9, Bytes: 16 << 20},
	} {
		got, err := nvmehost.WaitNamespace(ctx, k.g, s.sub.NQN(), want.NSID)
		check(t, err)
		if got.Bytes != want.Bytes || want.UUID != "" && (got.UUID != want.UUID || got.NGUID != want.NGUID) {
			t.Errorf("namespace %+v, want %+v", got, want)
		}
	}
	for _, p := range info.Paths {
		if want := map[uint32]uint32{1: 1, 9: 3}[p.NSID]; p.ANAGroup != want || p.ANAState != nvme.ANAOptimized.String() {
			t.Errorf("path %+v", p)
		}
	}
	check(t, c.Disconnect(ctx))
	if _, err := c.Info(ctx); err == nil {
		t.Error("the controller is still there")
	}
	eventually(t, "the controller to go", func() bool { return len(s.sub.Controllers()) == 0 })
}

// testKernelData has the kernel write and read under all digests.
func testKernelData(t *testing.T, k *kernelHost) {
	s := k.simple(t)
	for _, d := range digests {
		t.Run(d.name, func(t *testing.T) {
			s.connect(t, 0, nvmehost.ConnectConfig{HeaderDigest: d.header, DataDigest: d.data})
			dev := s.device(t, 1)
			k.zero(t, dev, 0, 16<<20)
			w := k.work(t, dev)
			w.progress(t)
			w.stop(t)
			s.copyAndCompare(t, dev)
			s.parallel(t, dev)
			if d.header == d.data {
				s.sameAsHost(t, dev)
			}
		})
	}
}

// parallel has several processes write and read at the same time.
func (s *served) parallel(t *testing.T, dev string) {
	t.Helper()
	s.k.g.Shell(t, "dev="+dev+`
		one() {
			dd if=/tmp/random of=$dev bs=$2 count=$3 skip=$1 seek=$(($1*$3)) oflag=direct 2>/dev/null
			dd if=/tmp/random bs=$2 count=$3 skip=$1 2>/dev/null >/tmp/want$1
			dd if=$dev bs=$2 count=$3 skip=$(($1*$3)) iflag=direct 2>/dev/null | cmp - /tmp/want$1
		}
		for i in 0 1 2 3 4 5; do one $i 32k 8 & pids="${pids-} $!"; done
		for p in $pids; do wait $p; done
		rm /tmp/want?`)
}

// sameAsHost compares what the guest reads from a device with what our own
// initiator reads.
func (s *served) sameAsHost(t *testing.T, dev string) {
	t.Helper()
	h := open(t, s.target.Address(s.sub.NQN()), nvme.Config{HostNQN: "nqn.2014-08.org.qpoll:host:checker"})
	ns := h.namespace(t, 1)
	sum := md5.New()
	_, err := io.Copy(sum, io.NewSectionReader(ns, 0, ns.Size()))
	check(t, err)
	got := s.k.g.Shell(t, fmt.Sprintf("echo 1 >/proc/sys/vm/drop_caches; md5sum <%s", dev))
	if got, _, _ = strings.Cut(got, " "); got != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%s has MD5 sum %s, the namespace has %x", dev, got, sum.Sum(nil))
	}
}
