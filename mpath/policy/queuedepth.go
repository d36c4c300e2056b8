//qpoll:hot

package policy

import "math"

// queueDepth takes the path with the fewest I/Os in flight, of this core now
// and of the others when they published last.
type queueDepth struct{ Base }

func (*queueDepth) Shared() bool { return true }

func (*queueDepth) Select(s *Set, _ int64, _ uint32, _ Dir) int {
	best, least := 0, int64(math.MaxInt64)
	for _, c := range s.Candidates() {
		slot := int(c & (MaxPaths - 1))
		if n := s.countAhead(slot); n < least {
			best, least = slot, n
		}
	}
	return best
}
