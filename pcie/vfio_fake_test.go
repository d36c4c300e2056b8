package pcie

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

// fakeVFIO is a kernel with one kind of function, 16 KiB of BAR 0. It counts what
// is open, and fails where it is told to.
type fakeVFIO struct {
	sync.Mutex
	calls  []string
	failAt int   // number of the call that fails, from 1; 0: none
	fail   error // with what
	errs   map[string]error

	open    map[int]string // descriptors
	nextFD  int
	mapped  int               // mappings of BARs
	dma     map[uint64]uint64 // mappings for DMA
	locked  int
	bar     []byte
	config  []byte
	mmap    func(n int) ([]byte, error) // nil: the heap
	areas   []vfio.Area
	group   uint32 // flags
	type1   bool
	irq     vfio.IRQ
	irqs    map[uint32][]int32
	request int32
}

func newFakeVFIO() *fakeVFIO {
	k := &fakeVFIO{
		open: map[int]string{}, nextFD: 1000, dma: map[uint64]uint64{}, errs: map[string]error{}, irqs: map[uint32][]int32{},
		bar: make([]byte, 0x4000), config: make([]byte, 256), areas: []vfio.Area{{Offset: 0, Size: 0x4000}},
		group: vfio.GroupViable, type1: true, irq: vfio.IRQ{Flags: vfio.IRQEventFD | vfio.IRQNoResize, Count: 8}, request: -1,
	}
	k.bar[8], k.bar[10] = 0, 1
	k.config[4] = 0x07
	return k
}

// call takes note of a call and says whether it fails.
func (k *fakeVFIO) call(name string, args ...any) error {
	k.calls = append(k.calls, strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...)))
	if len(k.calls) == k.failAt {
		return k.fail
	}
	return k.errs[name]
}

func (k *fakeVFIO) newFD(what string) int {
	k.nextFD++
	k.open[k.nextFD] = what
	return k.nextFD
}

func (k *fakeVFIO) Open(path string) (int, error) {
	k.Lock()
	defer k.Unlock()
	name := path[strings.Index(path, "/dev/")+5:]
	if err := k.call("open", name); err != nil {
		return -1, err
	}
	if err := k.errs["open "+name]; err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return k.newFD(name), nil
}

func (k *fakeVFIO) Close(fd int) error {
	k.Lock()
	defer k.Unlock()
	k.call("close", k.open[fd])
	if k.open[fd] == "" {
		return syscall.EBADF
	}
	delete(k.open, fd)
	return nil
}

func (k *fakeVFIO) region(off int64) ([]byte, int64) {
	if off >= 1<<40 {
		return k.config, off - 1<<40
	}
	return k.bar, off
}

func (k *fakeVFIO) Pread(_ int, b []byte, off int64) (int, error) {
	k.Lock()
	defer k.Unlock()
	if err := k.call("pread"); err != nil {
		return 0, err
	}
	r, at := k.region(off)
	return copy(b, r[at:]), nil
}

func (k *fakeVFIO) Pwrite(_ int, b []byte, off int64) (int, error) {
	k.Lock()
	defer k.Unlock()
	if err := k.call("pwrite"); err != nil {
		return 0, err
	}
	r, at := k.region(off)
	return copy(r[at:], b), nil
}

func (k *fakeVFIO) Mmap(_ int, off int64, n int) ([]byte, error) {
	k.Lock()
	defer k.Unlock()
	if err := k.call("mmap", off, n); err != nil {
		return nil, err
	}
	k.mapped++
	if k.mmap != nil {
		return k.mmap(n)
	}
	return k.bar[off : off+int64(n)], nil
}

func (k *fakeVFIO) Munmap([]byte) error {
	k.Lock()
	defer k.Unlock()
	k.mapped--
	return k.call("munmap")
}
func (k *fakeVFIO) Mlock([]byte) error {
	k.Lock()
	defer k.Unlock()
	k.locked++
	return k.call("mlock")
}
func (k *fakeVFIO) Munlock([]byte) error {
	k.Lock()
	defer k.Unlock()
	k.locked--
	return k.call("munlock")
}

func (k *fakeVFIO) Version(int) (int, error) { k.Lock(); defer k.Unlock(); return 0, k.call("version") }
func (k *fakeVFIO) CheckExtension(_, ext int) (bool, error) {
	k.Lock()
	defer k.Unlock()
	return k.type1, k.call("extension", ext)
}
func (k *fakeVFIO) SetIOMMU(_, kind int) error {
	k.Lock()
	defer k.Unlock()
	return k.call("set iommu", kind)
}
func (k *fakeVFIO) GroupStatus(int) (uint32, error) {
	k.Lock()
	defer k.Unlock()
	return k.group, k.call("group status")
}
func (k *fakeVFIO) SetContainer(int, int) error {
	k.Lock()
	defer k.Unlock()
	return k.call("set container")
}
func (k *fakeVFIO) GroupDevice(_ int, a string) (int, error) {
	k.Lock()
	defer k.Unlock()
	if err := k.call("group device", a); err != nil {
		return -1, err
	}
	return k.newFD("device " + a), nil
}
func (k *fakeVFIO) IOMMUInfo(int) (vfio.IOMMU, error) {
	k.Lock()
	defer k.Unlock()
	return vfio.IOMMU{Ranges: []vfio.Range{{First: 0, Last: 0xfedfffff}, {First: 0xfef00000, Last: 1<<48 - 1}}, Avail: 65535},
		k.call("iommu info")
}

