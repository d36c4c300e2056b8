package lab

import (
	"slices"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

const (
	us = time.Microsecond
	ms = time.Millisecond

	kib = 1 << 10
	mib = 1 << 20
)

// Scenarios returns what [Main] runs: first those that upstream's figures are
// from, then those that tell the policies apart.
func Scenarios() []Scenario {
	return slices.Concat(delays(), losses(), shaped(), alike(), apart())
}

func only(bytes uint32) []Size { return []Size{{Bytes: bytes, Share: 1}} }

// figures are upstream's, in the order of numa, round-robin, queue-depth and
// latency.
func figures(metric string, values ...float64) []Figure {
	var fs []Figure
	for i, name := range []string{policy.NUMA, policy.RoundRobin, policy.QueueDepth, policy.Latency} {
		fs = append(fs, Figure{Label: name, Metric: metric, Value: values[i]})
	}
	return fs
}

// with adds contenders to the six.
func with(more ...Contender) []Contender { return append(Six(), more...) }

func weights(label string, w ...int) Contender {
	return Contender{Label: policy.ServiceTime + " " + label, Policy: policy.ServiceTime, Weights: w}
}

// delays are those with 30 ms on one path. Such a path also has a window: no
// more than so much is under way, so its rate has a limit. Round robin drives
// it there, and the latency policy learns what that feels like.
func delays() []Scenario {
	base := Scenario{
		Cores: 8, Depth: 32, Mix: only(4 * kib), Duration: 12 * time.Second, Window: 1500 * ms, Seed: 1,
		Paths: []Path{
			{Distance: 10, Delay: 30 * ms, Rate: 20 * 4 * kib / 0.030},
			{Distance: 20, Delay: 3 * ms},
		},
		Contenders: with(counter()),
	}
	read := base
	read.Name = "delay30"
	read.Title = "one path with 30 ms delay, the other with 3 ms and not saturated; 4 KiB reads"
	read.Figures = figures("MiB/s", 50, 105, 230, 350)

	like := base
	like.Depth, like.Mix, like.Duration, like.Window = 64, only(16*kib), 24*time.Second, 3*time.Second
	like.Paths = []Path{
		{Distance: 10, Delay: 30 * ms, Rate: 50 * mib},
		{Distance: 20, Delay: 21 * ms},
	}
	like.Name = "delay30-loaded-read"
	like.Title = "the same with upstream's rates: the other path is at 21 ms under its load"
	like.Figures = figures("MiB/s", 50, 105, 230, 350)

	write := like
	write.Name = "delay30-loaded-write"
	write.Title = "the same, writes: the other path is saturated"
	write.Writes = 1
	write.Paths = []Path{
		{Distance: 10, Delay: 30 * ms, Rate: 65.9 * mib},
		{Distance: 20, Delay: 12500 * us, Rate: 450 * mib},
	}
	write.Figures = figures("MiB/s", 65.9, 125, 385, 446)

	mixed := like
	mixed.Name = "delay30-loaded-mixed"
	mixed.Title = "the same, half of it writes"
	mixed.Writes = 0.5
	mixed.Paths = []Path{
		{Distance: 10, Delay: 30 * ms, Rate: 30.6 * mib},
		{Distance: 20, Delay: 22 * ms},
	}
	mixed.Figures = figures("read MiB/s", 30.6, 56.5, 122, 175)
	return []Scenario{read, like, write, mixed}
}

// losses are those with loss on one path that comes and goes. Times are a 24th
// of upstream's, the window of the latency policy with them.
func losses() []Scenario {
	clean := Path{Delay: 6500 * us, Rate: 76000 * 4 * kib}
	lossy := func(loss float64) Path {
		p := clean
		p.Loss, p.Quick, p.Stall, p.Late = loss, 20*ms, 200*ms, 0.02
		return p
	}
	base := Scenario{
		Cores: 8, Nodes: 2, Depth: 64, Mix: only(4 * kib), Duration: 20 * time.Second, Window: 625 * ms, Seed: 2,
		Paths: []Path{lossy(0.05), clean},
		Script: []Change{
			{At: 5 * time.Second, Path: 0, To: clean},
			{At: 10 * time.Second, Path: 0, To: lossy(0.03)},
			{At: 15 * time.Second, Path: 0, To: clean},
		},
		Contenders: with(counter()),
	}
	read, write, mixed := base, base, base
	read.Name, read.Title = "loss-read", "one path loses 5 %, 0, 3 %, 0 of its packets; 4 KiB reads"
	read.Figures = figures("MiB/s", 1288, 1202, 1464, 1642)
	write.Name, write.Title, write.Writes = "loss-write", "the same, writes", 1
	write.Figures = figures("MiB/s", 1456, 1493, 1779, 1944)
	mixed.Name, mixed.Title, mixed.Writes = "loss-mixed", "the same, half of it writes", 0.5
	mixed.Figures = figures("read MiB/s", 623, 594, 750, 822)
	return []Scenario{read, write, mixed}
}

// shaped are those with links of 500 and 2000 Mbit/s.
func shaped() []Scenario {
	base := Scenario{
		Cores: 4, Depth: 64, Mix: only(4 * kib), Duration: 12 * time.Second, Seed: 3,
		Paths: []Path{
			{Distance: 20, Delay: 2 * ms, Rate: 500e6 / 8, Header: 100},
			{Distance: 10, Delay: 2 * ms, Rate: 2000e6 / 8, Header: 100},
		},
		Contenders: with(weights("1:4", 1, 4)),
	}
	fs := func(iops, stddev [4]float64) (fs []Figure) {
		for i, l := range []string{policy.RoundRobin, policy.QueueDepth, policy.ServiceTime, policy.ServiceTime + " 1:4"} {
			fs = append(fs, Figure{l, "iops", iops[i]}, Figure{l, "stddev", stddev[i]})
		}
		return fs
	}
	small, mixed := base, base
	small.Name, small.Title = "shaped-4k", "links of 500 and 2000 Mbit/s; 4 KiB reads"
	small.Figures = fs([4]float64{59.1e3, 59.0e3, 59.3e3, 61.0e3}, [4]float64{3109, 3046, 3057, 1294})
	mixed.Name, mixed.Title = "shaped-mixed", "the same, half of the reads 128 KiB"
	mixed.Mix, mixed.Duration = []Size{{4 * kib, 1}, {128 * kib, 1}}, 60*time.Second
	mixed.Figures = fs([4]float64{7689, 7642, 7456, 7747}, [4]float64{46817, 45868, 47433, 27102})
	return []Scenario{small, mixed}
}

// alike are those with equal paths.
func alike() []Scenario {
	p := Path{Delay: 4 * ms, Servers: 4, Service: 100 * us, Spread: true}
	same := Scenario{
		Name: "symmetric", Title: "two equal paths; 4 KiB reads",
		Cores: 8, Nodes: 2, Depth: 32, Mix: only(4 * kib), Duration: 10 * time.Second, Window: 1250 * ms, Seed: 4,
		Paths:      []Path{p, p},
		Contenders: with(counter()),
	}
	standby := same
	standby.Name, standby.Title = "standby", "two equal paths, one with a relative throughput of 0"
	standby.Duration = 2 * time.Second
	standby.Contenders = []Contender{weights("1:0", 1, 0)}
	return []Scenario{same, standby}
}

// apart are those where policies differ most.
func apart() []Scenario {
	unequal := Scenario{
		Name: "unequal-mixed", Title: "a short link of 1 Gbit/s and a long one of 10; 4, 64 and 512 KiB, nothing configured",
		Cores: 8, Depth: 8, Mix: []Size{{4 * kib, 6}, {64 * kib, 3}, {512 * kib, 1}}, Writes: 0.3, Duration: 60 * time.Second, Seed: 5,
		Paths: []Path{
			{Distance: 20, Delay: 100 * us, Rate: 1e9 / 8, Header: 100},
			{Distance: 10, Delay: 1 * ms, Rate: 10e9 / 8, Header: 100},
		},
		Contenders: with(weights("1:10", 1, 10)),
	}
	good := Path{Distance: 10, Delay: 2 * ms, Jitter: 100 * us, Rate: 20000 * 4 * kib}
	bad := good
	bad.Delay = 30 * ms
	degrade := Scenario{
		Name: "degrade-delay", Title: "two paths of 2 ms, one of them at 30 ms from 20 s to 80 s",
		Cores: 4, Depth: 4, Mix: only(4 * kib), Duration: 120 * time.Second, Bucket: 50 * ms, Seed: 6,
		Paths: []Path{good, good},
		Script: []Change{
			{At: 20 * time.Second, Path: 0, To: bad},
			{At: 80 * time.Second, Path: 0, To: good},
		},
	}
	narrow := degrade
	narrow.Name, narrow.Title = "degrade-rate", "two paths of 20000 IOPS, one of them at 500 from 20 s to 80 s"
	bad = good
	bad.Rate = 500 * 4 * kib
	narrow.Script = []Change{degrade.Script[0], degrade.Script[1]}
	narrow.Script[0].To = bad

	many := Scenario{
		Name: "many-cores", Title: "64 cores with 2 I/Os each, paths of 100000 and 50000 IOPS",
		Cores: 64, Depth: 2, Mix: only(4 * kib), Duration: 8 * time.Second, Window: time.Second, Seed: 7,
		Paths: []Path{
			{Distance: 10, Delay: 50 * us, Servers: 1, Service: 10 * us, Spread: true},
			{Distance: 20, Delay: 50 * us, Servers: 1, Service: 20 * us, Spread: true},
		},
		Contenders: with(
			counter(),
			Contender{Label: policy.QueueDepth + " alone", Policy: policy.QueueDepth, Alone: true},
			Contender{Label: policy.ExpectedDelay + " alone", Policy: policy.ExpectedDelay, Alone: true},
			weights("2:1", 2, 1)),
	}
	more := many
	more.Name, more.Title = "many-cores-4", "256 cores with 1 I/O each, 4 paths of 100000 to 12500 IOPS"
	more.Cores, more.Depth = 256, 1
	more.Paths = nil
	for i := range 4 {
		more.Paths = append(more.Paths, Path{Distance: 10 + i, Delay: 200 * us, Servers: 1, Service: 10 * us << i, Spread: true})
	}
	more.Contenders = with(counter(), many.Contenders[7], many.Contenders[8], weights("8:4:2:1", 8, 4, 2, 1))
	return []Scenario{unequal, degrade, narrow, many, more}
}
