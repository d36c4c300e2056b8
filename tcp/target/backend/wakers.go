package backend

import (
	"slices"
	"sync"

	"github.com/qpoll/qpoll/poller"
)

// wakers are pollers to be woken, which may sleep, when something changes.
type wakers struct {
	mu      sync.Mutex
	pollers []*poller.Poller
}

func (w *wakers) add(p *poller.Poller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pollers = append(w.pollers, p)
}

func (w *wakers) remove(p *poller.Poller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.pollers, p); i >= 0 {
		w.pollers = slices.Delete(w.pollers, i, i+1)
	}
}

// all wakes every poller. One with a full mailbox is awake, and one that is
// closed has nothing to do.
func (w *wakers) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pollers {
		_ = p.Post(nothing)
	}
}

func nothing() {}
