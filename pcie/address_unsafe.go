package pcie

import (
	"structs"
	"unsafe"

	"github.com/qpoll/qpoll/nvme"
)

// address returns where b begins. Memory for DMA does not move: it is a mapping
// or, for a software device, on the heap.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// words returns b, which is 8-byte aligned, as 64-bit words.
func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// halfWords returns b, which is 4-byte aligned, as 32-bit words.
func halfWords(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// sqe is a submission queue entry as it is written: in words, so that no store
// is narrower than the loads of whoever copies it.
type sqe struct {
	_ structs.HostLayout
	w [8]uint64
}

// cqe is a completion queue entry as it is read: the second word has the phase
// tag, and all that is checked.
type cqe struct {
	_  structs.HostLayout
	lo uint64 // DW0 and DW1: result
	hi uint64 // DW2 and DW3: SQ head 15:0, SQ identifier 31:16, command identifier 47:32, phase 48, status 63:49
}

var (
	_ [nvme.CommandSize]byte    = [unsafe.Sizeof(sqe{})]byte{}
	_ [nvme.CompletionSize]byte = [unsafe.Sizeof(cqe{})]byte{}
	_ [8]byte                   = [unsafe.Offsetof(cqe{}.hi)]byte{}
	_ [8]byte                   = [unsafe.Offsetof(nvme.Completion{}.SQHead)]byte{}
	_ [10]byte                  = [unsafe.Offsetof(nvme.Completion{}.SQID)]byte{}
	_ [12]byte                  = [unsafe.Offsetof(nvme.Completion{}.CID)]byte{}
	_ [14]byte                  = [unsafe.Offsetof(nvme.Completion{}.StatusPhase)]byte{}
)

// sqes returns the memory of a submission queue as entries.
func sqes(b []byte) []sqe {
	return unsafe.Slice((*sqe)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/nvme.CommandSize)
}

// cqes returns the memory of a completion queue as entries.
func cqes(b []byte) []cqe {
	return unsafe.Slice((*cqe)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/nvme.CompletionSize)
}

// completionWords returns a completion as two words.
func completionWords(c *nvme.Completion) *[2]uint64 { return (*[2]uint64)(unsafe.Pointer(c)) }
