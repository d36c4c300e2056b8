//qpoll:hot

package poller

import (
	"math/bits"
	"time"
)

// GapBuckets is the number of buckets of [Stats.Gaps].
const GapBuckets = 64

// Stats is what a poller has counted since it was made.
type Stats struct {
	Passes     uint64 // turns of the loop
	IdlePasses uint64 // passes without work
	Work       uint64 // sum of what sources returned, timers fired and functions run
	Tasks      uint64 // posted functions run
	Sleeps     uint64 // times that the thread slept
	Wakeups    uint64 // sleeps ended by a post or a descriptor, not by the time

	// Busy is the time from the start of passes that found work to the start
	// of those that followed.
	Busy time.Duration

	// MaxGap is the largest gap: the time from the start of one pass to the
	// start of the next, sleep not counted.
	MaxGap time.Duration

	// Gaps counts gaps by size: Gaps[0] those of 0 ns, Gaps[n] those of
	// 1<<(n-1) ns and more, up to 1<<n ns.
	Gaps [GapBuckets]uint64

	// At is when this was published, on the poller's clock; 0 if nothing has
	// been yet.
	At int64
}

// Sub returns what was counted between an earlier snapshot and this one. For
// MaxGap it tells the truth if the largest gap of all was in between, and the
// upper bound of the highest bucket that was added to otherwise; use
// [Poller.ResetGaps] for better.
func (s Stats) Sub(earlier Stats) Stats {
	s.Passes -= earlier.Passes
	s.IdlePasses -= earlier.IdlePasses
	s.Work -= earlier.Work
	s.Tasks -= earlier.Tasks
	s.Sleeps -= earlier.Sleeps
	s.Wakeups -= earlier.Wakeups
	s.Busy -= earlier.Busy
	for i := range s.Gaps {
		s.Gaps[i] -= earlier.Gaps[i]
	}
	if s.MaxGap == earlier.MaxGap {
		s.MaxGap = min(s.MaxGap, s.gapBound())
	}
	return s
}

// gapBound is the upper bound of the highest bucket that is not empty.
func (s *Stats) gapBound() time.Duration {
	for i := len(s.Gaps) - 1; i > 0; i-- {
		if s.Gaps[i] != 0 {
			return bucketBound(i)
		}
	}
	return 0
}

// GapQuantile returns the size that a share q of all gaps, from 0 to 1, does
// not exceed. Gaps are counted in powers of two, so the result is up to twice
// too large, but never more than MaxGap.
func (s *Stats) GapQuantile(q float64) time.Duration {
	var total, seen uint64
	for _, n := range s.Gaps {
		total += n
	}
	for i, n := range s.Gaps {
		if seen += n; float64(seen) >= q*float64(total) {
			return min(bucketBound(i), s.MaxGap)
		}
	}
	return s.MaxGap
}

// bucketBound is the largest gap that a bucket counts.
func bucketBound(bucket int) time.Duration {
	if bucket >= 63 {
		return 1<<63 - 1
	}
	return 1<<bucket - 1
}

// counters are the live figures of the core. An array, so that publishing is a
// loop.
type counters [cGaps + GapBuckets]uint64

const (
	cPasses = iota
	cIdle
	cWork
	cTasks
	cSleeps
	cWakeups
	cBusy
	cMaxGap
	cAt
	cGaps
)

func (p *Poller) countGap(gap uint64) {
	c := &p.counters
	c[cGaps+bits.Len64(gap)&(GapBuckets-1)]++
	if gap > c[cMaxGap] {
		c[cMaxGap] = gap
	}
	if p.worked {
		c[cBusy] += gap
	}
}

func (p *Poller) countPass(work int) {
	c := &p.counters
	c[cPasses]++
	p.worked = work != 0
	if work == 0 {
		c[cIdle]++
		return
	}
	c[cWork] += uint64(work)
}

// stats gives the counters their names.
func (c *counters) stats() Stats {
	s := Stats{
		Passes:     c[cPasses],
		IdlePasses: c[cIdle],
		Work:       c[cWork],
		Tasks:      c[cTasks],
		Sleeps:     c[cSleeps],
		Wakeups:    c[cWakeups],
		Busy:       time.Duration(c[cBusy]),
		MaxGap:     time.Duration(c[cMaxGap]),
		At:         int64(c[cAt]),
	}
	copy(s.Gaps[:], c[cGaps:])
	return s
}
