//qpoll:hot

package hist

import "math/bits"

// The buckets: one per nanosecond up to 1<<digits, then 1<<(digits-1) for each
// doubling. A value is off by at most 0.1 % of itself.
const (
	digits  = 11 // binary; 2000 values of single resolution are three decimal digits
	half    = 1 << (digits - 1)
	topBits = 38 // values have at most so many bits

	// Buckets is the number of buckets of a Histogram.
	Buckets = (topBits - digits + 2) * half

	// Limit is the least latency that a Histogram cannot tell from larger ones,
	// in nanoseconds: 275 seconds.
	Limit = 1 << topBits
)

// Histogram counts latencies in nanoseconds. The zero value is empty. It is
// for one goroutine at a time, and takes 232 KiB.
type Histogram struct {
	sum    int64
	max    int64
	counts [Buckets]int64
}

// Record counts one latency in nanoseconds. Negative ones count as 0, and
// those of Limit and above as just below it in all but Max and Mean.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.sum += ns
	if ns > h.max {
		h.max = ns
	}
	h.counts[bucket(ns)]++
}

// bucket returns the index for a value that is not negative.
func bucket(ns int64) uint {
	v := min(uint64(ns), Limit-1)
	// The doublings beyond single resolution; each takes half a set of buckets,
	// since the upper half of its values is all that is new.
	e := uint(bits.Len64(v|(1<<digits-1))) - digits
	return e<<(digits-1) + uint(v>>e)
}
