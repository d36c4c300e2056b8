//qpoll:hot

package policy

import "math"

// queueDepth takes the path with the fewest I/Os in flight: of this core now,
// and of the others when they published last.
type queueDepth struct {
	hi    int
	count [MaxPaths]int64 // of candidates; others are never the least
}

func (*queueDepth) Shared() bool { return true }

func (q *queueDepth) Select(*Set, int64, uint32, Dir) int {
	best, least := 0, int64(math.MaxInt64)
	for slot, n := range q.count[:q.hi&(2*MaxPaths-1)] {
		if n < least {
			best, least = slot, n
		}
	}
	return best
}

func (q *queueDepth) Dispatched(s *Set, t *Ticket) { q.recount(s, t.slot) }

func (q *queueDepth) Completed(s *Set, t *Ticket, _ int64, _ bool) { q.recount(s, t.slot) }

func (q *queueDepth) recount(s *Set, slot uint8) {
	slot &= MaxPaths - 1
	if q.count[slot] != math.MaxInt64 {
		q.count[slot] = s.countAhead(int(slot))
	}
}

// Changed leaves out what is no candidate.
func (q *queueDepth) Changed(s *Set) {
	q.hi = int(s.slots)
	for slot := range q.count {
		q.count[slot] = math.MaxInt64
	}
	q.Tick(s, 0)
}

// Tick counts anew with what others have published.
func (q *queueDepth) Tick(s *Set, _ int64) {
	for _, c := range s.Candidates() {
		q.count[c&(MaxPaths-1)] = s.countAhead(int(c))
	}
}
