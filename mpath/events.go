package mpath

import (
	"sync"

	"github.com/qpoll/qpoll/nvme"
)

// Events are called when something notable happens in a subsystem, one at a
// time and in order, on a goroutine of their own: they may block and call any
// method. Nil members are skipped. What happened before Close returned may still
// be told after it.
type Events struct {
	// HeadAdded: a namespace was found that no head stood for.
	HeadAdded func(h *Head)
	// PathAdded and PathRemoved: a namespace has joined or left a head; err says
	// why it left.
	PathAdded   func(h *Head, p *Path)
	PathRemoved func(h *Head, p *Path, err error)
	// PathUp: a path takes I/O again, or for the first time. PathDown: it does
	// not any more; err says why, and is a *nvme.OpError, ErrANATT, or tells the
	// ANA state.
	PathUp   func(h *Head, p *Path)
	PathDown func(h *Head, p *Path, err error)
	// ANAChange: the ANA state of a path has changed; from is 0 for a new path.
	ANAChange func(h *Head, p *Path, from, to nvme.ANAState)
	// Failover: I/O of a channel was taken from a path because of st. It is told
	// once until the path has changed, not for each I/O.
	Failover func(h *Head, p *Path, st nvme.Status)
	// Policy: another I/O policy was put in force.
	Policy func(h *Head, from, to string)
	// Controller: an attempt to open a controller that was added failed and will
	// be repeated.
	Controller func(s *Subsystem, address string, err error)
	// Conflict: a namespace could not join a head, or not be identified.
	Conflict func(s *Subsystem, c *nvme.Controller, nsid uint32, err error)
}

// dispatcher calls listeners in order, away from whoever has news.
type dispatcher struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (d *dispatcher) post(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, f)
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *dispatcher) run() {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running, d.queue = false, nil
			d.mu.Unlock()
			return
		}
		f := d.queue[0]
		d.queue = d.queue[1:]
		d.mu.Unlock()
		f()
	}
}
