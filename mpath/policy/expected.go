//qpoll:hot

package policy

import "math"

// expectedDelay takes the path on which an I/O is expected to end first, by a
// model of each path that it learns from completions:
//
//	delay = base + slope * (bytes ahead + bytes of the I/O)
//
// Selection adds and compares what was worked out at the last dispatch,
// completion or tick that concerned a path. See model for how it learns, and
// watch for paths that stand still or lie idle.
type expectedDelay struct {
	row    [MaxPaths]edRow
	probe  int // slot to be tried next, or -1
	hi     int // slots that rows are set for
	models [MaxPaths]model
	gain   float64 // of others: by how much they are expected to do as this core does
	ownAvg float64 // moving averages that gain comes from
	allAvg float64
	count  uint64 // I/Os dispatched
	probed uint64 // count at the last probe
	ticks  uint64
	turn   int // where the search for a path to probe goes on
}

// edRow is what Select looks at, for a path.
type edRow struct {
	cost  float64 // ns, for an I/O without any bytes
	slope float64 // ns per byte
}

// perIO is what an I/O costs beside its bytes, in bytes: headers, and the work
// of either side.
const perIO = 1 << 10

func (*expectedDelay) Shared() bool { return true }

// times is a product that is rounded on every machine; without a call, some
// would fuse it with a sum.
func times(a, b float64) float64 { return float64(a * b) }

func effective(l *Load) float64 { return float64(l.Bytes + l.Count*perIO) }

func (e *expectedDelay) Select(_ *Set, _ int64, bytes uint32, _ Dir) int {
	if e.probe >= 0 {
		return e.probe
	}
	n := float64(bytes)
	best, least := 0, math.Inf(1)
	for slot := range e.row[:e.hi&(2*MaxPaths-1)] {
		r := &e.row[slot]
		if c := r.cost + float64(r.slope*n); c < least {
			best, least = slot, c
		}
	}
	return best
}

// Dispatched notes in the ticket what the model makes of the I/O, so that its
// latency can be held against that.
func (e *expectedDelay) Dispatched(s *Set, t *Ticket) {
	slot := t.slot & (MaxPaths - 1)
	m := &e.models[slot]
	u := float64(t.bytes + perIO)
	own := effective(&s.own[slot]) // with this I/O
	t.Word[0] = math.Float32bits(float32(m.ahead(own-u, e.gain) + u))
	t.Word[1] = math.Float32bits(float32(own + m.others))
	if s.own[slot].Count == 1 {
		m.busy = t.at
	}
	m.recent += u
	m.heard = t.at
	e.count++
	if e.probe == int(slot) {
		e.probe = -1
		e.probed = e.count
	}
	e.price(int(slot), own)
}

func (e *expectedDelay) Completed(s *Set, t *Ticket, now int64, ok bool) {
	slot := t.slot & (MaxPaths - 1)
	m := &e.models[slot]
	m.stall = 0
	m.done = now
	if ok {
		m.learn(float64(now-t.at), float64(math.Float32frombits(t.Word[0])), float64(math.Float32frombits(t.Word[1])), now)
		if m.rate.full(now) {
			m.bend(m.rate.close(m.floor.value(), e.ownAvg+e.allAvg, now))
		}
	}
	e.price(int(slot), effective(&s.own[slot]))
}

// price works out the row of a path that has so much of this core in flight.
func (e *expectedDelay) price(slot int, own float64) {
	m := &e.models[slot]
	if !m.candidate {
		return
	}
	r := &e.row[slot]
	r.slope = m.slope
	r.cost = m.intercept() + m.stall + times(m.slope, m.ahead(own, e.gain)+perIO)
}
