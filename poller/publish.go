//qpoll:hot

package poller

import "sync/atomic"

// published is the snapshot that other cores read. The core writes it with
// plain stores of its own, one writer; version is odd meanwhile, so that a
// reader can tell a snapshot from a mixture of two.
type published struct {
	version atomic.Uint64
	values  [len(counters{})]atomic.Uint64
}

// publish stores what has changed since the last time. An atomic store costs
// more than all of the comparisons, and most of the histogram never changes.
func (p *Poller) publish(now int64) {
	p.publishAt = later(now, int64(p.cfg.PublishInterval))
	p.counters[cAt] = uint64(now)
	pub := &p.published
	version := pub.version.Load()
	pub.version.Store(version + 1)
	for i := range p.counters {
		if v := &pub.values[i]; v.Load() != p.counters[i] {
			v.Store(p.counters[i])
		}
	}
	pub.version.Store(version + 2)
}

// unpublished reports whether work was done that no snapshot has yet.
func (p *Poller) unpublished() bool {
	return p.published.values[cWork].Load() != p.counters[cWork]
}

// Stats returns the last published snapshot, which is at most as old as
// [Config.PublishInterval] while the poller makes passes and complete when it
// sleeps. On the core it returns the live figures. Any goroutine.
func (p *Poller) Stats() Stats {
	if p.OnCore() {
		return p.counters.stats()
	}
	var c counters
	for try := 0; !p.published.read(&c); try++ {
		yieldFor(try)
	}
	return c.stats()
}

// read copies the snapshot, and reports whether it is whole.
func (pub *published) read(c *counters) bool {
	version := pub.version.Load()
	for i := range c {
		c[i] = pub.values[i].Load()
	}
	return version&1 == 0 && pub.version.Load() == version
}

// ResetGaps forgets the gaps counted so far, as after a warm-up. On the core
// only, or while the poller is not running.
func (p *Poller) ResetGaps() {
	p.checkOwner("ResetGaps")
	p.counters[cMaxGap] = 0
	clear(p.counters[cGaps:])
}
