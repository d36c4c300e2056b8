//qpoll:hot

package policy

import "math"

// model is what the expected-delay policy knows of a path on this core.
//
// Two lines of thought meet in it. What an I/O will take is what I/Os have taken
// lately: the intercept is a moving average of what latencies exceed the rest of
// the model by, so that their expectation is right whatever the rest is worth.
// What makes one choice differ from the next is how much is in flight: the slope
// turns that into time, and only has to be near the inverse of the rate at
// which the path delivers.
type model struct {
	base, slow float64 // ns: quick and slow moving average of the intercept
	slope      float64 // ns per byte
	delay      float64 // ns: moving average of latencies
	last       float64 // ns: the last latency
	samples    uint64

	others float64 // in flight of other cores, in bytes, as far as it counts
	share  float64 // how much of a latency a publish interval is: 0 very long, 1 short
	recent float64 // bytes that this core dispatched lately
	stall  float64 // ns that nothing has come back for, too long

	sent, done, busy int64 // times of the last dispatch and completion, and since when I/Os are in flight
	candidate        bool

	floor floor
	rate  rate
}

// Weights of a new sample.
const (
	quickWeight = 1.0 / 8
	slowWeight  = 1.0 / 64
	mostWeight  = 1.0 / 2
	forgetAfter = 50e6 // ns between samples after which one counts as much as all before
)

// ahead is how much an I/O is taken to have before it on a path: what this core
// has in flight there, what others had in flight, and what others are expected
// to have put there since, having seen the same.
func (m *model) ahead(own, gain float64) float64 {
	return own + times(m.share, times(gain, own+m.recent)+m.others)
}

// intercept is the larger average, so that bad news count at once and good news
// when they have been confirmed.
func (m *model) intercept() float64 { return max(m.base, m.slow) }

// learn takes in the latency of an I/O: how much of it the model without its
// intercept foretold, and how many bytes were ahead, its own included.
func (m *model) learn(ns, foretold, ahead float64, now int64) {
	m.floor.add(ns, now)
	m.last = ns
	rest := ns - foretold
	gap := float64(now - m.rate.last)
	m.rate.last = now
	m.samples++
	if m.samples == 1 {
		m.delay = ns
		m.slope = ns / ahead
		m.base = ns - times(m.slope, ahead)
		m.slow = m.base
		m.rate.reset(m.slope, now)
		return
	}
	w := min(max(quickWeight, gap*(1/forgetAfter)), mostWeight)
	m.delay += times(w, ns-m.delay)
	m.base += times(w, rest-m.base)
	w = min(max(slowWeight, gap*(1/forgetAfter/8)), mostWeight)
	m.slow += times(w, rest-m.slow)
	m.rate.add(ns, ahead)
	if m.rate.n >= rateSamples && now-m.rate.begun >= rateTime {
		m.bend(m.rate.close(m.floor.value(), now))
	}
}

// bend changes the slope, and with it the averages so that what is foretold for
// the present load stays as it is.
func (m *model) bend(slope float64) {
	if slope == m.slope || !(slope > 0) {
		return
	}
	m.slope = slope
}

// floor is a windowed minimum of latencies.
type floor struct {
	current, before float64
	since           int64
}

const floorTime = 5e9 // ns

func (f *floor) add(ns float64, now int64) {
	if now-f.since > floorTime {
		f.before, f.current, f.since = f.current, math.Inf(1), now
		if f.before == 0 {
			f.before = f.current
		}
	}
	f.current = min(f.current, ns)
}

func (f *floor) value() float64 { return min(f.current, f.before) }

// rate finds the inverse of the rate at which a path delivers: the windowed
// minimum of latency over bytes ahead, less what is base latency anyway.
type rate struct {
	ns, bytes float64
	n         int
	begun     int64
	last      int64
	least     [rateWindows]float64
	at        uint
}

const (
	rateWindows = 4
	rateSamples = 32
	rateTime    = 4e6 // ns
	leastShare  = 1.0 / 4
)

func (r *rate) reset(slope float64, now int64) {
	for i := range r.least {
		r.least[i] = slope
	}
	r.ns, r.bytes, r.n, r.begun = 0, 0, 0, now
}

func (r *rate) add(ns, ahead float64) {
	r.ns += ns
	r.bytes += ahead
	r.n++
}

// close ends a window and returns the slope.
func (r *rate) close(floor float64, now int64) float64 {
	r.least[r.at&(rateWindows-1)] = max(r.ns-times(float64(r.n), floor), times(leastShare, r.ns)) / r.bytes
	r.at++
	r.ns, r.bytes, r.n, r.begun = 0, 0, 0, now
	least := r.least[0]
	for _, v := range r.least[1:] {
		least = min(least, v)
	}
	return least
}
