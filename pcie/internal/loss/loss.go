// Package loss has what a device remembers about its loss.
package loss

import (
	"sync"
	"sync/atomic"
)

// Watch remembers whether a device is gone, and who wants to know. The zero
// value is a device that is there.
type Watch struct {
	gone atomic.Bool
	mu   sync.Mutex
	tell []func()
}

// Gone reports whether the device is gone: one atomic load.
func (w *Watch) Gone() bool { return w.gone.Load() }

// OnGone has f called once when the device goes, at once if it has gone.
func (w *Watch) OnGone(f func()) {
	w.mu.Lock()
	if !w.gone.Load() {
		w.tell = append(w.tell, f)
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	f()
}

// End makes the device gone, which is news to nobody: it is being closed.
func (w *Watch) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell = nil
	w.gone.Store(true)
}

// Set says that the device is gone. Calls after the first do nothing.
func (w *Watch) Set() {
	w.mu.Lock()
	tell := w.tell
	w.tell = nil
	w.gone.Store(true)
	w.mu.Unlock()
	for _, f := range tell {
		f()
	}
}
