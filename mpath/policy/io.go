//qpoll:hot

package policy

// Select returns the slot of the path for an I/O of so many bytes, or -1 if no
// path is usable. now is the time in nanoseconds, on a clock that never goes
// back and that all cores share.
func (s *Set) Select(now int64, bytes uint32, dir Dir) int {
	if now >= s.nextTick {
		s.tick(now)
	}
	if s.ncand < 2 {
		if s.ncand == 0 {
			return -1
		}
		return int(s.cand[0])
	}
	slot := s.pol.Select(s, now, bytes, dir)
	if uint(slot) >= MaxPaths || s.mask>>uint(slot)&1 == 0 {
		s.misses++
		return int(s.cand[0])
	}
	return slot
}

// Tick is to be called once per pass of the poller while I/Os are in flight. It
// publishes, and reads what others have published, when that is due.
func (s *Set) Tick(now int64) {
	if now >= s.nextTick {
		s.tick(now)
	}
}

func (s *Set) tick(now int64) {
	s.nextTick = now + s.interval
	if !s.staggered { // cores take their turns, lest all follow the same news at once
		s.staggered = true
		s.nextTick = now + s.interval*int64(s.core+1)/int64(len(s.group.sets))
	}
	s.publish(now)
	if s.shared {
		s.gather(now)
	}
	s.pol.Tick(s, now)
}

// Dispatch counts an I/O on a path, from before it is submitted until the ticket
// is given back to Complete or Release. A ticket that is held already is given
// back first. Slots without a path are ignored: the ticket then holds nothing.
func (s *Set) Dispatch(t *Ticket, slot int, now int64, bytes uint32, dir Dir) {
	if t.held {
		s.Release(t, now)
	}
	if uint(slot) >= MaxPaths || s.known>>uint(slot)&1 == 0 {
		return
	}
	slot &= MaxPaths - 1
	own := &s.own[slot]
	own.Bytes += uint64(bytes)
	own.Count++
	s.total++
	st := &s.stats[slot]
	st.Dispatched++
	st.Bytes += uint64(bytes)
	t.at, t.bytes, t.epoch = now, bytes, s.epoch[slot]
	t.gen, t.slot, t.dir, t.held = s.gen, uint8(slot), uint8(min(dir, Other)), true
	s.pol.Dispatched(s, t)
}

// Complete gives a ticket back: the I/O ended at now. ok tells whether its
// latency says something about the path; an I/O that failed with a status of
// the namespace, such as a read of a bad block, was served all the same. It
// returns false for a ticket that holds nothing.
func (s *Set) Complete(t *Ticket, now int64, ok bool) bool {
	if !t.held {
		return false
	}
	t.held = false
	slot := t.slot & (MaxPaths - 1)
	if t.epoch != s.epoch[slot] {
		return true // of before a reset, which has taken it off the counters
	}
	own := &s.own[slot]
	own.Bytes -= min(own.Bytes, uint64(t.bytes))
	own.Count -= min(own.Count, 1)
	s.total -= min(s.total, 1)
	if ok {
		s.stats[slot].Completed++
	} else {
		s.stats[slot].Failed++
	}
	if t.gen == s.gen {
		s.pol.Completed(s, t, now, ok)
	}
	return true
}

// Release gives back the ticket of an I/O that was aborted, failed over or not
// submitted after all.
func (s *Set) Release(t *Ticket, now int64) bool { return s.Complete(t, now, false) }

// Candidates returns the slots that a policy may choose from, in order. The
// slice is the Set's own, valid until paths change.
func (s *Set) Candidates() []uint8 { return s.cand[:s.ncand&(2*MaxPaths-1)] }

// InFlight returns what this core has in flight on a path, live.
func (s *Set) InFlight(slot int) Load { return s.own[slot&(MaxPaths-1)] }

// Others returns what the other cores had in flight on a path when they
// published it last; nothing if the policy in force is not Shared.
func (s *Set) Others(slot int) Load { return s.others[slot&(MaxPaths-1)] }

// Weight returns the relative throughput of a path.
func (s *Set) Weight(slot int) int { return int(s.weight[slot&(MaxPaths-1)]) }
