package mpath

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// channelCold is what a channel seldom looks at.
type channelCold struct {
	head      *Head
	all       []request
	queue     nvme.QueueConfig
	index     int // of the set
	node      int // NUMA node of the core
	seen      uint64
	published published

	// Under the subsystem's lock.
	links map[*Path]*linkState
	ended bool

	life    context.Context // ends with the channel
	end     context.CancelFunc
	opening sync.WaitGroup
	closing sync.Once
	gone    chan struct{} // closed when nothing is left
}

// Channel makes a channel to the head on poller p, which must be running: a
// queue pair of its own on each path. It waits for those to controllers that
// are live now; others follow. cfg says how the queue pairs are made; Failover
// and Notify are the channel's own. Any goroutine but a poller's.
func (h *Head) Channel(ctx context.Context, p *poller.Poller, cfg nvme.QueueConfig) (*Channel, error) {
	if p == nil {
		return nil, fmt.Errorf("%w: no poller", nvme.ErrUnsupported)
	}
	if p.OnCore() {
		return nil, nvme.ErrOnCore
	}
	c, err := h.newChannel(p, cfg)
	if err != nil {
		return nil, err
	}
	s := h.sub
	s.mu.Lock()
	wait := c.attach()
	s.mu.Unlock()
	for _, done := range wait {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), c.Close(context.Background()))
		}
	}
	s.mu.Lock()
	h.push()
	s.mu.Unlock()
	// Behind the view, so that the first I/O finds the paths.
	if err := p.Call(ctx, func() { p.Add(c) }); err != nil {
		return nil, errors.Join(err, c.Close(context.Background()))
	}
	return c, nil
}

// newChannel makes a channel that no core has yet.
func (h *Head) newChannel(p *poller.Poller, cfg nvme.QueueConfig) (*Channel, error) {
	s := h.sub
	n := s.cfg.Trackers
	c := &Channel{p: p, free: make([]*request, n), due: noTime, refuse: true}
	cold := &c.cold
	cold.head, cold.queue, cold.links = h, cfg, map[*Path]*linkState{}
	cold.all = make([]request, n)
	cold.node = nodeOfCore(sysfs, p.Core())
	cold.gone = make(chan struct{})
	for i := range cold.all {
		cold.all[i].ch = c
		c.free[n-1-i] = &cold.all[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	for i, used := range h.channels {
		if used == nil {
			cold.life, cold.end = context.WithCancel(context.Background())
			cold.index, c.set = i, h.group.Set(i)
			h.channels[i] = c
			c.width, c.blocks = h.width, h.blocks
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w channels: Config.Channels is %d", ErrPaths, len(h.channels))
}

// Poller returns the poller that the channel belongs to. Any goroutine.
func (c *Channel) Poller() *poller.Poller { return c.p }

// Head returns the head that the channel leads to. Any goroutine.
func (c *Channel) Head() *Head { return c.cold.head }

// Close takes the channel down with its queue pairs. What is under way completes
// with StatusCommandAbortedByHost first. Any goroutine but a poller's.
// Idempotent. If ctx ends first, the rest goes on without it.
func (c *Channel) Close(ctx context.Context) error {
	if c.p.OnCore() {
		return nvme.ErrOnCore
	}
	c.cold.closing.Do(func() { go c.shut() })
	select {
	case <-c.cold.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shut is the end of a channel.
func (c *Channel) shut() {
	defer close(c.cold.gone)
	cold := &c.cold
	s := cold.head.sub
	s.mu.Lock()
	cold.ended = true
	var list []*link
	for _, state := range cold.links {
		if state.open {
			list = append(list, state.l)
		}
	}
	s.mu.Unlock()
	cold.end()
	c.p.CallAnyway(func() {
		c.closed = true
		c.p.Remove(c)
		c.failAll(nvme.StatusCommandAbortedByHost)
	})
	var wg sync.WaitGroup
	for _, l := range list {
		wg.Go(func() { _ = l.q.Close(context.Background()) })
	}
	wg.Wait()
	cold.opening.Wait()
	c.p.CallAnyway(func() {
		for slot := range c.links {
			c.links[slot] = nil
			c.set.Remove(slot)
		}
		c.set.Idle(c.p.Now())
		c.publish(c.p.Now())
	})
	s.mu.Lock()
	cold.head.channels[cold.index] = nil
	s.mu.Unlock()
}
