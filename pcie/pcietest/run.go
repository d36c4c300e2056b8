package pcietest

import (
	"runtime"
	"sync"
	"time"

	"github.com/qpoll/qpoll/internal/tsc"
)

// runner is the goroutine of Start.
type runner struct {
	mu   sync.Mutex
	quit chan struct{}
	done chan struct{}
}

// Start runs the controller on a goroutine of its own, locked to a thread,
// until Close or Stop. The clock is CLOCK_MONOTONIC. Starting it twice is no
// error.
func (c *Controller) Start() {
	r := &c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quit != nil {
		return
	}
	r.quit, r.done = make(chan struct{}), make(chan struct{})
	go c.loop(r.quit, r.done)
}

// Stop ends what Start began: the controller does nothing any more, as one that
// hangs. It can be started again.
func (c *Controller) Stop() { c.stop() }

func (c *Controller) stop() {
	r := &c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quit == nil {
		return
	}
	close(r.quit)
	<-r.done
	r.quit, r.done = nil, nil
}

// Naps between looks for work grow from minNap to maxNap.
const (
	minNap = 20 * time.Microsecond
	maxNap = 250 * time.Microsecond

	// stint is how many passes are made before the goroutine looks whether it
	// is to end.
	stint = 64
)

func (c *Controller) loop(quit, done chan struct{}) {
	defer close(done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last, nap := tsc.Now(), minNap
	for {
		select {
		case <-quit:
			return
		default:
		}
		now := tsc.Now()
		if c.stint(now) > 0 {
			last, nap = now, minNap
			continue
		}
		if c.waiting.Load() > 0 {
			runtime.Gosched()
		}
		if c.cfg.Spin >= 0 && now-last > int64(c.cfg.Spin) {
			time.Sleep(nap)
			nap = min(2*nap, maxNap)
		}
	}
}

// stint makes some passes with the controller held, fewer if somebody else
// wants it, and returns how much was done.
func (c *Controller) stint(now int64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.guarded(now, stint)
}

func (c *Controller) passes(now int64, count int) (n int) {
	for {
		n += c.pass(now)
		if count--; count == 0 || c.waiting.Load() > 0 {
			return n
		}
		now = tsc.Now()
	}
}
