package overhead

// Counts are the sums over the intervals of a slice, by what was done in them.
// Ticks are those of the processor's counter, with what reading it costs.
type Counts struct {
	PostIntervals uint64 // batches that were submitted
	Posted        uint64 // I/Os in these
	PostTicks     uint64

	Rings     uint64 // passes that sent a batch off, and found nothing to reap
	Rung      uint64 // I/Os in these batches
	RingTicks uint64

	Completing    uint64 // passes that reaped, and had nothing to send off
	Reaped        uint64 // I/Os that completed in these
	CompleteTicks uint64

	Mixed       uint64 // passes that did both: only the total has them
	MixedReaped uint64
	MixedTicks  uint64

	Partial      uint64 // passes that did something that completed nothing
	PartialTicks uint64

	Idle      uint64 // passes that found nothing to do
	IdleTicks uint64

	// Elsewhere are the I/Os that completed between this slice and the one
	// before, in passes of the poller's own.
	Elsewhere uint64
}

// add adds what another slice has seen.
func (c *Counts) add(o *Counts) {
	for _, f := range []struct {
		to   *uint64
		from uint64
	}{
		{&c.PostIntervals, o.PostIntervals}, {&c.Posted, o.Posted}, {&c.PostTicks, o.PostTicks},
		{&c.Rings, o.Rings}, {&c.Rung, o.Rung}, {&c.RingTicks, o.RingTicks},
		{&c.Completing, o.Completing}, {&c.Reaped, o.Reaped}, {&c.CompleteTicks, o.CompleteTicks},
		{&c.Mixed, o.Mixed}, {&c.MixedReaped, o.MixedReaped}, {&c.MixedTicks, o.MixedTicks},
		{&c.Partial, o.Partial}, {&c.PartialTicks, o.PartialTicks},
		{&c.Idle, o.Idle}, {&c.IdleTicks, o.IdleTicks}, {&c.Elsewhere, o.Elsewhere},
	} {
		*f.to += f.from
	}
}

// Cost is what I/O has cost, in nanoseconds: the medians over all slices, with
// the cost of reading the counter taken off. A figure is 0 if there was nothing
// to take it from.
type Cost struct {
	Post     float64 // per I/O: the call that submits
	Ring     float64 // per I/O: the pass that sends a batch off
	Complete float64 // per I/O: the pass that finds completions, with the callbacks
	IdlePoll float64 // per pass that finds nothing
	Total    float64 // per I/O: all passes but the idle ones
}

// Submit is what submitting has cost per I/O, with its share of what sends the
// batch off.
func (c *Cost) Submit() float64 { return c.Post + c.Ring }

// scale turns sums into nanoseconds per item.
type scale struct {
	read float64 // ticks that a reading costs
	ns   float64 // per tick
}

// per divides an amount of ticks, taken in so many intervals, by a number of
// items. ok is false if there were none.
func (s scale) per(ticks, intervals, items uint64) (ns float64, ok bool) {
	if items == 0 {
		return 0, false
	}
	return max(0, float64(ticks)-s.read*float64(intervals)) * s.ns / float64(items), true
}

// cost returns the medians over slices.
func (s scale) cost(slices []Counts) Cost {
	var post, ring, complete, idle, total series
	for i := range slices {
		c := &slices[i]
		post.add(s.per(c.PostTicks, c.PostIntervals, c.Posted))
		ring.add(s.per(c.RingTicks, c.Rings, c.Rung))
		complete.add(s.per(c.CompleteTicks, c.Completing, c.Reaped))
		idle.add(s.per(c.IdleTicks, c.Idle, c.Idle))
		total.add(s.per(c.PostTicks+c.RingTicks+c.CompleteTicks+c.MixedTicks+c.PartialTicks,
			c.PostIntervals+c.Rings+c.Completing+c.Mixed+c.Partial, c.Posted))
	}
	return Cost{post.median(), ring.median(), complete.median(), idle.median(), total.median()}
}
