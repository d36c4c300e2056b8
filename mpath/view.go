package mpath

import (
	"context"
	"errors"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/poller"
)

// view is what a channel is to know of its head, as of some moment.
type view struct {
	seq    uint64
	paths  []pathView
	policy string
	shift  int
	batch  time.Duration
	width  uint32
	blocks uint64
	refuse bool // no path is waited for
}

type pathView struct {
	l           *link
	path        policy.Path
	association uint64
	log         uint64
}

const retireWait = 2 * time.Millisecond

// push has all channels of a head see it as it is now. With the lock held.
func (h *Head) push() {
	h.seq++
	for _, c := range h.channels {
		if c == nil || c.cold.ended {
			continue
		}
		v := h.view(c)
		postLater(c.p, func() { c.apply(v) })
	}
}

func (h *Head) view(c *Channel) *view {
	v := &view{
		seq: h.seq, policy: h.policy, shift: h.shift, batch: h.batch,
		width: h.width, blocks: h.blocks, refuse: h.refuse,
	}
	hope := false
	for _, p := range h.paths {
		state := c.cold.links[p]
		if state == nil || !state.open {
			hope = hope || state != nil && state.failed == nil
			continue
		}
		hope = true
		v.paths = append(v.paths, pathView{
			l: state.l, association: p.member.association, log: p.member.logs,
			path: policy.Path{
				State: p.state, Usable: p.member.live && !p.expired, Weight: p.weight,
				Distance: distance(sysfs, c.cold.node, p.member.node),
			},
		})
	}
	v.refuse = v.refuse || !hope && len(h.paths) > 0
	return v
}

// apply takes in a view, on the core.
func (c *Channel) apply(v *view) {
	if c.closed || v.seq <= c.cold.seen {
		return
	}
	c.cold.seen = v.seq
	c.width, c.blocks, c.refuse, c.look = v.width, v.blocks, v.refuse, true
	var now [policy.MaxPaths]*pathView
	for i := range v.paths {
		now[v.paths[i].l.slot] = &v.paths[i]
	}
	for slot, l := range c.links {
		if l != nil && (now[slot] == nil || now[slot].l != l) {
			c.links[slot] = nil
			l.usable = false
			c.set.Remove(slot)
		}
	}
	for slot, pv := range now {
		if pv == nil {
			continue
		}
		l := pv.l
		c.links[slot] = l
		if l.log != pv.log || l.association != pv.association {
			l.pending, l.told = false, false
		}
		l.seen, l.association, l.log = pv.path, pv.association, pv.log
		c.refresh(l)
	}
	c.tune(v)
}

// tune puts another policy in force, or changes it.
func (c *Channel) tune(v *view) {
	err := c.set.TuneLatency(v.shift, v.batch)
	if name, _ := c.set.Policy(); name != v.policy {
		err = errors.Join(err, c.set.Use(v.policy))
	}
	if err != nil { // what was checked when it was set
		c.cold.head.sub.cfg.Logger.Error("policy", "head", c.cold.head.name, "policy", v.policy, "error", err)
	}
}

// postLater has fn run on p's core at some time, unless p is closed first. It
// does not wait.
func postLater(p *poller.Poller, fn func()) {
	if errors.Is(p.Post(fn), poller.ErrMailboxFull) {
		time.AfterFunc(time.Millisecond, func() { postLater(p, fn) })
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
