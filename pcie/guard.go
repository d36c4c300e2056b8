package pcie

import (
	"encoding/binary"
	"runtime/debug"
)

// guarded runs f, which accesses a device's memory, and reports whether that
// went well. A device whose memory has gone is gone.
func (t *transport) guarded(f func() error) bool {
	err := error(nil)
	if protect(func() { err = f() }) && err == nil {
		return true
	}
	t.vanished()
	return false
}

func protect(f func()) (ok bool) {
	defer caught(debug.SetPanicOnFault(true), &ok)
	f()
	return true
}

func le64(b []byte) uint64       { return binary.LittleEndian.Uint64(b) }
func putLE64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
