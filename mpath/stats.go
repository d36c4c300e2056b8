package mpath

import (
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

// Latency sums up the latencies of the I/Os that succeeded, from dispatch to
// completion, in nanoseconds.
type Latency struct {
	Count, Sum, Max uint64
}

// Mean returns the mean, 0 if there was no I/O.
func (l Latency) Mean() time.Duration { return time.Duration(l.Sum / max(l.Count, 1)) }

func (l *Latency) add(o Latency) {
	l.Count += o.Count
	l.Sum += o.Sum
	l.Max = max(l.Max, o.Max)
}

// PathStats is what was counted of a path, on one core or all of them, since
// the channels there were made.
type PathStats struct {
	policy.PathStats
	Failovers uint64               // attempts that failed for reasons of the path, and were taken back
	InFlight  policy.Load          // when last published
	Latency   [policy.Dirs]Latency // by kind of I/O
}

func (s *PathStats) add(o *PathStats) {
	s.Dispatched += o.Dispatched
	s.Completed += o.Completed
	s.Failed += o.Failed
	s.Forgotten += o.Forgotten
	s.Bytes += o.Bytes
	s.Failovers += o.Failovers
	s.InFlight.Bytes += o.InFlight.Bytes
	s.InFlight.Count += o.InFlight.Count
	for i := range s.Latency {
		s.Latency[i].add(o.Latency[i])
	}
}

// ChannelStats is what one channel has published of itself.
type ChannelStats struct {
	Poller  string              // name of the poller
	Core    int                 // that the poller is pinned to, -1 if it is not
	Waiting int                 // I/Os that wait for a path
	Parked  int                 // I/Os that wait for a lost path to be quiet, or to be tried again
	Paths   map[*Path]PathStats // of those that the channel has a queue pair on
}

// The words of a path in a snapshot.
const (
	wDispatched = iota
	wCompleted
	wFailed
	wForgotten
	wBytes
	wFailovers
	wInFlight
	wInFlightBytes
	wLatency
	wWords = wLatency + 3*int(policy.Dirs)
)

// published is the snapshot of a channel, written by its core alone with
// single-writer stores.
type published struct {
	_       [64]byte
	waiting atomic.Int64
	parked  atomic.Int64
	slots   [policy.MaxPaths]publishedPath
	_       [64]byte
}

type publishedPath struct {
	path  atomic.Pointer[Path]
	words [wWords]atomic.Uint64
}

// publish makes the counters of a channel known. On the core.
func (c *Channel) publish(now int64) {
	c.report = now + int64(policy.DefaultPublishInterval)
	pub := &c.cold.published
	store(&pub.waiting, int64(c.waiting.n))
	store(&pub.parked, int64(c.parked.n))
	for slot, l := range c.links {
		s := &pub.slots[slot]
		if l == nil {
			if s.path.Load() != nil {
				s.path.Store(nil)
			}
			continue
		}
		w := c.words(l)
		for i := range w {
			if s.words[i].Load() != w[i] {
				s.words[i].Store(w[i])
			}
		}
		if s.path.Load() != l.path {
			s.path.Store(l.path)
		}
	}
}

func store(to *atomic.Int64, v int64) {
	if to.Load() != v {
		to.Store(v)
	}
}

func (c *Channel) words(l *link) [wWords]uint64 {
	s, f := c.set.Stats(l.slot), c.set.InFlight(l.slot)
	w := [wWords]uint64{
		wDispatched: s.Dispatched, wCompleted: s.Completed, wFailed: s.Failed, wForgotten: s.Forgotten,
		wBytes: s.Bytes, wFailovers: l.failovers, wInFlight: f.Count, wInFlightBytes: f.Bytes,
	}
	for i := range int(policy.Dirs) {
		w[wLatency+3*i], w[wLatency+3*i+1], w[wLatency+3*i+2] = l.latency[i].Count, l.latency[i].Sum, l.latency[i].Max
	}
	return w
}

// read returns a path's figures. Any goroutine.
func (p *publishedPath) read() PathStats {
	var w [wWords]uint64
	for i := range w {
		w[i] = p.words[i].Load()
	}
	s := PathStats{Failovers: w[wFailovers], InFlight: policy.Load{Bytes: w[wInFlightBytes], Count: w[wInFlight]}}
	s.Dispatched, s.Completed, s.Failed = w[wDispatched], w[wCompleted], w[wFailed]
	s.Forgotten, s.PathStats.Bytes = w[wForgotten], w[wBytes]
	for i := range s.Latency {
		s.Latency[i] = Latency{w[wLatency+3*i], w[wLatency+3*i+1], w[wLatency+3*i+2]}
	}
	return s
}

// Stats returns what the channel has published last: at most a publish interval
// old while its poller runs. Any goroutine.
func (c *Channel) Stats() ChannelStats {
	pub := &c.cold.published
	s := ChannelStats{
		Poller: c.p.Name(), Core: c.p.Core(), Waiting: int(pub.waiting.Load()), Parked: int(pub.parked.Load()),
		Paths: map[*Path]PathStats{},
	}
	for i := range pub.slots {
		if p := pub.slots[i].path.Load(); p != nil {
			s.Paths[p] = pub.slots[i].read()
		}
	}
	return s
}

// Stats returns the statistics of all channels, one by one. Any goroutine.
func (h *Head) Stats() []ChannelStats {
	var all []ChannelStats
	for _, c := range h.open() {
		all = append(all, c.Stats())
	}
	return all
}

// open returns the channels that there are.
func (h *Head) open() []*Channel {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	var all []*Channel
	for _, c := range h.channels {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// Stats returns the statistics of the path, summed up over all channels. Any
// goroutine.
func (p *Path) Stats() PathStats {
	var sum PathStats
	for _, c := range p.head.open() {
		if s := &c.cold.published.slots[p.slot]; s.path.Load() == p {
			one := s.read()
			sum.add(&one)
		}
	}
	return sum
}
