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

// reckon works out ahead: what others had in flight on a path, less what this
// core had when it looked, as many times as it is expected to be followed. With
// what the core has now, as many times and once more, that is what is in flight:
// others saw what this core saw, and do as it does. Without this, all send to
// the path that was the emptiest until they look again.
func (s *Set) reckon() {
	var own, others uint64
	for slot := range s.slots {
		own += s.own[slot&(MaxPaths-1)].Count
		others += s.others[slot&(MaxPaths-1)].Count
	}
	s.follow = min((others+own/2)/max(own, 1), uint64(s.active-1))
	for slot := range s.slots {
		slot &= MaxPaths - 1
		own, others := &s.own[slot], &s.others[slot]
		s.ahead[slot] = signed{
			bytes: int64(others.Bytes) - int64(s.follow*own.Bytes),
			count: int64(others.Count) - int64(s.follow*own.Count),
		}
	}
	s.follow++
}

// bytesAhead is what all cores together are reckoned to have in flight.
func (s *Set) bytesAhead(slot int) uint64 {
	return uint64(max(s.ahead[slot&(MaxPaths-1)].bytes+int64(s.follow*s.own[slot&(MaxPaths-1)].Bytes), 0))
}

// countAhead is the same in I/Os; below zero if less than nothing is left.
func (s *Set) countAhead(slot int) int64 {
	return s.ahead[slot&(MaxPaths-1)].count + int64(s.follow*s.own[slot&(MaxPaths-1)].Count)
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
	s.reckon()
}
