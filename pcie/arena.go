package pcie

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
)

// pageSize is the unit of PRP entries, as CC.MPS has it, and of allocations.
const (
	pageShift = 12
	pageSize  = 1 << pageShift
	hugeShift = 21
	hugeSize  = 1 << hugeShift
)

// arena is a stretch of memory that is mapped for the device once and as a
// whole, and handed out in pages.
type arena struct {
	b      []byte
	fd     int
	shift  uint8 // size of the pages that it is made of, as a power of two
	iova   uint64
	mapped bool
	pages  []uint64 // without an IOMMU, the physical address of each
	free   extents
	used   int // allocations
	locked bool
}

// newArena makes an arena of n bytes, of huge pages if there are enough of them
// and they are wanted. note, if not empty, says why it is not of them. held is how
// many bytes are locked already.
func newArena(n int, held uint64, huge, lock bool) (a *arena, note string, err error) {
	if huge {
		size := (n + hugeSize - 1) &^ (hugeSize - 1)
		if a, err = mapArena(size, hugeShift); err == nil {
			return a, "", nil
		}
		note = fmt.Sprintf("no huge pages for %d MiB of DMA memory (%v), using pages of 4 KiB; vm.nr_hugepages of at least %d would do",
			size>>20, err, size>>hugeShift)
	}
	if a, err = mapArena((n+pageSize-1)&^(pageSize-1), pageShift); err != nil {
		return nil, note, err
	}
	if lock {
		if err = sys.Mlock(a.b); err != nil {
			err = lockError(err, held+uint64(len(a.b)))
			a.unmap()
			return nil, note, err
		}
		a.locked = true
	}
	return a, note, nil
}

// lockError makes an error of locking memory, need bytes in all, say what to do
// about it.
func lockError(err error, need uint64) error {
	limit, lerr := sys.MemlockLimit()
	if lerr == nil && need > limit && (errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM)) {
		return &MemlockError{Need: need, Have: limit, Err: err}
	}
	return fmt.Errorf("pcie: %d bytes of DMA memory: %w", need, err)
}

func mapArena(n int, shift uint8) (*arena, error) {
	flags := unix.MFD_CLOEXEC
	if shift == hugeShift {
		flags |= unix.MFD_HUGETLB | unix.MFD_HUGE_2MB
	}
	fd, err := sys.Memfd("qpoll-dma", int64(n), flags)
	if err != nil {
		return nil, err
	}
	b, err := sys.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		sys.Close(fd)
		return nil, err
	}
	return &arena{b: b, fd: fd, shift: shift, free: extents{{0, n >> pageShift}}}, nil
}

// unmap gives the memory back to the system.
func (a *arena) unmap() {
	sys.Munmap(a.b)
	sys.Close(a.fd)
	a.b, a.fd = nil, -1
}

// region describes the arena for translation.
func (a *arena) region() region {
	return region{base: address(a.b), size: uintptr(len(a.b)), iova: a.iova, pages: a.pages, shift: a.shift}
}

// take returns n pages, the lowest that are free and in one piece. If whole is
// set they do not cross the arena's own pages.
func (a *arena) take(n int, whole bool) []byte {
	per := 0
	if whole {
		per = 1 << (a.shift - pageShift)
	}
	at, ok := a.free.take(n, per)
	if !ok {
		return nil
	}
	a.used++
	return a.b[at<<pageShift : (at+n)<<pageShift : (at+n)<<pageShift]
}

// give takes back what take returned.
func (a *arena) give(b []byte) {
	a.free.give(int(address(b)-address(a.b))>>pageShift, len(b)>>pageShift)
	a.used--
}
