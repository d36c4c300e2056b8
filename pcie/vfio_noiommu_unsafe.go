package pcie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// noIOMMUDevice is a vfioDevice whose DMA goes to physical addresses.
type noIOMMUDevice struct{ *vfioDevice }

var _ PhysicalAddresser = (*noIOMMUDevice)(nil)

// hugePage is the size of the pages that physical addresses are told of.
const hugePage = 2 << 20

// ErrNotHuge: memory for a device without an IOMMU is not in huge pages of 2 MiB.
var ErrNotHuge = errors.New("pcie: without an IOMMU, memory for DMA must be in 2 MiB huge pages (vm.nr_hugepages)")

// PhysicalAddress implements PhysicalAddresser.
func (d *noIOMMUDevice) PhysicalAddress(m []byte) (uint64, error) {
	if len(m) == 0 {
		return 0, fmt.Errorf("%w: no memory", ErrIOVA)
	}
	at := pageStart(m)
	if at/hugePage != (at+uintptr(len(m))-1)/hugePage {
		return 0, fmt.Errorf("%w: %d bytes at %#x cross a page", ErrIOVA, len(m), at)
	}
	pages, err := openPagemap()
	if err != nil {
		return 0, err
	}
	defer pages.file.Close()
	frame, err := pages.frame(at)
	return frame + uint64(at)%pages.size, err
}

// pageStart returns where memory begins.
func pageStart(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// pagemap is /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).
type pagemap struct {
	file *os.File
	size uint64 // of a page, in bytes
}

func openPagemap() (pagemap, error) {
	f, err := os.Open("/proc/self/pagemap")
	return pagemap{f, uint64(os.Getpagesize())}, err
}

// frame returns the physical address of the page that at is in.
func (p pagemap) frame(at uintptr) (uint64, error) {
	var b [8]byte
	if _, err := p.file.ReadAt(b[:], int64(uint64(at)/p.size*8)); err != nil {
		return 0, err
	}
	const present, number = 1 << 63, 1<<55 - 1
	v := binary.LittleEndian.Uint64(b[:])
	switch {
	case v&present == 0:
		return 0, fmt.Errorf("%w: page at %#x is not in memory", ErrIOVA, at)
	case v&number == 0:
		return 0, &PermissionError{p.file.Name(), errors.New("page frame numbers need CAP_SYS_ADMIN")}
	}
	return v & number * p.size, nil
}

// hugePages checks that memory is in huge pages, each of them contiguous.
func hugePages(b []byte) error {
	at := pageStart(b)
	if at%hugePage != 0 || len(b)%hugePage != 0 || len(b) == 0 {
		return fmt.Errorf("%w: %d bytes at %#x", ErrNotHuge, len(b), at)
	}
	pages, err := openPagemap()
	if err != nil {
		return err
	}
	defer pages.file.Close()
	first := uint64(0)
	for off := uint64(0); off < uint64(len(b)); off += pages.size {
		f, err := pages.frame(at + uintptr(off))
		if err != nil {
			return err
		}
		if off%hugePage == 0 {
			first = f
		}
		if first%hugePage != 0 || f != first+off%hugePage {
			return fmt.Errorf("%w: page at %#x", ErrNotHuge, at+uintptr(off))
		}
	}
	return nil
}
