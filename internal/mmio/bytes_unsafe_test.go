package mmio

import (
	"runtime"
	"unsafe"
)

func wordBytes(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*8)
}

// yield lets the other side run, on machines with one processor too.
func yield(spin int) {
	if spin%64 == 63 {
		runtime.Gosched()
	}
}
