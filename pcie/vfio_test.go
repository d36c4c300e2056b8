package pcie

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

func TestOpenWays(t *testing.T) {
	for _, c := range []struct {
		name    string
		cdev    bool
		backend VFIOBackend
		errs    map[string]error
		map_    string // the call that maps memory; "": it does not open
	}{
		{"a kernel without cdev", false, VFIOAuto, nil, "map"},
		{"a kernel with cdev", true, VFIOAuto, nil, "ioas map"},
		{"the group, by choice", true, VFIOGroup, nil, "map"},
		{"the cdev, by choice, without", false, VFIOCdev, nil, ""},
		{"no permission for the cdev", true, VFIOAuto, map[string]error{"open vfio/devices/vfio0": syscall.EACCES}, "map"},
		{"the same, by choice", true, VFIOCdev, map[string]error{"open vfio/devices/vfio0": syscall.EACCES}, ""},
		{"iommufd without its module", true, VFIOAuto, map[string]error{"open iommu": syscall.ENODEV}, "map"},
		{"the kernel does not attach it", true, VFIOAuto, map[string]error{"attach": syscall.EINVAL}, "map"},
		{"neither", true, VFIOAuto, map[string]error{"attach": syscall.EINVAL, "set iommu": syscall.EINVAL}, ""},
	} {
		k := newFakeVFIO()
		k.errs = c.errs
		d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: bound(t, c.cdev).Host, Backend: c.backend, kernel: k})
		if (err == nil) != (c.map_ != "") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			m := Memory{Bytes: make([]byte, 4096), FD: -1}
			if err := d.MapDMA(m, 1<<33); err != nil || k.has(c.map_+" ") != 1 {
				t.Errorf("%s: %v, calls %q", c.name, err, k.calls)
			}
			if err := d.Close(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := k.left(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOpenFails fails each call of opening in turn: nothing stays open.
func TestOpenFails(t *testing.T) {
	for _, backend := range []VFIOBackend{VFIOGroup, VFIOCdev} {
		host := bound(t, true).Host
		for at := 1; ; at++ {
			k := newFakeVFIO()
			k.failAt, k.fail = at, syscall.EIO
			d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: host, Backend: backend, kernel: k})
			if err == nil {
				k.failAt = 0
				if err := errors.Join(d.Close(), k.left()); err != nil {
					t.Error(err)
				}
				if at < 15 {
					t.Errorf("only %d calls", at)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), addr) {
				t.Errorf("call %d: %v", at, err)
			}
			if err := k.left(); err != nil {
				t.Errorf("call %d (%s): %v", at, k.calls[at-1], err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := newFakeVFIO()
	if _, err := OpenVFIO(ctx, addr, VFIOConfig{Host: bound(t, false).Host, kernel: k}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := k.left(); err != nil {
		t.Error(err)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*fakeHost, *fakeVFIO)
		want  error
		say   string
	}{
		{"nvme has it", func(f *fakeHost, _ *fakeVFIO) { f.function(addr, "0x010802", "nvme", "2") }, ErrNotBound, "bound to nvme"},
		{"nobody has it", func(f *fakeHost, _ *fakeVFIO) { _ = os.Remove(f.path(pciDevices, addr, "driver")) }, ErrNotBound, "no driver"},
		{"no group", func(f *fakeHost, _ *fakeVFIO) { _ = os.Remove(f.path(pciDevices, addr, "iommu_group")) }, ErrNoIOMMU, "VT-d"},
		{"no-IOMMU group", func(f *fakeHost, _ *fakeVFIO) {
			f.file("sys/kernel/iommu_groups/2/name", "vfio-noiommu\n")
		}, ErrNoIOMMU, "VFIOConfig.NoIOMMU"},
		{"not viable", func(f *fakeHost, k *fakeVFIO) {
			f.function("0000:01:00.1", "0x020000", "e1000e", "2")
			k.group = 0
		}, ErrNotViable, "0000:01:00.1 (class 0x020000, e1000e)"},
		{"group in use", func(f *fakeHost, k *fakeVFIO) {
			k.errs["open vfio/2"] = syscall.EBUSY
			f.link("proc/99/fd/4", "/dev/vfio/2")
			f.file("proc/99/comm", "fio\n")
		}, ErrInUse, "99 (fio)"},
		{"group permission", func(_ *fakeHost, k *fakeVFIO) { k.errs["open vfio/2"] = syscall.EACCES }, ErrPermission, "/dev/vfio/2"},
		{"vfio", func(_ *fakeHost, k *fakeVFIO) { k.errs["open vfio/vfio"] = syscall.ENOENT }, ErrModule, "modprobe vfio"},
		{"type1", func(_ *fakeHost, k *fakeVFIO) { k.type1 = false }, ErrModule, "modprobe vfio_iommu_type1"},
		{"interrupts", func(_ *fakeHost, k *fakeVFIO) { k.errs["set iommu"] = syscall.EPERM }, syscall.EPERM, "allow_unsafe_interrupts"},
		{"device that is gone", func(_ *fakeHost, k *fakeVFIO) { k.errs["group device"] = syscall.ENODEV }, syscall.ENODEV, addr},
	} {
		f, k := bound(t, false), newFakeVFIO()
		c.build(f, k)
		_, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: f.Host, kernel: k})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := k.left(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestVFIORegisters(t *testing.T) {
	for _, areas := range [][]vfio.Area{{{Offset: 0, Size: 0x4000}}, {{Offset: 0x1000, Size: 0x3000}}, nil} {
		k := newFakeVFIO()
		k.areas = areas
		d := openFake(t, bound(t, false), k)
		if v, err := d.Read32(8); v != 0x10000 || err != nil {
			t.Errorf("version %#x, %v", v, err)
		}
		for _, off := range []uint32{0x28, 0x1000} {
			if err := errors.Join(d.Write64(off, 0x1122334455667788), d.Write32(off+8, 5)); err != nil {
				t.Error(err)
			}
			v, err1 := d.Read64(off)
			w, err2 := d.Read32(off + 8)
			if v != 0x1122334455667788 || w != 5 || err1 != nil || err2 != nil {
				t.Errorf("%#x: %#x, %#x, %v, %v", off, v, w, err1, err2)
			}
		}
		for _, off := range []uint32{0x4000, 0x3ffe, 2, 0xfffffffe} {
			_, err := d.Read32(off)
			if werr := d.Write32(off, 1); !errors.Is(err, mmio.ErrBounds) || !errors.Is(werr, mmio.ErrBounds) {
				t.Errorf("%#x: %v, %v", off, err, werr)
			}
		}
		w, err := d.Map(0, 0x1000, 0x100)
		if areas == nil {
			if !errors.Is(err, ErrNotMappable) {
				t.Errorf("not mappable: %v", err)
			}
			continue
		}
		if v, rerr := w.Read32(8); err != nil || rerr != nil || w.Len() != 0x100 || v != 5 {
			t.Errorf("window of %d bytes, %#x, %v, %v", w.Len(), v, err, rerr)
		}
		for _, n := range []uint64{0x3001, ^uint64(0)} {
			if _, err := d.Map(0, 0x1000, n); !errors.Is(err, mmio.ErrBounds) {
				t.Errorf("%#x bytes: %v", n, err)
			}
		}
		if _, err := d.Map(2, 0, 1); !errors.Is(err, ErrNotMappable) {
			t.Errorf("no BAR 2: %v", err)
		}
		if d.BARSize(0) != 0x4000 || d.BARSize(1) != 0 || d.BARSize(-1) != 0 || d.BARSize(6) != 0 {
			t.Error("sizes of BARs")
		}
	}
}

func TestVFIOBusMasterAndReset(t *testing.T) {
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	for _, on := range []bool{true, false, true} {
		if err := d.SetBusMaster(on); err != nil || (k.config[4]&4 != 0) != on || k.config[4]&3 != 3 {
			t.Errorf("%v: %#x, %v", on, k.config[4], err)
		}
	}
	if err := d.Reset(t.Context()); err != nil || k.config[4]&4 != 0 || k.has("reset") != 1 {
		t.Errorf("reset: %#x, %v", k.config[4], err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.errs["reset"] = syscall.EAGAIN
	if err := d.Reset(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("reset of a busy function: %v", err)
	}
	k.errs["reset"] = syscall.ENODEV
	if err := d.Reset(t.Context()); !errors.Is(err, ErrGone) || !d.Gone() {
		t.Errorf("reset of a lost function: %v", err)
	}
	if err := errors.Join(d.SetBusMaster(true), d.Reset(t.Context())); !errors.Is(err, ErrGone) {
		t.Errorf("after that: %v", err)
	}
	delete(k.errs, "reset")
}

func TestVFIOMemory(t *testing.T) {
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	want := []Range{{0, 0xfedfffff}, {0xfef00000, 1<<48 - 1}}
	if got := d.IOVARanges(); !slices.Equal(got, want) || d.MaxMappings() != 65535 {
		t.Errorf("ranges %+v, %d mappings", got, d.MaxMappings())
	}
	m := Memory{Bytes: make([]byte, 8192), FD: -1}
	for _, bad := range []uint64{0xfedff000, 1 << 48, ^uint64(0)} {
		if err := d.MapDMA(m, bad); !errors.Is(err, ErrIOVA) {
			t.Errorf("%#x: %v", bad, err)
		}
	}
	if err := d.MapDMA(Memory{FD: -1}, 0); !errors.Is(err, ErrIOVA) {
		t.Errorf("nothing: %v", err)
	}
	if err := errors.Join(d.MapDMA(m, 0x10000), d.MapDMA(m, 0x20000)); err != nil {
		t.Fatal(err)
	}
	if err := d.MapDMA(m, 0x10000); !errors.Is(err, ErrIOVA) {
		t.Errorf("twice: %v", err)
	}
	if err := d.UnmapDMA(0x10000, 4096); !errors.Is(err, ErrIOVA) {
		t.Errorf("a part: %v", err)
	}
	if err := d.UnmapDMA(0x10000, 8192); err != nil || len(k.dma) != 1 {
		t.Errorf("%v, left %v", err, k.dma)
	}
	k.errs["map"] = syscall.ENOSPC
	if err := d.MapDMA(m, 0x40000); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "dma_entry_limit") {
		t.Errorf("too many: %v", err)
	}
	// What is left is undone by Close, after bus mastering is off.
	if err := errors.Join(d.SetBusMaster(true), d.Close()); err != nil || k.config[4]&4 != 0 || len(k.dma) != 0 {
		t.Errorf("close: %v, %#x, %v", err, k.config[4], k.dma)
	}
	off := slices.Index(k.calls, "unmap 131072 8192")
	if off < 0 || !slices.Contains(k.calls[:off], "pwrite") {
		t.Errorf("calls %q", k.calls)
	}
	if err := d.MapDMA(m, 0x50000); !errors.Is(err, ErrGone) {
		t.Errorf("after Close: %v", err)
	}
}

func TestMemlock(t *testing.T) {
	old, err := sys.MemlockLimit()
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.SetMemlockLimit(65536); err != nil {
		t.Fatal(err)
	}
	defer sys.SetMemlockLimit(old)
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	if err := d.MapDMA(Memory{Bytes: make([]byte, 4096)}, 0); err != nil {
		t.Fatal(err)
	}
	k.errs["map"] = syscall.ENOMEM
	err = d.MapDMA(Memory{Bytes: make([]byte, 1<<20)}, 1<<20)
	var lim *MemlockError
	if !errors.As(err, &lim) || !errors.Is(err, ErrMemlock) || lim.Have != 65536 || lim.Need != 1<<20+4096 ||
		!strings.Contains(err.Error(), "ulimit -l 1028") {
		t.Errorf("got %v", err)
	}
}

func TestPartOf(t *testing.T) {
	const gib = 1 << 30
	all := []Range{{0, 3*gib - 1}, {4 * gib, 1<<48 - 1}}
	for _, n := range []int{1, 2, 3, 7} {
		var got []Range
		for i := range n {
			p := partOf(all, i, n)
			if len(p) == 0 {
				t.Fatalf("part %d of %d is empty", i, n)
			}
			got = append(got, p...)
		}
		last := uint64(0)
		for i, r := range got {
			if r.First > r.Last || i > 0 && r.First <= last {
				t.Errorf("%d parts: %+v", n, got)
			}
			last = r.Last
		}
	}
	if p := partOf([]Range{{0, 1<<64 - 1}}, 1, 2); len(p) != 1 || p[0].First < 1<<62 || p[0].Last < p[0].First {
		t.Errorf("half of all: %+v", p)
	}
}

// TestVFIOGroupOfTwo opens two functions of a group: they share it, and no
// address.
func TestVFIOGroupOfTwo(t *testing.T) {
	for _, cdev := range []bool{false, true} {
		f, k := bound(t, cdev), newFakeVFIO()
		const other = "0000:01:00.1"
		f.function(other, "0x010802", "vfio-pci", "2")
		if cdev {
			f.file(pciDevices+"/"+other+"/vfio-dev/vfio1/dev", "511:1\n")
		}
		a := openFake(t, f, k)
		b, err := OpenVFIO(t.Context(), other, VFIOConfig{Host: f.Host, kernel: k})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range a.IOVARanges() {
			for _, s := range b.IOVARanges() {
				if r.First <= s.Last && s.First <= r.Last {
					t.Errorf("%+v overlaps %+v", r, s)
				}
			}
		}
		if _, err := OpenVFIO(t.Context(), other, VFIOConfig{Host: f.Host, kernel: k}); !errors.Is(err, ErrInUse) {
			t.Errorf("opened twice: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.MapDMA(Memory{Bytes: make([]byte, 4096)}, b.IOVARanges()[0].First); err != nil {
			t.Error(err)
		}
		if n := k.has("open vfio/vfio") + k.has("open iommu"); n != 1 {
			t.Errorf("%d containers", n)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVFIOInterrupts(t *testing.T) {
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	if d.Interrupts() != 8 {
		t.Errorf("%d vectors", d.Interrupts())
	}
	fds := make([]int, 3)
	for i := range fds {
		var err error
		if fds[i], err = sys.EventFD(); err != nil {
			t.Fatal(err)
		}
		defer sys.Close(fds[i])
	}
	k.calls = nil
	for i, v := range []int{1, 0, 4} {
		if err := d.SetInterrupt(v, fds[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{1, 1, 0} { // signalled, as all were off for a moment
		if n, _ := sys.EventDrain(fds[i]); int(n) != want {
			t.Errorf("eventfd %d: %d", i, n)
		}
	}
	if k.has("set irqs 2 0") != 3 || k.has("disable irqs 2") != 1 {
		t.Errorf("calls %q", k.calls)
	}
	// It is off: nothing happens.
	k.calls = nil
	if err := errors.Join(d.SetInterrupt(2, -1), d.SetInterrupt(1, -1)); err != nil || len(k.calls) != 1 {
		t.Errorf("%v, calls %q", err, k.calls)
	}
	for _, v := range []int{-1, 8} {
		if err := d.SetInterrupt(v, -1); !errors.Is(err, ErrVector) {
			t.Errorf("vector %d: %v", v, err)
		}
	}
}

// TestVFIORequest has the kernel ask for the device, as it does for removal.
func TestVFIORequest(t *testing.T) {
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	if err := d.SetBusMaster(true); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	told := make(chan struct{})
	d.OnGone(func() { calls.Add(1); close(told) })
	k.removed()
	<-told
	k.removed()
	if _, err := d.Read32(8); !errors.Is(err, ErrGone) || !d.Gone() || calls.Load() != 1 || k.config[4]&4 != 0 {
		t.Errorf("%v, gone %v, %d calls, command %#x", err, d.Gone(), calls.Load(), k.config[4])
	}
	late := false
	d.OnGone(func() { late = true })
	if !late {
		t.Error("told nothing of a device that is gone already")
	}
}

// TestVFIOAllOnes: a function that was pulled out reads as ones.
func TestVFIOAllOnes(t *testing.T) {
	k := newFakeVFIO()
	d := openFake(t, bound(t, false), k)
	copy(k.bar[0x1c:], "\xff\xff\xff\xff")
	if v, err := d.Read32(0x1c); v != 0xffffffff || err != nil || d.Gone() {
		t.Errorf("one register of ones: %#x, %v", v, err)
	}
	for i := range k.bar {
		k.bar[i] = 0xff
	}
	if _, err := d.Read64(0x28); !errors.Is(err, ErrGone) || !d.Gone() {
		t.Errorf("all of them: %v", err)
	}
	if err := d.Write32(0x14, 1); !errors.Is(err, ErrGone) || k.bar[0x14] != 0xff {
		t.Errorf("write: %v", err)
	}
}

// TestVFIOFault: the mapping of the BAR is there no more.
func TestVFIOFault(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/bar")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	k := newFakeVFIO()
	var bar []byte
	k.mmap = func(n int) ([]byte, error) {
		if err := file.Truncate(int64(n)); err != nil {
			return nil, err
		}
		bar, err = sys.Mmap(int(file.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return bar, err
	}
	defer func() {
		if err := sys.Munmap(bar); err != nil {
			t.Error(err)
		}
	}()
	d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: bound(t, false).Host, kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	told := false
	d.OnGone(func() { told = true })
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := d.Write32(0x1000, 1); !errors.Is(err, ErrGone) || !told {
		t.Errorf("%v, told %v", err, told)
	}
}

func TestNoIOMMU(t *testing.T) {
	f, k := bound(t, false), newFakeVFIO()
	f.file("sys/kernel/iommu_groups/2/name", "vfio-noiommu\n")
	d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: f.Host, NoIOMMU: true, kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := d.(PhysicalAddresser)
	if !ok || k.has("open vfio/noiommu-2") != 1 || k.has("set iommu 8") != 1 {
		t.Errorf("%T, calls %q", d, k.calls)
	}
	b, err := sys.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.MapDMA(Memory{Bytes: b, FD: -1}, 0); !errors.Is(err, ErrNotHuge) && !errors.Is(err, ErrIOVA) && !errors.Is(err, ErrPermission) {
		t.Errorf("small pages: %v", err)
	}
	if _, err := p.PhysicalAddress(b); !errors.Is(err, ErrIOVA) {
		t.Errorf("across pages: %v", err)
	}
	if err := errors.Join(d.Close(), k.left(), sys.Munmap(b)); err != nil {
		t.Error(err)
	}
	if d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: bound(t, false).Host, kernel: newFakeVFIO()}); err != nil {
		t.Error(err)
	} else if _, ok := d.(PhysicalAddresser); ok || d.Close() != nil {
		t.Error("a device with an IOMMU tells physical addresses")
	}
}
