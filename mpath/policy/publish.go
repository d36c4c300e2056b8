//qpoll:hot

package policy

import "sync/atomic"

// published is the snapshot of one core: written by it alone, by single-writer
// stores, and read by the others once per publish interval. A load is one word,
// so a reader never sees half of it, and eight paths are one cache line.
type published struct {
	_    [64]byte
	at   atomic.Int64  // when, on the clock of the callers
	used atomic.Uint64 // number of slots in use, and so worth a look
	_    [48]byte
	load [MaxPaths]atomic.Uint64 // packed
	hint [MaxPaths]atomic.Uint64 // what a policy tells its kin on other cores
	_    [64]byte
}

// The packing of a Load: bytes below, count above. Counts beyond the fields are
// published as the largest there is.
const (
	byteBits  = 42
	maxBytes  = 1<<byteBits - 1
	maxCounts = 1<<(64-byteBits) - 1
)

func pack(l *Load) uint64 {
	return min(l.Count, maxCounts)<<byteBits | min(l.Bytes, maxBytes)
}

func unpack(v uint64) Load { return Load{Bytes: v & maxBytes, Count: v >> byteBits} }

// publish stores what has changed since the last time.
func (s *Set) publish(now int64) {
	pub := s.pub
	idle := true
	for slot := range s.slots {
		v := pack(&s.own[slot&(MaxPaths-1)])
		if word := &pub.load[slot&(MaxPaths-1)]; word.Load() != v {
			word.Store(v)
		}
		idle = idle && v == 0
	}
	if pub.used.Load() != uint64(s.slots) {
		pub.used.Store(uint64(s.slots))
	}
	if !idle || !s.idle {
		pub.at.Store(now) // zeroes do not age
	}
	s.idle = idle
}

// gather sums what the other cores have published, leaving out those that have
// not polled for too long to know.
func (s *Set) gather(now int64) {
	clear(s.others[:])
	s.active = 1
	g := s.group
	for i := range g.published {
		pub := &g.published[i]
		if pub == s.pub || now-pub.at.Load() > s.stale {
			continue
		}
		used := min(pub.used.Load(), MaxPaths)
		var any uint64
		for slot := range used {
			v := pub.load[slot].Load()
			any |= v
			o := &s.others[slot]
			o.Bytes += v & maxBytes
			o.Count += v >> byteBits
		}
		if any != 0 {
			s.active++
		}
	}
}
