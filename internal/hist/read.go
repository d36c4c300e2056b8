package hist

import "github.com/HdrHistogram/hdrhistogram-go"

// Add counts in h all that o has counted.
func (h *Histogram) Add(o *Histogram) {
	h.sum += o.sum
	h.max = max(h.max, o.max)
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// Count returns how many latencies were recorded.
func (h *Histogram) Count() int64 {
	n := int64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Max returns the largest latency, exactly; 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// Mean returns the mean latency, exactly; 0 if there is none.
func (h *Histogram) Mean() float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	return float64(h.sum) / float64(n)
}

// Quantiles returns, for each q from 0 to 1, the least latency that a share q
// of all does not exceed, to three significant digits, and never more than
// Max. All are 0 if nothing was recorded.
func (h *Histogram) Quantiles(qs ...float64) []int64 {
	hdr := h.HDR()
	values := make([]int64, len(qs))
	for i, q := range qs {
		values[i] = min(hdr.ValueAtPercentile(100*q), h.max)
	}
	return values
}

// HDR returns the same counts as an HDR histogram, for its iterators and its
// interchange formats.
func (h *Histogram) HDR() *hdrhistogram.Histogram {
	return hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue:  1,
		HighestTrackableValue: Limit - 1,
		SignificantFigures:    3,
		Counts:                h.counts[:],
	})
}

// Sum returns the sum of all latencies in nanoseconds, in no time.
func (h *Histogram) Sum() int64 { return h.sum }
