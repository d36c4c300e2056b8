package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The library's own recording is the reference: each value must land in the
// very bucket that it would choose.
func TestBucketsAreHDR(t *testing.T) {
	values := []int64{0, 1, 2, 1023, 1024, 2047, 2048, 2049, 4095, 4096, 123456, Limit/2 - 1, Limit / 2, Limit - 1}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		values = append(values, r.Int64N(Limit)>>r.IntN(topBits))
	}
	var h Histogram
	want := hdrhistogram.New(1, Limit-1, 3)
	for _, v := range values {
		h.Record(v)
		if err := want.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(want.Export().Counts); n != Buckets {
		t.Errorf("the library has %d buckets, want %d", n, Buckets)
	}
	if !slices.Equal(h.HDR().Export().Counts, want.Export().Counts) {
		t.Error("counts differ from those of the library")
	}
	if h.Count() != int64(len(values)) || h.HDR().TotalCount() != h.Count() {
		t.Errorf("count %d and %d, want %d", h.Count(), h.HDR().TotalCount(), len(values))
	}
}

func TestExtremes(t *testing.T) {
	var h Histogram
	if h.Count() != 0 || h.Max() != 0 || h.Mean() != 0 || h.Quantiles(0.5)[0] != 0 {
		t.Error("an empty histogram has values")
	}
	for _, v := range []int64{math.MinInt64, -1} {
		h.Record(v)
	}
	if h.Count() != 2 || h.Max() != 0 || h.Mean() != 0 {
		t.Errorf("negative latencies: count %d, max %d, mean %v", h.Count(), h.Max(), h.Mean())
	}
	h = Histogram{}
	h.Record(Limit)
	h.Record(math.MaxInt64 / 2)
	if h.Count() != 2 || h.counts[Buckets-1] != 2 || h.Max() != math.MaxInt64/2 {
		t.Errorf("beyond the limit: count %d, max %d", h.Count(), h.Max())
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	for v := int64(1); v <= 1000; v++ {
		h.Record(v)
	}
	got := h.Quantiles(0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1)
	if want := []int64{1, 500, 900, 990, 999, 1000, 1000}; !slices.Equal(got, want) {
		t.Errorf("quantiles %v, want %v", got, want)
	}
	if h.Mean() != 500.5 || h.Max() != 1000 {
		t.Errorf("mean %v, max %d", h.Mean(), h.Max())
	}
	h = Histogram{}
	h.Record(1_000_001)
	if got := h.Quantiles(0.5, 1); got[0] != 1_000_001 || got[1] != 1_000_001 {
		t.Errorf("quantiles %v of a single value", got)
	}
}

func TestAdd(t *testing.T) {
	var a, b, both Histogram
	for v := int64(1); v < 1e9; v *= 3 {
		a.Record(v)
		b.Record(2 * v)
		both.Record(v)
		both.Record(2 * v)
	}
	a.Add(&b)
	if a != both {
		t.Error("the sum of two histograms differs from one of all values")
	}
}

func TestAllocs(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Record(123456) }); n != 0 {
		t.Errorf("%v allocations per value", n)
	}
}

// latencies are spread as those of a busy queue are.
func latencies() (values [4096]int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i] = 100_000 + r.Int64N(200_000)
	}
	return values
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	values := latencies()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Record(values[i%len(values)])
	}
}

// What is not used on the hot path, and why.
func BenchmarkRecordHDR(b *testing.B) {
	h := hdrhistogram.New(1, Limit-1, 3)
	values := latencies()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := h.RecordValue(values[i%len(values)]); err != nil {
			b.Fatal(err)
		}
	}
}
