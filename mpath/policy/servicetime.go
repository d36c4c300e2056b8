//qpoll:hot

package policy

// serviceTime takes the path with the least bytes in flight per relative
// throughput.
type serviceTime struct {
	Base
	active [MaxPaths]uint8 // candidates that are not on standby, if there are any
	n      uint32
}

func (*serviceTime) Shared() bool { return true }

// Changed leaves out paths without a relative throughput, if others have one.
func (st *serviceTime) Changed(s *Set) {
	st.n = 0
	for _, c := range s.Candidates() {
		if s.weight[c&(MaxPaths-1)] != 0 {
			st.active[st.n&(MaxPaths-1)] = c
			st.n++
		}
	}
	if st.n == 0 {
		st.n = uint32(copy(st.active[:], s.Candidates()))
	}
}

func (st *serviceTime) Select(s *Set, _ int64, _ uint32, _ Dir) int {
	best := int(st.active[0] & (MaxPaths - 1))
	bytes, weight := s.bytesAhead(best), uint64(s.weight[best])
	for _, c := range st.active[1:max(st.n&(2*MaxPaths-1), 1)] {
		slot := int(c & (MaxPaths - 1))
		b, w := s.bytesAhead(slot), uint64(s.weight[slot])
		if sooner(b, w, bytes, weight) {
			best, bytes, weight = slot, b, w
		}
	}
	return best
}

// The shift that keeps products of bytes and weights within 64 bits.
const (
	weightBits = 7
	manyBytes  = ^uint64(0) >> weightBits
)

// sooner compares b/w with bytes/weight by products. Equal times go to the
// higher throughput. Without throughputs, fewer bytes win.
func sooner(b, w, bytes, weight uint64) bool {
	if (b|bytes)>>(64-weightBits) != 0 || b == manyBytes || bytes == manyBytes {
		b, bytes = b>>weightBits, bytes>>weightBits
	}
	if w|weight == 0 {
		return b < bytes
	}
	x, y := b*weight, bytes*w
	return x < y || x == y && w > weight
}
