//qpoll:hot

package pdu

import (
	"unsafe"

	"github.com/qpoll/qpoll/nvme"
)

// The queue entries are copied as bytes. Their sizes are asserted here, their
// offsets in package nvme.
var (
	_ [nvme.CommandSize - unsafe.Sizeof(nvme.Command{})]struct{}
	_ [unsafe.Sizeof(nvme.Command{}) - nvme.CommandSize]struct{}
	_ [nvme.CompletionSize - unsafe.Sizeof(nvme.Completion{})]struct{}
	_ [unsafe.Sizeof(nvme.Completion{}) - nvme.CompletionSize]struct{}
)

func commandBytes(c *nvme.Command) *[nvme.CommandSize]byte {
	return (*[nvme.CommandSize]byte)(unsafe.Pointer(c))
}

func completionBytes(c *nvme.Completion) *[nvme.CompletionSize]byte {
	return (*[nvme.CompletionSize]byte)(unsafe.Pointer(c))
}
