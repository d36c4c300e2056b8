package main

import (
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/internal/hist"
)

// The quantiles that are reported.
var (
	quantiles     = []float64{.5, .9, .99, .999, .9999}
	quantileNames = []string{"p50", "p90", "p99", "p99.9", "p99.99"}
)

// document is what -json writes.
type document struct {
	IOPS    float64            `json:"iops"`
	MiBs    float64            `json:"mib_s"`
	Errors  uint64             `json:"errors"`
	Latency map[string]float64 `json:"latency_us"`

	Reads  *direction `json:"reads,omitempty"`  // in mixed workloads
	Writes *direction `json:"writes,omitempty"` // in mixed workloads

	IOs         uint64            `json:"ios"`
	Elapsed     float64           `json:"elapsed_s"`
	Lost        uint64            `json:"lost"`
	Outstanding int               `json:"outstanding"`
	Interrupted bool              `json:"interrupted"`
	Failure     string            `json:"failure,omitempty"`
	Statuses    map[string]uint64 `json:"errors_by_status,omitempty"`
	CPU         cpu               `json:"cpu"`
	Pollers     []pollerStats     `json:"pollers"`
	Config      configuration     `json:"config"`
	Host        host              `json:"host"`
}

// direction is the part of a mixed workload that goes one way.
type direction struct {
	IOs     int64              `json:"ios"`
	Latency map[string]float64 `json:"latency_us"`
}

// cpu is what I/O has cost, over all cores.
type cpu struct {
	Busy    float64 `json:"busy_us_per_io"`    // of pollers, in passes that found work
	Thread  float64 `json:"thread_us_per_io"`  // processor time of the pollers' threads
	Process float64 `json:"process_us_per_io"` // processor time of the process
	Cores   float64 `json:"process_cores"`     // cores that the process used on average
	Allocs  float64 `json:"allocs_per_io"`     // objects that the process allocated

	Window                time.Duration `json:"-"`
	busy, thread, process float64       // ns per I/O
}

// pollerStats is what one poller did in the time measured.
type pollerStats struct {
	Name   string             `json:"name"`
	Core   int                `json:"core"`
	Busy   float64            `json:"busy"` // share of the time, 0 to 1
	Passes uint64             `json:"passes"`
	Idle   uint64             `json:"idle_passes"`
	Sleeps uint64             `json:"sleeps"`
	Gaps   map[string]float64 `json:"gap_us"` // between passes; upper bounds, but for max
}

// configuration is what was measured.
type configuration struct {
	Target    string  `json:"target"`
	NSID      int     `json:"nsid"`
	Bytes     int64   `json:"namespace_bytes"`
	BlockSize int     `json:"block_size"`
	RW        string  `json:"rw"`
	Mix       int     `json:"read_percent"`
	BS        uint64  `json:"bs"`
	Depth     int     `json:"depth"`
	Queues    int     `json:"queues"`
	QueueSize int     `json:"queue_size"`
	Time      float64 `json:"time_s"`
	Warmup    float64 `json:"warmup_s"`
	HDGST     bool    `json:"hdgst"`
	DDGST     bool    `json:"ddgst"`
	Adaptive  bool    `json:"adaptive"`
	Backend   string  `json:"backend,omitempty"`
}

func (o *options) document(s *session, res *outcome) *document {
	r := res.result
	d := &document{
		IOPS: r.IOPS, MiBs: r.IOPS * float64(o.block) / (1 << 20), Errors: r.Faults.Total, Latency: latencies(&r.All),
		IOs: r.IOs, Elapsed: r.Elapsed.Seconds(), Lost: r.Faults.Lost, Outstanding: r.Outstanding,
		Interrupted: res.interrupted, CPU: cpuOf(r), Pollers: pollersOf(r), Host: thisHost(),
	}
	if o.mixed() {
		d.Reads = &direction{r.Reads.Count(), latencies(&r.Reads)}
		d.Writes = &direction{r.Writes.Count(), latencies(&r.Writes)}
	}
	if res.lost != nil {
		d.Failure = oneLine(res.lost.Error())
	}
	if len(r.Faults.ByStatus) > 0 {
		d.Statuses = map[string]uint64{}
		for _, st := range r.Faults.ByStatus {
			d.Statuses[st.Status.Error()] += st.Count
		}
	}
	wl := o.workload()
	d.Config = configuration{
		Target: s.target, NSID: o.nsid, Bytes: s.ns.Size(), BlockSize: s.ns.BlockSize(),
		RW: o.pattern, Mix: wl.ReadPercent, BS: uint64(o.block), Depth: o.depth, Queues: len(s.queues),
		QueueSize: s.queues[0].QueuePair().Size(), Time: time.Duration(o.time).Seconds(), Warmup: time.Duration(o.warmup).Seconds(),
		HDGST: o.headerDigest, DDGST: o.dataDigest, Adaptive: o.adaptive,
	}
	if o.own() && o.target != softwareIdeal {
		d.Config.Backend = o.backend
	}
	return d
}

func latencies(h *hist.Histogram) map[string]float64 {
	m := map[string]float64{"mean": h.Mean() / 1e3, "max": float64(h.Max()) / 1e3}
	for i, ns := range h.Quantiles(quantiles...) {
		m[quantileNames[i]] = float64(ns) / 1e3
	}
	return m
}

// cpuOf divides what was used up in the windows of the pollers by the I/Os.
func cpuOf(r *load.Result) cpu {
	var c cpu
	var process time.Duration
	var allocs uint64
	for _, u := range r.Cores {
		if u.Window <= 0 || r.IOs == 0 {
			continue
		}
		c.busy += float64(u.Stats.Busy) / float64(r.IOs)
		c.thread += float64(u.Thread) / float64(r.IOs)
		if u.Window > c.Window { // all see the same process
			c.Window, process, allocs = u.Window, u.Process, u.Allocs
		}
	}
	if c.Window > 0 {
		c.process = float64(process) / float64(r.IOs)
		c.Cores = process.Seconds() / c.Window.Seconds()
		c.Allocs = float64(allocs) / float64(r.IOs)
	}
	c.Busy, c.Thread, c.Process = c.busy/1e3, c.thread/1e3, c.process/1e3
	return c
}

func pollersOf(r *load.Result) []pollerStats {
	list := []pollerStats{}
	for _, u := range r.Cores {
		p := pollerStats{Name: u.Name, Core: u.Core, Passes: u.Stats.Passes, Idle: u.Stats.IdlePasses, Sleeps: u.Stats.Sleeps}
		if u.Window > 0 {
			p.Busy = u.Stats.Busy.Seconds() / u.Window.Seconds()
		}
		p.Gaps = map[string]float64{"max": float64(u.Stats.MaxGap) / 1e3}
		for i, q := range quantiles {
			p.Gaps[quantileNames[i]] = float64(u.Stats.GapQuantile(q)) / 1e3
		}
		list = append(list, p)
	}
	return list
}
