package mpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Head is a namespace that may be reached by several paths. It stays when it has
// none left, for those that join anew. Any goroutine.
type Head struct {
	sub    *Subsystem
	name   string
	ident  nvme.NamespaceIdentity
	shared bool
	owner  bool // Close closes the subsystem, too
	group  *policy.Group

	// Under the subsystem's lock.
	paths    []*Path
	channels []*Channel // by the index of their sets
	seq      uint64
	policy   string
	shift    int
	batch    time.Duration
	width    uint32
	blocks   uint64

	removal  time.Duration // DelayedRemoval
	refuse   bool          // no path is waited for
	gaveUp   bool          // fast I/O fail is in force
	gone     bool          // there is no path that may come back, nor is one waited for
	failing  *time.Timer   // until gaveUp
	removing *time.Timer   // until gone

	turn     chan struct{} // holds one: the right to make or close blocking
	blocking atomic.Pointer[Channel]
}

// Name names the head as Linux does, such as "nvme0n1".
func (h *Head) Name() string { return h.name }

// IDs returns what identifies the namespace.
func (h *Head) IDs() nvme.NamespaceIdentity { return h.ident }

// Shared tells whether controllers share the namespace (NMIC), so that it may
// have several paths.
func (h *Head) Shared() bool { return h.shared }

// Subsystem returns the subsystem that the namespace is part of.
func (h *Head) Subsystem() *Subsystem { return h.sub }

// BlockSize returns the bytes per logical block as transferred.
func (h *Head) BlockSize() int {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return int(h.width)
}

// Blocks returns the size in logical blocks.
func (h *Head) Blocks() uint64 {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return h.blocks
}

// Size returns the size in bytes.
func (h *Head) Size() int64 {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return int64(h.blocks * uint64(h.width))
}

// Paths returns the paths that the head has now, in the order of their slots.
func (h *Head) Paths() []*Path {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return slices.Clone(h.paths)
}

// Policy returns the name of the I/O policy in force.
func (h *Head) Policy() string {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return h.policy
}

// SetPolicy puts the named I/O policy in force, also while I/O is under way; see
// policy.Names and policy.Register. An unknown name, or none, is an error that
// wraps policy.ErrUnknown, and nothing has changed then.
func (h *Head) SetPolicy(name string) error {
	if _, err := policy.New(name); err != nil {
		return fmt.Errorf("mpath: %s: iopolicy: %w", h.name, err)
	}
	s := h.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	from := h.policy
	if from == name {
		return nil
	}
	h.policy = name
	h.push()
	if f := s.cfg.Events.Policy; f != nil {
		s.events.post(func() { f(h, from, name) })
	}
	return nil
}

// TuneLatency sets the parameters of the latency policy: latency_ewma_shift, 1 to
// 16, and latency_batch_timeout, up to an hour.
func (h *Head) TuneLatency(shift int, batch time.Duration) error {
	if shift == 0 || batch == 0 { // which mean the defaults to a Config
		return fmt.Errorf("mpath: %s: %w: latency_ewma_shift %d, latency_batch_timeout %v", h.name, policy.ErrConfig, shift, batch)
	}
	if _, err := policy.NewGroup(1, policy.Config{LatencyShift: shift, LatencyBatch: batch}); err != nil {
		return fmt.Errorf("mpath: %s: %w", h.name, err)
	}
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	h.shift, h.batch = shift, batch
	h.push()
	return nil
}

// SetDelayedRemoval sets how long I/O waits after the last path was lost for
// good; see Config.DelayedRemoval.
func (h *Head) SetDelayedRemoval(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%w: delayed_removal_secs %v", ErrAttribute, d)
	}
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	h.removal = d
	h.update()
	return nil
}

// DelayedRemoval returns what SetDelayedRemoval has set.
func (h *Head) DelayedRemoval() time.Duration {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return h.removal
}

// Close takes down the blocking calls of the head; one that Open has returned is
// closed with its subsystem. Idempotent.
func (h *Head) Close(ctx context.Context) error {
	if h.owner {
		return h.sub.Close(ctx)
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if c := h.blocking.Swap(nil); c != nil {
		return c.Close(ctx)
	}
	return nil
}

// update works out what the head's paths are good for and has channels and
// listeners know. With the lock held.
func (h *Head) update() {
	usable, may := false, false
	for _, p := range h.paths {
		usable = usable || p.usable()
		may = may || p.mayCome()
	}
	s := h.sub
	h.gaveUp = h.gaveUp && !usable
	h.gone = h.gone && !may
	h.failing = h.after(h.failing, !usable && may && !h.gaveUp, s.cfg.FastIOFailTimeout, func() { h.gaveUp = true })
	if !may && h.removal == 0 {
		h.gone = true
	}
	h.removing = h.after(h.removing, !may && !h.gone, h.removal, func() { h.gone = true })
	h.refuse = !usable && (h.gaveUp || !may && h.gone)
	for _, p := range h.paths {
		p.tell()
	}
	h.push()
}

// after keeps a timer running while it is wanted, if d is positive. set is called
// with the lock held.
func (h *Head) after(t *time.Timer, wanted bool, d time.Duration, set func()) *time.Timer {
	switch {
	case !wanted || h.sub.closed:
		if t != nil {
			t.Stop()
		}
		return nil
	case t != nil || d <= 0:
		return t
	}
	var mine *time.Timer
	mine = time.AfterFunc(d, func() {
		h.sub.mu.Lock()
		defer h.sub.mu.Unlock()
		if h.failing == mine || h.removing == mine {
			set()
			h.update()
		}
	})
	return mine
}

// noPath says why there is no path.
func (h *Head) noPath(err error) error {
	s := h.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{err}
	for _, p := range h.paths {
		if !p.usable() {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, p.downCause()))
		}
	}
	return fmt.Errorf("mpath: %s: %w", h.name, errors.Join(errs...))
}

// blockingChannel returns the channel of the blocking calls, which the first of
// them makes.
func (h *Head) blockingChannel(ctx context.Context) (*Channel, error) {
	if c := h.blocking.Load(); c != nil {
		return c, nil
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctxError(ctx)
	}
	defer func() { <-h.turn }()
	if c := h.blocking.Load(); c != nil {
		return c, nil
	}
	p, err := h.sub.blockingPoller()
	if err != nil {
		return nil, err
	}
	c, err := h.Channel(ctx, p, nvme.QueueConfig{})
	if err == nil {
		h.blocking.Store(c)
	}
	return c, err
}

// blockingPoller returns the poller of the blocking calls.
func (s *Subsystem) blockingPoller() (*poller.Poller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.cfg.Poller != nil:
		return s.cfg.Poller, nil
	case s.poller != nil:
		return s.poller, nil
	}
	p, err := poller.New(poller.Config{Name: "qpoll-mpath", Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s.poller = p
	return p, nil
}
