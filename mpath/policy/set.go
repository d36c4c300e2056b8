package policy

import (
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Set is what one core knows of the paths of a head. All methods are for that
// core, or for whoever sets it up before.
type Set struct {
	_ [64]byte // from whatever lies before it

	nextTick  int64
	pol       Policy
	mask      uint32 // of candidates
	ncand     uint32
	slots     uint32 // highest slot in use plus one
	gen       uint16 // which policy value is in force
	shared    bool
	idle      bool // all zeroes are published
	staggered bool

	cand   [MaxPaths]uint8
	own    [MaxPaths]Load
	others [MaxPaths]Load
	ahead  [MaxPaths]signed
	follow uint64 // one more than the cores that are expected to do as this one does
	total  uint64 // in flight on this core

	weight [MaxPaths]uint32
	epoch  [MaxPaths]uint32

	interval int64
	stale    int64
	active   int // cores with something in flight, this one included
	pub      *published

	group  *Group
	core   int
	name   string
	known  uint32 // slots with a path
	misses uint64
	stats  [MaxPaths]PathStats
	paths  [MaxPaths]Path
	shift  int
	batch  int64

	_ [64]byte
}

// signed is a difference of loads.
type signed struct{ bytes, count int64 }

// PathStats is what one core has counted of a path since it was put.
type PathStats struct {
	Dispatched uint64 // I/Os
	Completed  uint64 // of these, ended without error
	Failed     uint64 // ended by an error, an abort or a failover
	Forgotten  uint64 // in flight when the path was reset or removed
	Bytes      uint64 // dispatched
}

func newSet(g *Group, core int) *Set {
	s := &Set{
		group: g, core: core, pub: &g.published[core], active: 1, follow: 1,
		interval: int64(g.cfg.PublishInterval), stale: int64(g.cfg.StaleAfter),
		shift: g.cfg.LatencyShift, batch: int64(g.cfg.LatencyBatch),
	}
	s.pol, s.name = new(expectedDelay), ExpectedDelay
	s.shared = true
	return s
}

// Core returns the number of the Set in its Group.
func (s *Set) Core() int { return s.core }

// Cores returns how many cores have I/Os in flight by their last snapshots,
// this one included.
func (s *Set) Cores() int { return s.active }

// Put adds the path of a slot, or tells what has changed about it. A path has
// the same slot on all cores. A new path begins with nothing in flight. The
// error wraps [ErrSlot], [ErrWeight] or [ErrState], and nothing has changed then.
func (s *Set) Put(slot int, p Path) error {
	if err := checkSlot(slot); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	if s.known>>slot&1 == 0 {
		s.forget(slot)
		s.stats[slot] = PathStats{}
		s.known |= 1 << slot
	}
	s.paths[slot] = p
	s.weight[slot] = uint32(p.Weight)
	s.changed()
	return nil
}

// Path returns what was put in a slot.
func (s *Set) Path(slot int) (Path, bool) {
	if checkSlot(slot) != nil || s.known>>slot&1 == 0 {
		return Path{}, false
	}
	return s.paths[slot], true
}

// Remove takes a path out. What was in flight on it no longer counts, and its
// tickets give nothing back. A slot without a path is left alone.
func (s *Set) Remove(slot int) {
	if checkSlot(slot) != nil || s.known>>slot&1 == 0 {
		return
	}
	s.forget(slot)
	s.known &^= 1 << slot
	s.changed()
}

// Reset says that the queue of a path was torn down: what was in flight on it no
// longer counts, and tickets from before give nothing back.
func (s *Set) Reset(slot int) {
	if checkSlot(slot) != nil || s.known>>slot&1 == 0 {
		return
	}
	s.forget(slot)
	s.changed()
}

// forget zeroes the counters of a slot and makes its tickets worthless.
func (s *Set) forget(slot int) {
	s.stats[slot].Forgotten += s.own[slot].Count
	s.total -= s.own[slot].Count
	s.own[slot] = Load{}
	s.epoch[slot]++
}

// changed works out the candidates: the usable paths of the best ANA state.
func (s *Set) changed() {
	s.slots = 0
	s.mask, s.ncand = 0, 0
	for _, state := range [...]nvme.ANAState{nvme.ANAOptimized, nvme.ANANonOptimized} {
		for slot := range MaxPaths {
			p := &s.paths[slot]
			if s.known>>slot&1 == 0 {
				continue
			}
			s.slots = max(s.slots, uint32(slot)+1)
			if s.mask>>slot&1 == 0 && p.Usable && p.State == state {
				s.cand[s.ncand] = uint8(slot)
				s.ncand++
				s.mask |= 1 << slot
			}
		}
		if s.ncand != 0 {
			break
		}
	}
	for slot := range s.pub.load {
		if s.known>>slot&1 == 0 && s.pub.load[slot].Load() != 0 {
			s.pub.load[slot].Store(0)
		}
	}
	s.pol.Changed(s)
}

// Use puts the named policy in force, also while I/Os are outstanding. The error
// wraps [ErrUnknown], and nothing has changed then.
func (s *Set) Use(name string) error {
	p, err := New(name)
	if err != nil {
		return err
	}
	s.use(name, p)
	return nil
}

// UsePolicy puts a policy in force that was not registered. The name is for
// [Set.Policy].
func (s *Set) UsePolicy(name string, p Policy) error {
	if p == nil {
		return fmt.Errorf("policy: %q: %w: no value", name, ErrUnknown)
	}
	if err := checkName(name); err != nil {
		return err
	}
	s.use(name, p)
	return nil
}

func (s *Set) use(name string, p Policy) {
	s.gen++ // what Word holds in tickets out there is another policy's
	s.name, s.pol, s.shared = name, p, p.Shared()
	if !s.shared {
		s.others, s.ahead, s.follow = [MaxPaths]Load{}, [MaxPaths]signed{}, 1
	}
	for slot := range s.pub.hint {
		if s.pub.hint[slot].Load() != 0 {
			s.pub.hint[slot].Store(0)
		}
	}
	s.nextTick = 0 // look at the others before the next choice
	p.Changed(s)
}

// Policy returns the name of the policy in force and its value.
func (s *Set) Policy() (string, Policy) { return s.name, s.pol }

// TuneLatency sets latency_ewma_shift, 1 to 16, and latency_batch_timeout, up
// to an hour. The error wraps [ErrConfig].
func (s *Set) TuneLatency(shift int, batch time.Duration) error {
	if err := checkLatency(shift, batch); err != nil {
		return err
	}
	s.shift, s.batch = shift, int64(batch)
	return nil
}

// Stats returns what this core has counted of a path.
func (s *Set) Stats(slot int) PathStats {
	if checkSlot(slot) != nil {
		return PathStats{}
	}
	return s.stats[slot]
}

// Misses returns how often a policy chose what was no candidate.
func (s *Set) Misses() uint64 { return s.misses }

// Total returns how many I/Os of this core are in flight on all paths.
func (s *Set) Total() uint64 { return s.total }

// Idle is to be called when the core has nothing to do, before it sleeps: it
// publishes what has not been yet.
func (s *Set) Idle(now int64) {
	if s.total != 0 || !s.idle {
		s.publish(now)
	}
}
