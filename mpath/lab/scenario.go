package lab

import (
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

// Scenario is a workload, the paths that it has, and what happens to them.
type Scenario struct {
	Name  string // for flags and files
	Title string // one line
	Note  string // what the model is made of, and what it leaves out

	Cores  int
	Nodes  int     // NUMA nodes that cores and paths are dealt out to; 0: see Path.Distance
	Depth  int     // I/Os that each core keeps in flight, if Arrivals is 0
	Arrive float64 // I/Os per second and core, at random times, whatever is in flight
	Mix    []Size
	Writes float64 // share of writes, 0 to 1

	Paths  []Path
	Script []Change

	Duration time.Duration
	Warmup   time.Duration // at the beginning, not measured
	Window   time.Duration // latency_batch_timeout, 0 for the default
	Bucket   time.Duration // of the time series; 0 is a 200th of Duration
	Seed     uint64

	Contenders []Contender // nil: Six
	Figures    []Figure    // upstream's
}

// Size is an I/O size and how often it comes, in proportion to the others.
type Size struct {
	Bytes uint32
	Share float64
}

// Path is the model of a path. An I/O passes a connection per core, whose order
// losses keep up; a link that all cores share, one per direction; the delay;
// and the servers at the other end.
type Path struct {
	Distance int // from every core, for the numa policy, unless there are Nodes

	Delay  time.Duration // of an I/O, both ways together
	Jitter time.Duration // mean of an exponentially distributed addition
	Rate   float64       // of the link in bytes per second; 0 is no limit
	Header int           // bytes on the link beside those of an I/O

	Loss  float64       // chance that a packet of 1448 bytes is lost
	Quick time.Duration // for which the connection then stands still, mostly
	Stall time.Duration // and when the loss is only noticed by a timeout
	Late  float64       // share of losses that are noticed so

	Servers int           // that serve I/Os at the far end; 0 is none
	Service time.Duration // of an I/O by a server
	Spread  bool          // exponentially distributed, not constant
	Disk    float64       // bytes per second of each server, beside Service
}

// Change is what happens to a path.
type Change struct {
	At   time.Duration
	Path int
	To   Path
}

// Contender is a policy with its settings.
type Contender struct {
	Label   string
	Policy  string
	Weights []int // relative_throughput per path; nil is 1 for each
	Alone   bool  // cores do not see each other's snapshots

	shared bool // see Counter
}

// Six are the policies as they are without being told anything.
func Six() []Contender {
	var cs []Contender
	for _, name := range []string{
		policy.NUMA, policy.RoundRobin, policy.QueueDepth, policy.ServiceTime, policy.Latency, policy.ExpectedDelay,
	} {
		cs = append(cs, Contender{Label: name, Policy: name})
	}
	return cs
}

// Figure is what upstream measured for a contender.
type Figure struct {
	Label  string // of the contender
	Metric string // see Metrics
	Value  float64
}

func (s *Scenario) contenders() []Contender {
	if s.Contenders == nil {
		return Six()
	}
	return s.Contenders
}

// distance is what a core is told of how far away a path is.
func (s *Scenario) distance(core, path int) int {
	switch {
	case s.Nodes == 0:
		return s.Paths[path].Distance
	case core*s.Nodes/s.Cores == path%s.Nodes:
		return 10
	}
	return 20
}

func (s *Scenario) bucket() time.Duration {
	if s.Bucket != 0 {
		return s.Bucket
	}
	return max(s.Duration/200, 1)
}
