//qpoll:hot

package tsc

import (
	"math/bits"
	"sync/atomic"
)

// Now returns nanoseconds on the timeline of CLOCK_MONOTONIC, which it is
// aligned with at the first reading; later it goes at the counter's own rate,
// which clock discipline does not steer. It does not step back, by calibration
// or otherwise, and does not allocate. As with [Ticks], the processor may read
// the counter a little before the memory accesses that come first in the
// program: a reading that another thread took and handed over may be some tens
// of nanoseconds ahead. The first reading in a process may take 2 ms, to
// measure the counter. Safe for concurrent use.
func Now() int64 {
	if l := system.current.Load(); l != nil {
		ticks := Ticks()
		if !l.retired.Load() {
			return l.at(ticks)
		}
	}
	return system.slow()
}

// line maps counts to nanoseconds of CLOCK_MONOTONIC: ns at start, and mult
// times 2^-fraction nanoseconds for each count after.
//
// A line is immutable but for retired, which is set before its successor is
// begun. A reader takes the line, then the count, then looks at retired:
// finding it unset proves that its count is not after the successor's start,
// where both lines agree. So a calibration never steps the clock back, on any
// thread.
type line struct {
	start   uint64
	ns      int64
	mult    uint64
	retired atomic.Bool
}

func (l *line) at(ticks uint64) int64 {
	// A count before start is a reader on a core whose counter lags by a hair.
	if d := ticks - l.start; int64(d) >= 0 {
		hi, lo := bits.Mul64(d, l.mult)
		return l.ns + int64(hi<<(64-fraction)|lo>>fraction)
	}
	hi, lo := bits.Mul64(l.start-ticks, l.mult)
	return l.ns - int64(hi<<(64-fraction)|lo>>fraction)
}
