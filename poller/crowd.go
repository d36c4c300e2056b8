package poller

import (
	"runtime"
	"sync"
)

// crowd counts the busy pollers that run in this process. Each of them holds a
// processor of the Go scheduler all the time; with none left over, everything
// else waits for preemption.
var crowd = crowding{procs: func() int { return runtime.GOMAXPROCS(0) }}

type crowding struct {
	procs  func() int
	mu     sync.Mutex
	busy   int
	warned bool
}

// enter counts a busy poller that runs.
func (c *crowding) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
}

// leave counts a busy poller that ends.
func (c *crowding) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.busy+1 <= c.procs() {
		c.warned = false
	}
}

// warn tells p, which has just entered, if the busy pollers are too many now;
// once, until there have been fewer again.
func (c *crowding) warn(p *Poller) {
	if p.cfg.Logger == nil && p.events.Crowded == nil {
		return
	}
	busy, procs, first := c.look()
	if !first {
		return
	}
	if p.cfg.Logger != nil {
		p.cfg.Logger.Warn("busy pollers leave no processor to the rest of the program; raise GOMAXPROCS",
			"poller", p.name, "busy", busy, "gomaxprocs", procs)
	}
	if p.events.Crowded != nil {
		p.events.Crowded(p, busy, procs)
	}
}

// look counts, and reports whether it is the first to see too many.
func (c *crowding) look() (busy, procs int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	procs = c.procs()
	first = c.busy+1 > procs && !c.warned
	c.warned = c.warned || first
	return c.busy, procs, first
}
