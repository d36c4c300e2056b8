package tcp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// rejections are statuses that controllers answer with what they do not know.
var rejections = []nvme.Status{
	nvme.StatusInvalidField | nvme.StatusDNR, nvme.StatusInvalidField, nvme.StatusInvalidOpcode | nvme.StatusDNR,
	nvme.StatusInternalError, nvme.StatusFeatureNotChangeable | nvme.StatusDNR, nvme.MakeStatus(nvme.SCTVendor, 0xc1),
}

// reject returns an override that rejects commands about a feature.
func reject(op nvme.Opcode, id nvme.FeatureID, st nvme.Status) func(r *tcptest.Request) bool {
	return func(r *tcptest.Request) bool {
		if r.Queue != 0 || r.Cmd.Opcode != op || nvme.FeatureID(r.Cmd.CDW10) != id {
			return false
		}
		r.Complete(st, 0)
		return true
	}
}

// A controller that rejects what is not needed is used all the same.
func TestWireCase12RejectedFeatures(t *testing.T) {
	t.Parallel()
	features := []struct {
		name   string
		op     nvme.Opcode
		id     nvme.FeatureID
		queues int // that the host takes to be granted
	}{
		{"get keep alive timer", nvme.AdminGetFeatures, nvme.FeatKeepAliveTimer, 4},
		{"set keep alive timer", nvme.AdminSetFeatures, nvme.FeatKeepAliveTimer, 4},
		{"get number of queues", nvme.AdminGetFeatures, nvme.FeatNumberOfQueues, 4},
		{"set number of queues", nvme.AdminSetFeatures, nvme.FeatNumberOfQueues, 1},
		{"set events", nvme.AdminSetFeatures, nvme.FeatAsyncEventConfiguration, 4},
	}
	for _, ft := range features {
		for _, st := range rejections {
			t.Run(fmt.Sprintf("%s %#x", ft.name, uint16(st)), func(t *testing.T) {
				k, _ := disk(64)
				k.Override = reject(ft.op, ft.id, st)
				f := open(t, k, func(cfg *nvme.Config) { cfg.KeepAlive = time.Minute })
				if n := f.c.IOQueues(); n != ft.queues {
					t.Errorf("%d I/O queues, want %d", n, ft.queues)
				}
				wantWorks(t, f)
			})
		}
	}
	t.Run("all of them", func(t *testing.T) {
		k, _ := disk(64)
		k.Override = func(r *tcptest.Request) bool {
			if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminGetFeatures && r.Cmd.Opcode != nvme.AdminSetFeatures {
				return false
			}
			r.Complete(nvme.StatusInvalidField|nvme.StatusDNR, 0)
			return true
		}
		f := open(t, k, func(cfg *nvme.Config) { cfg.KeepAlive = time.Minute })
		wantWorks(t, f)
	})
}

// wantWorks writes and reads a block.
func wantWorks(t *testing.T, f *fixture) {
	t.Helper()
	ns := f.namespace(1)
	data, got := pattern(make([]byte, 512), 1), make([]byte, 512)
	if _, err := ns.WriteAt(data, 512); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.ReadAt(got, 512); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(data) {
		t.Error("data differs")
	}
}

// Optional Identify structures that a controller does not have.
func TestWireCase12RejectedIdentify(t *testing.T) {
	t.Parallel()
	for _, cns := range []nvme.CNS{nvme.CNSNamespaceDescriptors, nvme.CNSControllerCS} {
		for _, st := range []nvme.Status{nvme.StatusInvalidField | nvme.StatusDNR, nvme.StatusInvalidOpcode | nvme.StatusDNR} {
			t.Run(fmt.Sprintf("%v %#x", cns, uint16(st)), func(t *testing.T) {
				k, _ := disk(64)
				k.Override = func(r *tcptest.Request) bool {
					if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminIdentify || nvme.CNS(r.Cmd.CDW10) != cns {
						return false
					}
					r.Complete(st, 0)
					return true
				}
				wantWorks(t, open(t, k))
			})
		}
	}
}

// The controller grants fewer queues than the host asked for, or more.
func TestWireCase12QueueCounts(t *testing.T) {
	t.Parallel()
	for result, want := range map[uint64]int{0: 1, 0x00010000: 1, 0x00000001: 1, 0x00020002: 3, 0x00030003: 4, 0x00ff00ff: 4, 0xffffffff: 4, 0xabcdef12_00010001: 2} {
		t.Run(fmt.Sprintf("%#x", result), func(t *testing.T) {
			k, _ := disk(64)
			k.Override = func(r *tcptest.Request) bool {
				if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminSetFeatures || nvme.FeatureID(r.Cmd.CDW10) != nvme.FeatNumberOfQueues {
					return false
				}
				if r.Cmd.CDW11 != 0x00030003 {
					t.Errorf("asked for %#x", r.Cmd.CDW11)
				}
				r.Complete(nvme.StatusSuccess, result)
				return true
			}
			f := open(t, k)
			if n := f.c.IOQueues(); n != want {
				t.Errorf("%d I/O queues, want %d", n, want)
			}
			for range want {
				f.queue(nvme.QueueConfig{})
			}
			if _, err := f.namespace(1).Queue(f.ctx(), f.p, nvme.QueueConfig{}); err == nil {
				t.Error("one queue more than was granted")
			}
		})
	}
}
