package poller

import (
	"runtime"
	"sync"
)

// crowd counts the busy pollers that run in this process. Each of them holds a
// processor of the Go scheduler all the time; with none left over, everything
// else waits for preemption.
var crowd crowding

type crowding struct {
	mu     sync.Mutex
	busy   int
	warned bool
}

// enter counts a busy poller that runs, and warns through it if it makes them
// too many; once, until there are fewer again.
func (c *crowding) enter(p *Poller) {
	procs := runtime.GOMAXPROCS(0)
	c.mu.Lock()
	c.busy++
	busy := c.busy
	warn := busy+1 > procs && !c.warned && p.hears()
	c.warned = c.warned || warn
	c.mu.Unlock()
	if !warn {
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

// leave counts a busy poller that ends.
func (c *crowding) leave() {
	procs := runtime.GOMAXPROCS(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.busy+1 <= procs {
		c.warned = false
	}
}

// hears reports whether anyone would notice a warning.
func (p *Poller) hears() bool { return p.cfg.Logger != nil || p.events.Crowded != nil }
