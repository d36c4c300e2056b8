package poller

import (
	"testing"
	"unsafe"
)

// What a pass touches lies in the first two cache lines, the consumer's end of
// the mailbox included, and what others write or read is well apart from it.
func TestLayout(t *testing.T) {
	var p Poller
	const first = cacheLine - mallocHeader
	mailbox := unsafe.Offsetof(p.mailbox)
	tail := mailbox + unsafe.Offsetof(p.mailbox.tail)
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"flags of the pass", unsafe.Offsetof(p.begun)-first < cacheLine},
		{"consumer of the mailbox", mailbox+unsafe.Offsetof(p.mailbox.head)-first < 2*cacheLine},
		{"tail after the consumer", tail >= mailbox+unsafe.Offsetof(p.mailbox.head)+linePad},
		{"counters after the tail", unsafe.Offsetof(p.counters) >= tail+linePad},
		{"owner after the counters", unsafe.Offsetof(p.owner) >= unsafe.Offsetof(p.counters)+unsafe.Sizeof(p.counters)+linePad},
		{"published after the owner", unsafe.Offsetof(p.published) >= unsafe.Offsetof(p.asleep)+linePad},
		{"the rest after what is published", unsafe.Offsetof(p.timers) >= unsafe.Offsetof(p.published)+unsafe.Sizeof(p.published)+linePad},
	} {
		if !c.ok {
			t.Errorf("%s: wrong place", c.name)
		}
	}
}

// The first line of a pass must be a cache line. If this fails, the allocator
// has changed: see mallocHeader.
func TestAlignment(t *testing.T) {
	for range 10 {
		p := newPoller(t, Config{})
		if at := uintptr(unsafe.Pointer(&p.now)); at%cacheLine != 0 {
			t.Errorf("the first line of a pass is at %#x", at)
		}
	}
}
