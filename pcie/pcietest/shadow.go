package pcietest

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// shadow are the shadow doorbells and event indexes (Base Specification B.5).
type shadow struct {
	on             bool
	values, events uint64 // addresses
	db, ei         mmio.Window
	found          bool // db and ei are there
}

func (s *shadow) forget() { s.found, s.db, s.ei = false, mmio.Window{}, mmio.Window{} }

// untouched is what a doorbell holds that was not written since it was last
// read, where writes matter more than the value.
const untouched = 0xffffffff

// shadowed reports whether a doorbell has a shadow: those of I/O queues, as far
// as one page goes.
func (c *Controller) shadowed(qid uint16, off uint64) bool {
	if !c.shadow.on || qid == 0 || off+4 > uint64(c.page) {
		return false
	}
	s := &c.shadow
	if !s.found {
		db, st := c.whole(s.values, uint64(c.page), useSQ)
		ei, st2 := c.whole(s.events, uint64(c.page), useOther)
		if st != 0 || st2 != 0 {
			c.regs.csts.CFS = true
			return false
		}
		s.db, s.ei, s.found = mmio.NewWindow(db), mmio.NewWindow(ei), true
	}
	return true
}

// tail reads the doorbell of a submission queue.
func (c *Controller) tail(q *subQueue) uint32 {
	v := q.reg.Load()
	if off := c.sqDoorbell(q.id); c.shadow.on && c.shadowed(q.id, off) {
		if c.cfg.ShadowNotify {
			if v == untouched {
				return q.tail
			}
			atomic.SwapUint32(dword(c.doorbells.b, off), untouched)
			v = c.ask(off)
		} else {
			if v, _ = c.shadow.db.Read32(off); v != q.tail {
				_ = c.shadow.ei.Write32(off, (v-1)&0xffff) // nothing needs to be written
			}
		}
	}
	if v != q.tail && c.value(v, q.size, &q.refused) {
		q.tail = v
	}
	return q.tail
}

// ask reads a shadow doorbell and has the driver write the real one when it
// goes on from there.
func (c *Controller) ask(off uint64) uint32 {
	for {
		v, _ := c.shadow.db.Read32(off)
		_ = c.shadow.ei.Write32(off, v)
		mmio.Fence()
		if w, _ := c.shadow.db.Read32(off); w == v {
			return v
		}
	}
}

// head reads the doorbell of a completion queue.
func (c *Controller) head(q *comQueue) uint32 {
	v := q.reg.Load()
	if off := c.cqDoorbell(q.id); c.shadow.on && c.shadowed(q.id, off) {
		v, _ = c.shadow.db.Read32(off)
		_ = c.shadow.ei.Write32(off, (v-1)&0xffff)
	}
	if v != q.head && c.value(v, q.size, &q.refused) {
		return v
	}
	return q.head
}

// value reports whether a doorbell has a value that its queue can have. One
// that it cannot have is reported once.
func (c *Controller) value(v, size uint32, refused *uint32) bool {
	if v < size {
		*refused = 0
		return true
	}
	if *refused != v+1 {
		*refused = v + 1
		c.stats.BadDoorbells++
		c.raise(nvme.AsyncError, nvme.ErrorInvalidDoorbellValue, nvme.LogError)
	}
	return false
}
