package lab

import (
	"fmt"
	"math"
	"time"

	"github.com/qpoll/qpoll/internal/hist"
	"github.com/qpoll/qpoll/mpath/policy"
)

// Result is what came out of a run. Latencies are in microseconds.
type Result struct {
	Scenario  string             `json:"scenario"`
	Contender string             `json:"policy"`
	IOs       int64              `json:"ios"` // completed in the time measured
	Metrics   map[string]float64 `json:"metrics"`
	Split     []int64            `json:"split"` // I/Os dispatched per path
	Series    []Bucket           `json:"series"`

	sc      *Scenario
	hist    hist.Histogram
	bytes   [policy.Dirs]float64
	squares float64
	measure time.Duration
}

// Bucket is a piece of the time of a run.
type Bucket struct {
	At     float64 `json:"at"` // s
	IOPS   float64 `json:"iops"`
	Mean   float64 `json:"mean_us"`
	Max    float64 `json:"max_us"`
	ByPath []int64 `json:"by_path"` // I/Os completed

	n   int64
	sum int64
	max int64
}

// Metrics are the names of what is measured: rates, and latencies in
// microseconds.
var Metrics = []string{"iops", "MiB/s", "read MiB/s", "write MiB/s", "mean", "stddev", "p50", "p99", "p99.9", "max"}

func newResult(sc *Scenario, who Contender) *Result {
	r := &Result{
		Scenario: sc.Name, Contender: who.Label, sc: sc, measure: sc.Duration - sc.Warmup,
		Split:  make([]int64, len(sc.Paths)),
		Series: make([]Bucket, (sc.Duration+sc.bucket()-1)/sc.bucket()),
	}
	for i := range r.Series {
		r.Series[i].At = (time.Duration(i) * sc.bucket()).Seconds()
		r.Series[i].ByPath = make([]int64, len(sc.Paths))
	}
	return r
}

func (r *Result) dispatched(path int, measured bool) {
	if measured {
		r.Split[path]++
	}
}

func (r *Result) completed(io *ioState, now int64, measured bool) {
	ns := now - io.start
	b := &r.Series[now/int64(r.sc.bucket())]
	b.n++
	b.sum += ns
	b.max = max(b.max, ns)
	b.ByPath[io.path]++
	if !measured {
		return
	}
	r.IOs++
	r.hist.Record(ns)
	r.bytes[io.dir] += float64(io.bytes)
	us := float64(ns) / 1e3
	r.squares += float64(us * us)
}

// finish works out the metrics.
func (r *Result) finish() {
	seconds := r.measure.Seconds()
	const mib = 1 << 20
	mean := r.hist.Mean() / 1e3
	q := r.hist.Quantiles(0.5, 0.99, 0.999)
	n := math.Max(float64(r.IOs), 1)
	r.Metrics = map[string]float64{
		"iops":        float64(r.IOs) / seconds,
		"read MiB/s":  r.bytes[policy.Read] / mib / seconds,
		"write MiB/s": r.bytes[policy.Write] / mib / seconds,
		"MiB/s":       (r.bytes[policy.Read] + r.bytes[policy.Write]) / mib / seconds,
		"mean":        mean,
		"stddev":      math.Sqrt(math.Max(r.squares/n-float64(mean*mean), 0)),
		"p50":         float64(q[0]) / 1e3,
		"p99":         float64(q[1]) / 1e3,
		"p99.9":       float64(q[2]) / 1e3,
		"max":         float64(r.hist.Max()) / 1e3,
	}
	width := r.sc.bucket().Seconds()
	for i := range r.Series {
		b := &r.Series[i]
		b.IOPS = float64(b.n) / width
		b.Max = float64(b.max) / 1e3
		if b.n > 0 {
			b.Mean = float64(b.sum) / float64(b.n) / 1e3
		}
	}
}

// String returns a line for people.
func (r *Result) String() string {
	m := r.Metrics
	return fmt.Sprintf("%s %s: %.0f IOPS, %.1f MiB/s, mean %.0f us, p99.9 %.0f us", r.Scenario, r.Contender, m["iops"], m["MiB/s"], m["mean"], m["p99.9"])
}
