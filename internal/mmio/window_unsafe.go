package mmio

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrBounds: an access is not aligned to its width, or reaches beyond the
// window.
var ErrBounds = errors.New("mmio: access out of bounds")

// Window is a stretch of memory that is accessed in exact widths: the mapping
// of a BAR, or memory that another process or a device reads and writes. The
// zero value is empty. It is valid as long as the mapping that it is of. Any
// number of goroutines may use it at once; accesses of the same register are
// as ordered as the hardware has them.
type Window struct {
	p unsafe.Pointer
	n uint64
}

// NewWindow returns a window on b, which it keeps from being collected. b is
// a mapping, or Go memory where the device is a software one.
func NewWindow(b []byte) Window {
	return Window{unsafe.Pointer(unsafe.SliceData(b)), uint64(len(b))}
}

// Len returns the size of the window in bytes.
func (w Window) Len() uint64 { return w.n }

// Slice returns the n bytes from off on as a window of their own.
func (w Window) Slice(off, n uint64) (Window, error) {
	if off > w.n || n > w.n-off {
		return Window{}, fmt.Errorf("%w: %d bytes at %#x of %d", ErrBounds, n, off, w.n)
	}
	if n == 0 {
		return Window{}, nil
	}
	return Window{unsafe.Add(w.p, off), n}, nil
}

// at returns the address of width bytes at off.
func (w Window) at(off, width uint64) (unsafe.Pointer, error) {
	if off > w.n || width > w.n-off || (uint64(uintptr(w.p))+off)%width != 0 {
		return nil, fmt.Errorf("%w: %d bytes at %#x of %d", ErrBounds, width, off, w.n)
	}
	return unsafe.Add(w.p, off), nil
}

// Read8 reads the byte at off.
func (w Window) Read8(off uint64) (uint8, error) {
	p, err := w.at(off, 1)
	if err != nil {
		return 0, err
	}
	return load8((*uint8)(p)), nil
}

// Read16 reads the 16-bit register at off, a multiple of 2.
func (w Window) Read16(off uint64) (uint16, error) {
	p, err := w.at(off, 2)
	if err != nil {
		return 0, err
	}
	return load16((*uint16)(p)), nil
}

// Read32 reads the 32-bit register at off, a multiple of 4.
func (w Window) Read32(off uint64) (uint32, error) {
	p, err := w.at(off, 4)
	if err != nil {
		return 0, err
	}
	return load32((*uint32)(p)), nil
}

// Read64 reads the 64-bit register at off, a multiple of 8, in one access.
func (w Window) Read64(off uint64) (uint64, error) {
	p, err := w.at(off, 8)
	if err != nil {
		return 0, err
	}
	return load64((*uint64)(p)), nil
}

// Write8 writes the byte at off.
func (w Window) Write8(off uint64, v uint8) error {
	p, err := w.at(off, 1)
	if err == nil {
		store8((*uint8)(p), v)
	}
	return err
}

// Write16 writes the 16-bit register at off, a multiple of 2.
func (w Window) Write16(off uint64, v uint16) error {
	p, err := w.at(off, 2)
	if err == nil {
		store16((*uint16)(p), v)
	}
	return err
}

// Write32 writes the 32-bit register at off, a multiple of 4.
func (w Window) Write32(off uint64, v uint32) error {
	p, err := w.at(off, 4)
	if err == nil {
		store32((*uint32)(p), v)
	}
	return err
}

// Write64 writes the 64-bit register at off, a multiple of 8, in one access.
func (w Window) Write64(off uint64, v uint64) error {
	p, err := w.at(off, 8)
	if err == nil {
		store64((*uint64)(p), v)
	}
	return err
}

// Register32 returns a handle for the 32-bit register at off, a multiple of 4.
func (w Window) Register32(off uint64) (Register32, error) {
	p, err := w.at(off, 4)
	return Register32{(*uint32)(p)}, err
}

// Register64 returns a handle for the 64-bit register at off, a multiple of 8.
func (w Window) Register64(off uint64) (Register64, error) {
	p, err := w.at(off, 8)
	return Register64{(*uint64)(p)}, err
}
