package sys

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Resource is a descriptor or a mapping that this package opened and has not
// closed yet.
type Resource struct {
	FD      int     // -1 for a mapping
	Address uintptr // start of a mapping
	Bytes   int     // size of a mapping
	Stack   string  // where it was opened
}

// tracker remembers what is open, by descriptor and by start of the mapping.
// It is for tests: off, it costs a load for each set-up call.
var tracker struct {
	on       atomic.Bool
	mu       sync.Mutex
	fds      map[int]Resource
	mappings map[uintptr]Resource
}

// Track begins to remember what is opened, with its stack. Tests that look for
// leaks turn it on.
func Track() {
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	if !tracker.on.Load() {
		tracker.fds = map[int]Resource{}
		tracker.mappings = map[uintptr]Resource{}
		tracker.on.Store(true)
	}
}

// Tracked returns what was opened since [Track] and is open still.
func Tracked() []Resource {
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	var open []Resource
	for _, r := range tracker.fds {
		open = append(open, r)
	}
	for _, r := range tracker.mappings {
		open = append(open, r)
	}
	return open
}

func opened(fd int) {
	if tracker.on.Load() {
		r := Resource{FD: fd, Stack: string(debug.Stack())}
		tracker.mu.Lock()
		defer tracker.mu.Unlock()
		tracker.fds[fd] = r
	}
}

func closing(fd int) {
	if tracker.on.Load() {
		tracker.mu.Lock()
		defer tracker.mu.Unlock()
		delete(tracker.fds, fd)
	}
}

func mapped(b []byte) {
	if tracker.on.Load() {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		r := Resource{FD: -1, Address: start, Bytes: len(b), Stack: string(debug.Stack())}
		tracker.mu.Lock()
		defer tracker.mu.Unlock()
		tracker.mappings[start] = r
	}
}

func unmapping(b []byte) {
	if tracker.on.Load() {
		tracker.mu.Lock()
		defer tracker.mu.Unlock()
		delete(tracker.mappings, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	}
}
