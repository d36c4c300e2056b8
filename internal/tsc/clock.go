package tsc

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	fraction = 52 // binary places of line.mult; rates down to 245 kHz fit 64 bits

	minFrequency = 1_000_000      // Hz; below this a counter is no clock for I/O
	maxFrequency = 64_000_000_000 // Hz; above this a measurement has failed

	// minBaseline is how long the counter is watched before its measured rate
	// is used: two readings off by 20 ns make an error of 20 ppm.
	minBaseline = 2 * time.Millisecond

	// agree is the most, as a divisor, by which a stated rate may differ from
	// the measured one and still be believed.
	agree = 100
)

// multiplier is 1e9/freq with fraction binary places.
func multiplier(freq uint64) uint64 {
	const ns = 1_000_000_000
	q, _ := bits.Div64(ns>>(64-fraction), ns<<fraction&(1<<64-1), freq)
	return q
}

// clock is a counter with its calibration. There is one; tests make others.
type clock struct {
	current atomic.Pointer[line] // nil until the first reading, or for good

	ticks  func() uint64 // the counter
	mono   func() int64  // CLOCK_MONOTONIC, ns
	stated uint64        // Hz by the processor's word, 0 if none
	trust  func() bool   // whether the counter may be used; asked once

	anchorTicks uint64 // a reading of both clocks from early on
	anchorNS    int64

	mu      sync.Mutex
	refused atomic.Bool // the counter is not used
	freq    atomic.Uint64
}

// begin takes the anchor that rates are measured from.
func (c *clock) begin() { c.anchorTicks, c.anchorNS = c.sample() }

// sample reads both clocks at one moment, as well as that can be done: the
// counter is read on both sides of CLOCK_MONOTONIC, and the tightest of a few
// tries is kept.
func (c *clock) sample() (ticks uint64, ns int64) {
	best := ^uint64(0)
	for range 8 {
		before := c.ticks()
		now := c.mono()
		after := c.ticks()
		if width := after - before; width < best {
			best, ticks, ns = width, before+width/2, now
		}
	}
	return ticks, ns
}

// calibrate begins a new line, at the rate measured since the anchor. It waits
// out minBaseline if that has not passed yet. The caller holds mu.
func (c *clock) calibrate() {
	if c.refused.Load() {
		return
	}
	ticks, ns := c.sample()
	for time.Duration(ns-c.anchorNS) < minBaseline {
		Pause()
		ticks, ns = c.sample()
	}
	old := c.current.Load()
	freq := c.frequency(ticks-c.anchorTicks, ns-c.anchorNS)
	if freq == 0 {
		c.refused.Store(old == nil) // a clock in use keeps its line
		return
	}
	next := &line{start: ticks, ns: ns, mult: multiplier(freq)}
	if old != nil {
		old.retired.Store(true)
		next.start = c.ticks()
		next.ns = old.at(next.start)
	}
	c.freq.Store(freq)
	c.current.Store(next)
}

// ensure calibrates if nothing has yet.
func (c *clock) ensure() {
	if c.refused.Load() || c.current.Load() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.Load() != nil {
		return
	}
	if !c.trust() {
		c.refused.Store(true)
		return
	}
	c.calibrate()
}

// frequency is the stated rate where the measurement bears it out, else the
// measured one, else 0: unusable.
func (c *clock) frequency(ticks uint64, ns int64) uint64 {
	hi, lo := bits.Mul64(ticks, 1_000_000_000)
	if ns <= 0 || hi >= uint64(ns) {
		return 0
	}
	measured, _ := bits.Div64(hi, lo, uint64(ns))
	if measured < minFrequency || measured > maxFrequency {
		return 0
	}
	if off := int64(c.stated - measured); c.stated != 0 && max(off, -off) < int64(measured/agree) {
		return c.stated
	}
	return measured
}

// slow is the first reading, one that met a calibration, or one without a
// usable counter.
func (c *clock) slow() int64 {
	c.ensure()
	if c.refused.Load() {
		return c.mono()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Load().at(c.ticks())
}
