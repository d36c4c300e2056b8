//qpoll:hot

package policy

import "math"

// What the expected-delay policy looks after once per publish interval.
const (
	stallFactor = 4     // expected delays without a completion that are a stall
	probeShare  = 2048  // at most one I/O in so many is a probe
	probeSoon   = 100e6 // ns: not sooner than this, unless the last probe came back quickly
	probeLate   = 400e6 // ns: nor later than this, and up to half as much again, so that cores take turns
	probeAsk    = 16    // publish intervals between looks at what others have heard of an idle path
	probeGood   = 1.5   // a latency of so many times the best is worth another look at once
	avgWeight   = 1.0 / 64
)

// Changed forgets paths that are gone or were reset and prices the others.
func (e *expectedDelay) Changed(s *Set) {
	e.probe = -1
	e.hi = int(s.slots)
	for slot := range MaxPaths {
		m := &e.models[slot]
		if s.known>>slot&1 == 0 {
			*m = model{}
		}
		m.candidate = s.mask>>slot&1 != 0
		if !m.candidate {
			e.row[slot] = edRow{cost: math.Inf(1)}
		}
	}
	e.adopt(s)
	e.priceAll(s)
}

// Tick takes in the others' snapshots and looks for paths that stand still and
// for one to be probed.
func (e *expectedDelay) Tick(s *Set, now int64) {
	var own, others float64
	for slot := range s.slots {
		m := &e.models[slot&(MaxPaths-1)]
		m.others = effective(&s.others[slot&(MaxPaths-1)])
		m.recent *= 0.5
		m.tell(s, int(slot&(MaxPaths-1)))
		m.share = m.delay / (m.delay + float64(s.interval))
		own += effective(&s.own[slot&(MaxPaths-1)])
		others += m.others
	}
	e.ownAvg += times(avgWeight, own-e.ownAvg)
	e.allAvg += times(avgWeight, others-e.allAvg)
	e.gain = min(e.allAvg/max(e.ownAvg, 1), float64(s.active-1))
	e.adopt(s)
	best := e.priceAll(s)
	e.stalls(s, now)
	e.seek(s, now, best)
}

// adopt gives paths without samples the model of the best that has some.
func (e *expectedDelay) adopt(s *Set) {
	base, slope := math.Inf(1), 0.0
	for _, c := range s.Candidates() {
		if m := &e.models[c&(MaxPaths-1)]; m.samples != 0 {
			base = min(base, m.intercept())
			slope = max(slope, m.slope)
		}
	}
	if slope == 0 {
		base, slope = 0, 1
	}
	for _, c := range s.Candidates() {
		if m := &e.models[c&(MaxPaths-1)]; m.samples == 0 {
			m.base, m.slow, m.slope = base, base, slope
		}
	}
}

// priceAll works out all rows and returns the least cost.
func (e *expectedDelay) priceAll(s *Set) float64 {
	best := math.Inf(1)
	for _, c := range s.Candidates() {
		slot := int(c & (MaxPaths - 1))
		e.price(slot, effective(&s.own[slot]))
		best = min(best, e.row[slot].cost)
	}
	return best
}

// stalls holds it against a path when nothing has come back from it for some
// expected delays.
func (e *expectedDelay) stalls(s *Set, now int64) {
	for _, c := range s.Candidates() {
		slot := int(c & (MaxPaths - 1))
		m := &e.models[slot]
		if s.own[slot].Count == 0 || m.samples == 0 {
			continue
		}
		age := float64(now - max(m.done, m.busy))
		if age > times(stallFactor, m.delay) {
			m.stall = age
			e.price(slot, effective(&s.own[slot]))
		}
	}
}

// seek finds a path that has nothing in flight and was not used for long, nor
// by other cores.
func (e *expectedDelay) seek(s *Set, now int64, best float64) {
	e.ticks++
	if e.probe >= 0 {
		return
	}
	for range s.slots {
		e.turn++
		slot := e.turn % int(s.slots)
		m := &e.models[slot]
		if !m.candidate || s.own[slot].Count != 0 {
			continue
		}
		if e.ticks%probeAsk == 0 {
			m.hear(s, slot)
		}
		idle := float64(now - m.heard)
		paid := e.count-e.probed >= probeShare && idle >= probeSoon
		late := probeLate * (1 + float64(uint8(s.core*101+slot*37+int(e.probed)))/512)
		if paid || idle >= late || m.last < times(probeGood, best) {
			e.probe = slot
			return
		}
	}
}

// hear takes the latest word of other cores on an idle path.
func (m *model) hear(s *Set, slot int) {
	for i := range s.group.published {
		pub := &s.group.published[i]
		if pub == s.pub {
			continue
		}
		h := pub.hint[slot].Load()
		if at := int64(h>>hintBits) * hintTime; h != 0 && at > m.heard {
			m.heard = at
			m.last = float64(h&(1<<hintBits-1)) * hintUnit
		}
	}
}

// A hint is a latency, and when it was measured.
const (
	hintBits = 24
	hintUnit = 1e3 // ns: of the latency
	hintTime = 1e6 // ns: of the time
)

// tell publishes the last latency of a path.
func (m *model) tell(s *Set, slot int) {
	if m.told == m.done {
		return
	}
	m.told = m.done
	us := uint64(min(m.last/hintUnit, 1<<hintBits-1))
	s.pub.hint[slot].Store(uint64(m.done/hintTime)<<hintBits | us)
}
