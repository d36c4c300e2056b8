package tcp_test

import (
	"context"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
)

// adminless is the TCP transport with an admin queue in memory, so that a test
// has to do with one TCP connection only.
type adminless struct {
	nvme.Transport // of package tcp, for I/O queues
	id             nvme.IdentifyController
	blocks         uint64
	cc             uint64
}

func newAdminless(tb testing.TB, addr string, cfg *nvme.Config, id *nvme.IdentifyController, blocks uint64) *adminless {
	tb.Helper()
	a, err := nvme.ParseAddress(addr)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := tcp.New(a, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return &adminless{Transport: t, id: *id, blocks: blocks}
}

func (t *adminless) Connect(ctx context.Context, qp *nvme.QueuePair) error {
	if qp.ID() != 0 {
		return t.Transport.Connect(ctx, qp)
	}
	return qp.Poller().Call(ctx, func() { qp.Attach(&memAdmin{t: t, qp: qp}) })
}

func (t *adminless) Disconnect(ctx context.Context, qp *nvme.QueuePair) error {
	if qp.ID() != 0 {
		return t.Transport.Disconnect(ctx, qp)
	}
	return qp.Poller().Call(ctx, func() {
		if a, ok := qp.Transport().(*memAdmin); ok {
			a.posted = nil
		}
		qp.Quiesced()
	})
}

func (t *adminless) Property(_ context.Context, offset uint32, _ int) (uint64, error) {
	switch offset {
	case nvme.RegCAP:
		return uint64(nvme.CAPFields{MQES: 4095, CSS: nvme.CAPCSSNVM}.CAP()), nil
	case nvme.RegVS:
		return uint64(nvme.Version20), nil
	case nvme.RegCC:
		return t.cc, nil
	case nvme.RegCSTS:
		f := nvme.CSTSFields{RDY: nvme.CC(t.cc).EN()}
		if nvme.CC(t.cc).SHN() != 0 {
			f.SHST = nvme.CSTSSHSTComplete
		}
		return uint64(f.CSTS()), nil
	}
	return 0, nil
}

func (t *adminless) SetProperty(_ context.Context, offset uint32, _ int, v uint64) error {
	if offset == nvme.RegCC {
		t.cc = v
	}
	return nil
}

// memAdmin answers admin commands at once.
type memAdmin struct {
	t      *adminless
	qp     *nvme.QueuePair
	posted []*nvme.Request
}

var _ nvme.QueueTransport = (*memAdmin)(nil)

func (a *memAdmin) Submit(r *nvme.Request) {
	if r.Cmd.Opcode != nvme.AdminAsyncEvent { // never answered
		a.posted = append(a.posted, r)
	}
}

func (a *memAdmin) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, true }

func (a *memAdmin) Poll(int64) int {
	list := a.posted
	a.posted = nil
	for _, r := range list {
		cpl := nvme.Completion{CID: r.Cmd.CID}
		var b []byte
		switch r.Cmd.Opcode {
		case nvme.AdminIdentify:
			b = a.identify(nvme.CNS(r.Cmd.CDW10))
		case nvme.AdminSetFeatures:
			cpl.Result = uint64(r.Cmd.CDW11)
		}
		if r.Data.Dir == nvme.DirIn && r.Data.Len > 0 {
			copy(r.Data.Buf, b)
		}
		a.qp.Complete(r, &cpl)
	}
	return len(list)
}

func (a *memAdmin) identify(cns nvme.CNS) (b []byte) {
	switch cns {
	case nvme.CNSController:
		b, _ = a.t.id.AppendBinary(nil)
	case nvme.CNSNamespace:
		id := nvme.IdentifyNamespace{NSZE: a.t.blocks, NCAP: a.t.blocks}
		id.LBAF[0].LBADS = 9
		b, _ = id.AppendBinary(nil)
	case nvme.CNSNamespaceDescriptors:
		b, _ = (&nvme.NamespaceIdentity{NGUID: [16]byte{1}}).AppendBinary(nil)
	}
	return b
}

// steppedPoller makes a poller that the test steps.
func steppedPoller(tb testing.TB) *poller.Poller {
	tb.Helper()
	p, err := poller.New(poller.Config{Name: "test", Unpinned: true})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
