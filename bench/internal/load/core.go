package load

import (
	"runtime/metrics"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/poller"
)

// core is a poller and the workers on it. All but poller belongs to the core.
type core struct {
	poller  *poller.Poller
	workers []*worker
	opens   *poller.Timer
	closes  *poller.Timer
	before  usage // when the window was opened
	after   usage // when it was closed
}

// usage is what had been used up at a moment.
type usage struct {
	taken   bool
	at      int64 // on the poller's clock
	stats   poller.Stats
	thread  time.Duration
	process time.Duration
	allocs  uint64 // of the process, objects
}

func (c *core) usage() usage {
	return usage{
		taken: true, at: c.poller.Now(), stats: c.poller.Stats(),
		thread: sys.ThreadCPUTime(), process: sys.ProcessCPUTime(), allocs: allocations(),
	}
}

// allocations returns how many objects the process has allocated.
func allocations() (n uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			n += s.Value.Uint64()
		}
	}
	return n
}

// watch takes the usage at both ends of the window, each in the first pass
// that begins no earlier.
func (c *core) watch(from, until int64) {
	now := c.poller.Now()
	c.opens = c.poller.AfterFunc(time.Duration(from-now), func() {
		c.poller.ResetGaps()
		c.before = c.usage()
	})
	c.closes = c.poller.AfterFunc(time.Duration(until-now), c.close)
}

// close takes the usage at the end, once.
func (c *core) close() {
	if c.before.taken && !c.after.taken {
		c.after = c.usage()
	}
	c.forget()
}

// forget stops the timers.
func (c *core) forget() {
	for _, t := range []*poller.Timer{c.opens, c.closes} {
		if t != nil {
			t.Stop()
		}
	}
}

// Usage is what the poller of a core did within the window.
type Usage struct {
	Core    int           // -1: not pinned
	Name    string        // of the poller
	IOs     uint64        // completed in the window
	Window  time.Duration // between the two looks at the poller; 0: it was not seen twice
	Thread  time.Duration // processor time of the poller's thread
	Process time.Duration // processor time of the process
	Allocs  uint64        // objects that the process has allocated
	Stats   poller.Stats
}

func (c *core) result() Usage {
	c.close()
	u := Usage{Core: c.poller.Core(), Name: c.poller.Name()}
	for _, w := range c.workers {
		u.IOs += w.ios
	}
	if !c.after.taken {
		return u
	}
	u.Stats = c.after.stats.Sub(c.before.stats)
	u.Window = time.Duration(c.after.at - c.before.at)
	u.Thread = c.after.thread - c.before.thread
	u.Process = c.after.process - c.before.process
	u.Allocs = c.after.allocs - c.before.allocs
	return u
}
