package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the huge pages that the kernel makes of its own
// accord (transparent_hugepage) where base pages are 4 KiB.
const hugePage = 2 << 20

// HugeHeap returns n bytes of zeroed memory of Go's heap that begins on a huge
// page, and asks the kernel for huge pages under it: copies to and from many
// buffers then miss the TLB less. It is memory like any other to the garbage
// collector. Where the kernel has no huge pages, it is just that.
func HugeHeap(n int) []byte {
	if n <= 0 {
		return nil
	}
	b := make([]byte, (n+2*hugePage-1)&^(hugePage-1))
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
	// Whole huge pages within b only: what lies beyond is somebody else's.
	_ = Madvise(b[skip:skip+(len(b)-skip)&^(hugePage-1)], unix.MADV_HUGEPAGE)
	return b[skip : skip+n : skip+n]
}
