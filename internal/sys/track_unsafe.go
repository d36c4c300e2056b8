package sys

import (
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/qpoll/qpoll/internal/invariants"
)

// Resource is a descriptor or mapping that this package opened and has not
// closed.
type Resource struct {
	FD    int    // -1 for a mapping
	Bytes int    // size of a mapping
	Stack string // where it was opened
}

var live struct {
	sync.Mutex
	fds      map[int]Resource
	mappings map[*byte]Resource
}

func init() {
	live.fds = map[int]Resource{}
	live.mappings = map[*byte]Resource{}
}

// Live returns what is open, for tests that look for leaks. It is kept in
// builds that check invariants only; there is nothing in others.
func Live() []Resource {
	live.Lock()
	defer live.Unlock()
	var rs []Resource
	for _, r := range live.fds {
		rs = append(rs, r)
	}
	for _, r := range live.mappings {
		rs = append(rs, r)
	}
	return rs
}

func opened(fd int) {
	if invariants.Enabled {
		live.Lock()
		defer live.Unlock()
		live.fds[fd] = Resource{FD: fd, Stack: string(debug.Stack())}
	}
}

func closed(fd int) {
	if invariants.Enabled {
		live.Lock()
		defer live.Unlock()
		delete(live.fds, fd)
	}
}

func mapped(b []byte) {
	if invariants.Enabled {
		live.Lock()
		defer live.Unlock()
		live.mappings[unsafe.SliceData(b)] = Resource{FD: -1, Bytes: len(b), Stack: string(debug.Stack())}
	}
}

func unmapped(b []byte) {
	if invariants.Enabled {
		live.Lock()
		defer live.Unlock()
		delete(live.mappings, unsafe.SliceData(b))
	}
}
