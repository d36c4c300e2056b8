//qpoll:hot

package policy

import "math/bits"

// roundRobin takes the next usable path after the one used last.
type roundRobin struct {
	Base
	last uint32
}

func (r *roundRobin) Select(s *Set, _ int64, _ uint32, _ Dir) int {
	r.last = s.after(r.last)
	return int(r.last)
}

// after returns the first candidate behind a slot, from the beginning again
// after the last one.
func (s *Set) after(slot uint32) uint32 {
	if later := s.mask >> 1 >> (slot & 31); later != 0 {
		return slot + 1 + uint32(bits.TrailingZeros32(later))
	}
	return uint32(bits.TrailingZeros32(s.mask))
}
