package tcp_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// NN is the largest identifier that there could be, not the number of
// namespaces.
func TestWireCase13SparseNamespaces(t *testing.T) {
	t.Parallel()
	want := []uint32{1, 7, 1025, 70000, 0x7fffffff, 0xfffffffe}
	k := new(tcptest.Controller)
	for _, nsid := range want {
		k.AddNamespace(nsid, tcptest.NewNamespace(64, 512))
	}
	identified := map[uint32]int{}
	k.Override = func(r *tcptest.Request) bool {
		if r.Queue == 0 && r.Cmd.Opcode == nvme.AdminIdentify && nvme.CNS(r.Cmd.CDW10) == nvme.CNSNamespace {
			identified[r.Cmd.NSID]++
		}
		return false
	}
	f := open(t, k)
	if nn := f.c.Identify().NN; nn != 0xfffffffe {
		t.Fatalf("NN %#x", nn)
	}
	got, err := f.c.ActiveNamespaces(f.ctx())
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("active namespaces %#x, %v; want %#x", got, err, want)
	}
	for _, nsid := range want {
		ns := f.namespace(nsid)
		if ns.ID() != nsid || ns.Blocks() != 64 {
			t.Errorf("namespace %#x of %d blocks", ns.ID(), ns.Blocks())
		}
		if _, err := ns.ReadAt(make([]byte, 512), 0); err != nil {
			t.Errorf("namespace %#x: %v", nsid, err)
		}
	}
	for _, nsid := range []uint32{0, 2, 1024, 69999, 0xffffffff} {
		if _, err := f.c.Namespace(f.ctx(), nsid); !errors.Is(err, nvme.ErrNoNamespace) {
			t.Errorf("namespace %#x: %v, want ErrNoNamespace", nsid, err)
		}
	}
	f.end()
	for nsid, n := range identified {
		if n != 1 {
			t.Errorf("namespace %#x identified %d times", nsid, n)
		}
	}
	if n := len(identified); n != len(want)+3 { // those asked for above that could be
		t.Errorf("identified %v", slices.Sorted(maps.Keys(identified)))
	}
}

// More namespaces than one list holds.
func TestWireCase13LongList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 1023, 1024, 1025, 2048, 3000} {
		k := new(tcptest.Controller)
		ns := tcptest.NewNamespace(64, 512)
		var want []uint32
		for i := range n {
			nsid := uint32(3*i + 5)
			k.AddNamespace(nsid, ns)
			want = append(want, nsid)
		}
		f := open(t, k)
		got, err := f.c.ActiveNamespaces(f.ctx())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d namespaces: got %d, %v", n, len(got), err)
		}
		f.close()
	}
}

// Lists that cannot be, among them one without an end.
func TestWireCase13BadList(t *testing.T) {
	t.Parallel()
	lists := map[string]func(after uint32, i int) uint32{
		"descending":   func(_ uint32, i int) uint32 { return 2000 - uint32(i) },
		"the same":     func(uint32, int) uint32 { return 5 },
		"0xffffffff":   func(uint32, int) uint32 { return 0xffffffff },
		"from 1 again": func(_ uint32, i int) uint32 { return uint32(i) + 1 },
		"without end":  func(after uint32, i int) uint32 { return after + uint32(i) + 1 },
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			k.Override = func(r *tcptest.Request) bool {
				if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminIdentify || nvme.CNS(r.Cmd.CDW10) != nvme.CNSActiveNamespaces {
					return false
				}
				b := make([]byte, nvme.IdentifyDataSize)
				for i := range len(b) / 4 {
					binary.LittleEndian.PutUint32(b[4*i:], list(r.Cmd.NSID, i))
				}
				r.SendData(b, 0)
				r.Complete(nvme.StatusSuccess, 0)
				return true
			}
			f := open(t, k)
			if _, err := f.c.ActiveNamespaces(f.ctx()); !errors.Is(err, nvme.ErrProtocol) {
				t.Errorf("%v, want ErrProtocol", err)
			}
			wantWorks(t, f)
		})
	}
}

// Identify Namespace data that cannot be is an error for the namespace, and no
// more than that.
func TestWireCase13BadNamespace(t *testing.T) {
	t.Parallel()
	bad := map[string]func(id *nvme.IdentifyNamespace){
		"format beyond the table": func(id *nvme.IdentifyNamespace) { id.FLBAS = 9 },
		"block size 0":            func(id *nvme.IdentifyNamespace) { id.LBAF[0].LBADS = 0 },
		"block size 2^8":          func(id *nvme.IdentifyNamespace) { id.LBAF[0].LBADS = 8 },
		"block size 2^63":         func(id *nvme.IdentifyNamespace) { id.LBAF[0].LBADS = 63 },
		"block size 2^255":        func(id *nvme.IdentifyNamespace) { id.LBAF[0].LBADS = 255 },
		"size beyond int64":       func(id *nvme.IdentifyNamespace) { id.NSZE = 1 << 62 },
		"separate metadata":       func(id *nvme.IdentifyNamespace) { id.LBAF[0].MS = 8 },
	}
	for name, change := range bad {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			ns := tcptest.NewNamespace(64, 512)
			ns.Adapt(change)
			k.AddNamespace(2, ns)
			f := open(t, k)
			_, err := f.c.Namespace(f.ctx(), 2)
			var malformed *nvme.DecodeError
			if !errors.Is(err, nvme.ErrProtocol) && !errors.Is(err, nvme.ErrUnsupported) && !errors.As(err, &malformed) {
				t.Errorf("%v, want ErrProtocol, ErrUnsupported or an *nvme.DecodeError", err)
			}
			wantWorks(t, f)
		})
	}
}
