package policy

import (
	"fmt"
	"time"
)

// Config of a [Group]; the zero value works.
type Config struct {
	// PublishInterval is how often a core publishes what it has in flight and
	// reads what others have published; 0 is 1 ms.
	PublishInterval time.Duration

	// StaleAfter is the age from which the snapshot of a core that still had I/Os
	// in flight no longer counts, since that core does not poll; 0 is 50 publish
	// intervals.
	StaleAfter time.Duration

	// LatencyShift is s in the moving average of the latency policy, where a new
	// mean has a weight of 1 in 2^s; 0 is 3, at most 16. The attribute
	// latency_ewma_shift.
	LatencyShift int

	// LatencyBatch is the time over which the latency policy takes the mean that
	// enters its moving average; 0 is 15 s. The attribute latency_batch_timeout.
	LatencyBatch time.Duration
}

// Defaults and limits of a Config.
const (
	DefaultPublishInterval = time.Millisecond
	DefaultLatencyShift    = 3
	DefaultLatencyBatch    = 15 * time.Second

	maxLatencyShift = 16
	maxInterval     = time.Hour
)

func (c *Config) complete() error {
	if c.PublishInterval == 0 {
		c.PublishInterval = DefaultPublishInterval
	}
	if c.StaleAfter == 0 {
		c.StaleAfter = 50 * c.PublishInterval
	}
	if c.LatencyShift == 0 {
		c.LatencyShift = DefaultLatencyShift
	}
	if c.LatencyBatch == 0 {
		c.LatencyBatch = DefaultLatencyBatch
	}
	switch {
	case c.PublishInterval < 0 || c.PublishInterval > maxInterval:
		return fmt.Errorf("policy: %w: publish interval %v", ErrConfig, c.PublishInterval)
	case c.StaleAfter < c.PublishInterval || c.StaleAfter > 100*maxInterval:
		return fmt.Errorf("policy: %w: snapshots stale after %v, published every %v", ErrConfig, c.StaleAfter, c.PublishInterval)
	}
	return checkLatency(c.LatencyShift, c.LatencyBatch)
}

func checkLatency(shift int, batch time.Duration) error {
	switch {
	case shift < 1 || shift > maxLatencyShift:
		return fmt.Errorf("policy: %w: latency_ewma_shift %d, it is from 1 to %d", ErrConfig, shift, maxLatencyShift)
	case batch <= 0 || batch > maxInterval:
		return fmt.Errorf("policy: %w: latency_batch_timeout %v, it is from 1ns to %v", ErrConfig, batch, maxInterval)
	}
	return nil
}

// Group is what the cores of a namespace head share: where each publishes its
// snapshot, and the configuration.
type Group struct {
	cfg       Config
	published []published
	sets      []*Set
}

// NewGroup returns a group of as many Sets as there are cores that use the
// head, 1 to [MaxCores]. Each Set begins with the [Default] policy and no paths.
func NewGroup(cores int, cfg Config) (*Group, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cores < 1 || cores > MaxCores {
		return nil, fmt.Errorf("policy: %w: %d cores, it is from 1 to %d", ErrConfig, cores, MaxCores)
	}
	g := &Group{cfg: cfg, published: make([]published, cores), sets: make([]*Set, cores)}
	for i := range g.sets {
		g.sets[i] = newSet(g, i)
	}
	return g, nil
}

// Cores returns the number of Sets.
func (g *Group) Cores() int { return len(g.sets) }

// Set returns the Set of a core, 0 to Cores-1.
func (g *Group) Set(core int) *Set { return g.sets[core] }

// Load is what is in flight.
type Load struct {
	Bytes uint64
	Count uint64
}

// InFlight returns what all cores together have published to be in flight on a
// path: the attributes queue_depth and in_flight_bytes. Any goroutine. Slots
// that do not exist have nothing in flight.
func (g *Group) InFlight(slot int) Load {
	var sum Load
	if checkSlot(slot) != nil {
		return sum
	}
	for i := range g.published {
		l := unpack(g.published[i].load[slot].Load())
		sum.Bytes += l.Bytes
		sum.Count += l.Count
	}
	return sum
}