func (k *fakeVFIO) mapAt(name string, b []byte, iova uint64) error {
	k.Lock()
	defer k.Unlock()
	if err := k.call(name, iova, len(b)); err != nil {
		return err
	}
	k.dma[iova] = uint64(len(b))
	return nil
}

func (k *fakeVFIO) unmapAt(name string, iova, n uint64) (uint64, error) {
	k.Lock()
	defer k.Unlock()
	if err := k.call(name, iova, n); err != nil {
		return 0, err
	}
	was := k.dma[iova]
	delete(k.dma, iova)
	return was, nil
}

func (k *fakeVFIO) MapDMA(_ int, b []byte, iova uint64) error { return k.mapAt("map", b, iova) }
func (k *fakeVFIO) UnmapDMA(_ int, iova, n uint64) (uint64, error) {
	return k.unmapAt("unmap", iova, n)
}
func (k *fakeVFIO) MapIOAS(_ int, _ uint32, b []byte, iova uint64) error {
	return k.mapAt("ioas map", b, iova)
}
func (k *fakeVFIO) UnmapIOAS(_ int, _ uint32, iova, n uint64) (uint64, error) {
	return k.unmapAt("ioas unmap", iova, n)
}
func (k *fakeVFIO) BindIOMMUFD(int, int) error { k.Lock(); defer k.Unlock(); return k.call("bind") }
func (k *fakeVFIO) AllocIOAS(int) (uint32, error) {
	k.Lock()
	defer k.Unlock()
	return 7, k.call("alloc")
}
func (k *fakeVFIO) AttachIOAS(int, uint32) error { k.Lock(); defer k.Unlock(); return k.call("attach") }
func (k *fakeVFIO) IOASRanges(int, uint32) ([]vfio.Range, error) {
	k.Lock()
	defer k.Unlock()
	return []vfio.Range{{First: 0, Last: 1<<39 - 1}}, k.call("ranges")
}

func (k *fakeVFIO) DeviceInfo(int) (vfio.Device, error) {
	k.Lock()
	defer k.Unlock()
	return vfio.Device{Flags: vfio.DevicePCI | vfio.DeviceReset, Regions: 9, IRQs: 5}, k.call("device info")
}

func (k *fakeVFIO) RegionInfo(_ int, i uint32) (vfio.Region, error) {
	k.Lock()
	defer k.Unlock()
	err := k.call("region", i)
	switch i {
	case 0:
		return vfio.Region{Flags: 7, Size: 0x4000, Mappable: k.areas}, err
	case vfio.PCIConfigRegion:
		return vfio.Region{Flags: 3, Size: 256, Offset: 1 << 40}, err
	}
	return vfio.Region{}, err
}

func (k *fakeVFIO) IRQInfo(_ int, i uint32) (vfio.IRQ, error) {
	k.Lock()
	defer k.Unlock()
	err := k.call("irq", i)
	if i == vfio.PCIMSIXIRQ {
		return k.irq, err
	}
	return vfio.IRQ{Flags: vfio.IRQEventFD, Count: 1}, err
}

func (k *fakeVFIO) SetIRQs(_ int, i, start uint32, fds []int32) error {
	k.Lock()
	defer k.Unlock()
	if err := k.call("set irqs", i, start, fds); err != nil {
		return err
	}
	if i == vfio.PCIReqIRQ {
		k.request = fds[0]
	}
	return nil
}

func (k *fakeVFIO) DisableIRQs(_ int, i uint32) error {
	k.Lock()
	defer k.Unlock()
	return k.call("disable irqs", i)
}
func (k *fakeVFIO) Reset(int) error { k.Lock(); defer k.Unlock(); return k.call("reset") }

// removed is the kernel asking for the device.
func (k *fakeVFIO) removed() { sys.EventSignal(int(k.request)) }

func (k *fakeVFIO) has(call string) int {
	k.Lock()
	defer k.Unlock()
	n := 0
	for _, c := range k.calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// left is an error if anything is open or mapped.
func (k *fakeVFIO) left() error {
	k.Lock()
	defer k.Unlock()
	if len(k.open)+k.mapped+len(k.dma)+k.locked == 0 {
		return nil
	}
	return fmt.Errorf("left: open %v, %d BARs, DMA %v, %d locked", k.open, k.mapped, k.dma, k.locked)
}

// bound is a host with a function on vfio-pci, with or without a cdev.
func bound(t *testing.T, cdev bool) *fakeHost {
	f := newFakeHost(t)
	f.function(addr, "0x010802", "vfio-pci", "2")
	if cdev {
		f.file(pciDevices+"/"+addr+"/vfio-dev/vfio0/dev", "511:0\n")
		f.file("dev/iommu", "")
	}
	return f
}

// openFake opens it, and looks for leaks at the end.
func openFake(t *testing.T, f *fakeHost, k *fakeVFIO) Device {
	t.Helper()
	d, err := OpenVFIO(t.Context(), addr, VFIOConfig{Host: f.Host, kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), d.Close(), k.left()); err != nil {
			t.Error(err)
		}
	})
	return d
}
