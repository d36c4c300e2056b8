//qpoll:hot

package policy

// serviceTime takes the path with the least bytes in flight per relative
// throughput.
type serviceTime struct {
	n   uint32
	row [MaxPaths]stRow // of the paths to choose from, in order
	at  [MaxPaths]uint8 // where the row of a slot is, or none
}

type stRow struct {
	bytes  uint64
	weight uint32
	slot   uint32
}

const none = MaxPaths

func (*serviceTime) Shared() bool { return true }

func (st *serviceTime) Select(*Set, int64, uint32, Dir) int {
	best := &st.row[0]
	for i := range st.row[:st.n&(2*MaxPaths-1)] {
		if r := &st.row[i]; r.sooner(best) {
			best = r
		}
	}
	return int(best.slot)
}

// The shift that keeps products of bytes and weights within 64 bits.
const (
	weightBits = 7
	manyBytes  = ^uint64(0) >> weightBits
)

// sooner compares two service times, which are bytes per weight, by products.
// Equal times go to the higher throughput. Without throughputs, fewer bytes win.
func (r *stRow) sooner(o *stRow) bool {
	b, bytes := r.bytes, o.bytes
	if max(b, bytes) >= manyBytes {
		b, bytes = b>>weightBits, bytes>>weightBits
	}
	x, y := b*uint64(o.weight), bytes*uint64(r.weight)
	if x != y {
		return x < y
	}
	return r.weight > o.weight || r.weight|o.weight == 0 && b < bytes
}

func (st *serviceTime) Dispatched(s *Set, t *Ticket) { st.recount(s, t.slot) }

func (st *serviceTime) Completed(s *Set, t *Ticket, _ int64, _ bool) { st.recount(s, t.slot) }

func (st *serviceTime) recount(s *Set, slot uint8) {
	if i := st.at[slot&(MaxPaths-1)]; i < none {
		st.row[i].bytes = s.bytesAhead(int(slot))
	}
}

// Changed leaves out paths without a relative throughput, if others have one.
func (st *serviceTime) Changed(s *Set) {
	positive := false
	for _, c := range s.Candidates() {
		positive = positive || s.weight[c&(MaxPaths-1)] != 0
	}
	for slot := range st.at {
		st.at[slot] = none
	}
	st.n = 0
	for _, c := range s.Candidates() {
		c &= MaxPaths - 1
		if positive && s.weight[c] == 0 {
			continue
		}
		st.at[c] = uint8(st.n)
		st.row[st.n&(MaxPaths-1)] = stRow{weight: s.weight[c], slot: uint32(c)}
		st.n++
	}
	st.Tick(s, 0)
}

// Tick counts anew with what others have published.
func (st *serviceTime) Tick(s *Set, _ int64) {
	for i := range st.row[:st.n&(2*MaxPaths-1)] {
		st.row[i].bytes = s.bytesAhead(int(st.row[i].slot))
	}
}
