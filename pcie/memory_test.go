package pcie

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/invariants"
	"github.com/qpoll/qpoll/internal/sys"
)

func TestLockError(t *testing.T) {
	old, err := sys.MemlockLimit()
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.SetMemlockLimit(65536); err != nil {
		t.Fatal(err)
	}
	defer sys.SetMemlockLimit(old)
	var lim *MemlockError
	for _, cause := range []error{syscall.ENOMEM, syscall.EPERM} {
		if err := lockError(cause, 1<<20); !errors.As(err, &lim) || lim.Need != 1<<20 || lim.Have != 65536 || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
	// Memory that is short, not the limit.
	for _, err := range []error{lockError(syscall.ENOMEM, 4096), lockError(syscall.EAGAIN, 1<<20)} {
		if errors.Is(err, ErrMemlock) {
			t.Errorf("%v", err)
		}
	}
}

func TestIOVASpace(t *testing.T) {
	s := newIOVASpace([]Range{{0, 0x2fffff}, {0x400000, 0x4fffff}, {1 << 40, ^uint64(0)}}, ^uint64(0))
	take := func(n, align, want uint64) {
		t.Helper()
		if at, err := s.take(n, align); err != nil || at != want {
			t.Fatalf("%#x bytes at %#x: %#x, %v, want %#x", n, align, at, err, want)
		}
	}
	take(0x1000, 0x1000, 0x100000)     // not below the first megabyte
	take(0x100000, 0x200000, 0x200000) // aligned, to the very end of a range
	take(0x1000, 0x1000, 0x101000)
	take(0x100000, 0x1000, 0x400000) // the first range has no such gap
	take(0x200000, 0x200000, 1<<40)
	take(0x80000, 0x1000, 0x102000) // the gaps are still used
	s.give(0x101000)
	take(0x1000, 0x1000, 0x101000)
	s.give(0x200000)
	take(0x1000, 0x200000, 0x200000)
	for _, n := range []uint64{0, 1 << 63, ^uint64(0)} {
		if at, err := s.take(n, 0x1000); !errors.Is(err, ErrNoIOVA) && (n == 0 || at < 1<<40) {
			t.Errorf("%#x bytes: %#x, %v", n, at, err)
		}
	}
	s = newIOVASpace([]Range{{0, 1<<48 - 1}}, 1<<20+0xfff)
	take(0x1000, 0x1000, 1<<20)
	if _, err := s.take(0x1000, 0x1000); !errors.Is(err, ErrNoIOVA) {
		t.Errorf("beyond the limit: %v", err)
	}
	s = newIOVASpace([]Range{{^uint64(0) - 0xfff, ^uint64(0)}}, ^uint64(0))
	take(0x1000, 0x1000, ^uint64(0)-0xfff)
	if _, err := s.take(0x1000, 0x1000); !errors.Is(err, ErrNoIOVA) {
		t.Errorf("beyond the end of all addresses: %v", err)
	}
}

// Random takings and givings never overlap, and everything comes together
// again.
func TestExtents(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := extents{{0, 1024}}
	owner := make([]int, 1024)
	var held []extent
	for i := 1; i < 20_000; i++ {
		if n := len(held); n > 0 && rng.IntN(2) == 0 {
			k := rng.IntN(n)
			e := held[k]
			held = slices.Delete(held, k, k+1)
			x.give(e.first, e.n)
			for p := e.first; p < e.first+e.n; p++ {
				owner[p] = 0
			}
			continue
		}
		n, per := 1+rng.IntN(20), 0
		if rng.IntN(3) == 0 {
			per = 32
		}
		at, ok := x.take(n, per)
		if !ok {
			continue
		}
		if per > 0 && at/per != (at+n-1)/per {
			t.Fatalf("%d pages at %d cross a multiple of %d", n, at, per)
		}
		for p := at; p < at+n; p++ {
			if owner[p] != 0 {
				t.Fatalf("page %d is taken twice", p)
			}
			owner[p] = i
		}
		held = append(held, extent{at, n})
	}
	for _, e := range held {
		x.give(e.first, e.n)
	}
	if len(x) != 1 || x[0] != (extent{0, 1024}) {
		t.Errorf("in the end: %v", x)
	}
	if _, ok := x.take(33, 32); ok {
		t.Error("33 pages within 32")
	}
}

func newTestMemory(t *testing.T, d Device) *memory {
	t.Helper()
	cfg, err := Config{ArenaSize: 2 << 20, NoHugePages: true, NoIOMMU: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return newMemory(d, &cfg, ^uint64(0))
}

func TestMemory(t *testing.T) {
	d := newFake(t)
	m := newTestMemory(t, d)
	var held [][]byte
	for _, n := range []int{1, 4096, 5000, 1 << 20, 3 << 20, 1 << 20} {
		b, err := m.alloc(n, true, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(b)%pageSize != 0 || len(b) < n || address(b)%pageSize != 0 {
			t.Errorf("%d bytes at %#x for %d", len(b), address(b), n)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatal("not zeroed")
			}
			b[i] = 0xff
		}
		at, ok := m.translate(b)
		if !ok || &d.at(at, len(b))[0] != &b[0] {
			t.Errorf("%#x is not where the device finds it", at)
		}
		held = append(held, b)
	}
	if _, ok := m.translate(make([]byte, 1)); ok {
		t.Error("memory of the heap is known")
	}
	for _, n := range []int{0, -1, 1 << 50} {
		if _, err := m.alloc(n, true, true); err == nil {
			t.Errorf("%d bytes were had", n)
		}
	}
	if err := m.release(held[0], true); err != nil {
		t.Error(err)
	}
	// What is freed twice, or by whom it does not belong to, is an error; with
	// invariants, the mistake that it is.
	for _, free := range []func() error{
		func() error { return m.release(held[0], true) },
		func() error { return m.release(held[1], false) },
		func() error { return m.release(held[3][4096:], true) },
	} {
		func() {
			defer func() {
				if r := recover(); (r != nil) != invariants.Enabled {
					t.Errorf("recovered %v", r)
				}
			}()
			if err := free(); !errors.Is(err, ErrNotAllocated) {
				t.Error(err)
			}
		}()
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
	// What the user has stays until it is freed, but is not there for the device.
	if held[2][0] != 0xff || len(d.maps) != 0 {
		t.Errorf("%d mappings", len(d.maps))
	}
	for _, b := range held[1:] {
		if err := m.release(b, true); err != nil {
			t.Error(err)
		}
	}
	if len(m.arenas) != 0 {
		t.Errorf("%d arenas left", len(m.arenas))
	}
	if _, err := m.alloc(1, false, true); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

func TestRegisteredMemory(t *testing.T) {
	d := newFake(t)
	m := newTestMemory(t, d)
	a, err := mapArena(8*pageSize, pageShift)
	if err != nil {
		t.Fatal(err)
	}
	defer a.unmap()
	b := a.b
	if err := m.register(b[pageSize:3*pageSize], a.fd, pageSize); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{nil, b[1:pageSize], b[:pageSize+1], b[:2*pageSize], b[2*pageSize:], b[pageSize : 3*pageSize]} {
		if err := m.register(bad, -1, 0); !errors.Is(err, ErrMemory) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	at, ok := m.translate(b[pageSize+5 : 2*pageSize])
	if !ok || &d.at(at, 1)[0] != &b[pageSize+5] {
		t.Errorf("%#x, %v", at, ok)
	}
	if _, ok := m.translate(b[2*pageSize : 4*pageSize]); ok {
		t.Error("a part suffices")
	}
	if err := m.unregister(b[pageSize : 2*pageSize]); !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
	if err := m.unregister(b[pageSize : 3*pageSize]); err != nil {
		t.Error(err)
	}
	if _, ok := m.translate(b[pageSize : 2*pageSize]); ok || len(d.maps) != 0 {
		t.Error("still known")
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}

// physicalFake has no IOMMU: pages are where they are, in no order.
type physicalFake struct{ *fakeDevice }

func (d physicalFake) PhysicalAddress(b []byte) (uint64, error) {
	return uint64(address(b)) ^ 0x5000_0000_0000, nil
}

func TestPhysicalMemory(t *testing.T) {
	d := physicalFake{newFake(t)}
	if _, err := New(d, nil); err == nil {
		t.Error("no IOMMU, and nobody asked")
	}
	m := newTestMemory(t, d)
	b, err := m.alloc(pageSize, true, false)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := m.translate(b[100:200])
	if want := uint64(address(b[100:])) ^ 0x5000_0000_0000; !ok || at != want {
		t.Errorf("%#x, want %#x", at, want)
	}
	r := m.table.Load().find(address(b), 1)
	if n := r.extent(address(b)+100, 2*pageSize); n != pageSize-100 {
		t.Errorf("extent of %d bytes", n)
	}
	if _, err := m.alloc(2*pageSize, true, false); err == nil {
		t.Error("two pages in one piece")
	}
	if err := m.release(b, false); err != nil {
		t.Error(err)
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}
