// Package devmem accesses the memory of devices that may vanish: after a function
// was pulled out, or when the program that emulates it cut its file short, an
// access to the mapping raises SIGBUS, which ends a Go program. Here it is a
// result.
//
// Go has no handler for it that could put other memory in place, but
// [debug.SetPanicOnFault] makes the signal a panic of the goroutine that made the
// access. It is turned on and off around the accesses only, which are of addresses
// that were checked before, so that no other fault is taken for one of a device.
//
// A function that was pulled out need not fault: on most machines loads then give
// all ones, and stores are lost. Whoever reads all ones has to look closer.
package devmem

import (
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/qpoll/qpoll/internal/mmio"
)

// ErrFault: the device's memory is not there any more.
var ErrFault = errors.New("devmem: the device's memory is gone")

// finish is what the functions of this package defer.
func finish(old bool, ok *bool) {
	if !old {
		debug.SetPanicOnFault(false)
	}
	if *ok {
		return
	}
	r := recover()
	if r == nil {
		return // the goroutine exits
	}
	if !isFault(r) {
		panic(r)
	}
}

// isFault tells whether a panic is of the runtime. The address of a fault does not
// help to tell: emulators do not always report it.
func isFault(r any) bool {
	_, ok := r.(runtime.Error)
	return ok
}

// Ring stores to up to two doorbells, in order; a register that is not valid is
// left out. It reports whether there was memory to take the stores. It does not
// allocate, and costs a few nanoseconds more than the stores: once per pass of a
// poller.
func Ring(a mmio.Register32, va uint32, b mmio.Register32, vb uint32) (ok bool) {
	defer finish(debug.SetPanicOnFault(true), &ok)
	if a.Valid() {
		a.Store(va)
	}
	if b.Valid() {
		b.Store(vb)
	}
	return true
}

// access calls f, which makes one access and nothing else.
func access(f func() error) (err error) {
	ok := false
	func() {
		defer finish(debug.SetPanicOnFault(true), &ok)
		err = f()
		ok = true
	}()
	if !ok {
		return ErrFault
	}
	return err
}

// Read32 is [mmio.Window.Read32]; the error may be [ErrFault].
func Read32(w mmio.Window, off uint64) (v uint32, err error) {
	err = access(func() (err error) { v, err = w.Read32(off); return err })
	return v, err
}

// Read64 is [mmio.Window.Read64]; the error may be [ErrFault].
func Read64(w mmio.Window, off uint64) (v uint64, err error) {
	err = access(func() (err error) { v, err = w.Read64(off); return err })
	return v, err
}

// Write32 is [mmio.Window.Write32]; the error may be [ErrFault].
func Write32(w mmio.Window, off uint64, v uint32) error {
	return access(func() error { return w.Write32(off, v) })
}

// Write64 is [mmio.Window.Write64]; the error may be [ErrFault].
func Write64(w mmio.Window, off uint64, v uint64) error {
	return access(func() error { return w.Write64(off, v) })
}
