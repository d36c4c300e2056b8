package pcietest

import (
	"unsafe"

	"github.com/qpoll/qpoll/nvme"
)

// The size of a submission queue entry is asserted here, its offsets in package
// nvme.
var (
	_ [nvme.CommandSize - unsafe.Sizeof(nvme.Command{})]struct{}
	_ [unsafe.Sizeof(nvme.Command{}) - nvme.CommandSize]struct{}
)

// commandBytes is a command as it stands in a queue.
func commandBytes(c *nvme.Command) *[nvme.CommandSize]byte {
	return (*[nvme.CommandSize]byte)(unsafe.Pointer(c))
}

// dword is an aligned dword of shared memory.
func dword(b []byte, off uint64) *uint32 {
	_ = b[off+3]
	return (*uint32)(unsafe.Pointer(&b[off]))
}
