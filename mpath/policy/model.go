//qpoll:hot

package policy

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
	load       float64 // bytes: moving average of what was reckoned to be ahead
	samples    uint64

	others float64 // in flight of other cores, in bytes, as far as it counts
	share  float64 // how much of a latency a publish interval is: 0 very long, 1 short
	recent float64 // bytes that this core dispatched lately
	toll   float64 // ns
	stall  float64 // ns that nothing has come back for, too long

	heard      int64 // when an I/O was last dispatched, or another core's completed
	done, busy int64 // when one completed last, and since when some are in flight
	told       int64 // done as others know it
	candidate  bool

	floor floor
	rate  rate
}

// Weights of a new sample.
const (
	quickWeight = 1.0 / 8
	slowWeight  = 1.0 / 64
	mostWeight  = 1.0 / 2
	tollShare   = 0.0
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
func (m *model) intercept() float64 { return max(m.base, m.slow) + m.toll }

// learn takes in the latency of an I/O, given how many bytes were reckoned to be
// ahead of it, and how many were known to be, its own included.
func (m *model) learn(ns, reckoned, known float64, now int64) {
	m.floor.add(ns, now)
	m.last = ns
	gap := float64(now - m.rate.last)
	m.rate.last = now
	m.samples++
	if m.samples == 1 {
		m.delay, m.load = ns, reckoned
		m.slope = ns / known
		m.base = ns - times(m.slope, reckoned)
		m.slow = m.base
		m.rate.reset(m.slope, now)
		return
	}
	rest := ns - times(m.slope, reckoned)
	w := min(max(quickWeight, gap*(1/forgetAfter)), mostWeight)
	m.delay += times(w, ns-m.delay)
	m.base += times(w, rest-m.base)
	w = min(max(slowWeight, gap*(1/forgetAfter/8)), mostWeight)
	m.slow += times(w, rest-m.slow)
	m.load += times(w, reckoned-m.load)
	m.toll = times(tollShare, max(m.delay-m.floor.value(), 0))
	m.rate.add(ns, known)
}

// bend changes the slope, and the intercept so that what is foretold for the
// usual load stays as it is.
func (m *model) bend(slope float64) {
	shift := times(m.slope-slope, m.load)
	m.slope = slope
	m.base += shift
	m.slow += shift
}

// floor is a windowed minimum of latencies.
type floor struct {
	current, before float64
	since           int64
}

const floorTime = 5e9 // ns

func (f *floor) add(ns float64, now int64) {
	switch {
	case f.current == 0: // the first
		f.before, f.current, f.since = ns, ns, now
	case now-f.since > floorTime:
		f.before, f.current, f.since = f.current, ns, now
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
	rateTime    = 4e6   // ns
	rateLong    = 500e6 // ns
	leastShare  = 1.0 / 2
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

// full tells whether a window is to be closed.
func (r *rate) full(now int64) bool {
	age := now - r.begun
	return r.n >= rateSamples && age >= rateTime || age >= rateLong && r.n > 0
}

// close ends a window and returns the slope. It is never so flat that all that
// is in flight on all paths would make no difference.
func (r *rate) close(floor, total float64, now int64) float64 {
	slope := max(r.ns-times(float64(r.n), floor), 0) / r.bytes
	if total > 0 {
		slope = max(slope, leastShare*r.ns/(float64(r.n)*total))
	}
	r.least[r.at&(rateWindows-1)] = slope
	r.at++
	r.ns, r.bytes, r.n, r.begun = 0, 0, 0, now
	for _, v := range r.least {
		slope = min(slope, v)
	}
	return slope
}
