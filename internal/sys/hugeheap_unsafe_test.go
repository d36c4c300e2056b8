package sys

import (
	"runtime"
	"testing"
	"unsafe"
)

func TestHugeHeap(t *testing.T) {
	for _, n := range []int{0, 1, 4096, hugePage - 1, hugePage, hugePage + 1, 5 * hugePage} {
		b := HugeHeap(n)
		if len(b) != n || cap(b) != n {
			t.Fatalf("%d bytes: len %d, cap %d", n, len(b), cap(b))
		}
		if n == 0 {
			continue
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at%hugePage != 0 {
			t.Errorf("%d bytes at %#x", n, at)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d is %#x", i, b[i])
			}
			b[i] = byte(i)
		}
		runtime.GC()
		for i := range b {
			if b[i] != byte(i) {
				t.Fatalf("byte %d became %#x", i, b[i])
			}
		}
	}
}
