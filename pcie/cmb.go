package pcie

import (
	"fmt"
	"sync"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// cmb is the controller memory buffer (Base Specification 8.2.1) of a
// controller from revision 1.4 on, which says in CAP.CMBS that it has one and
// lets the host choose the address that commands know it by.
type cmb struct {
	t    *transport
	w    mmio.Window
	base uint64 // of the buffer, for the controller
	size uint64
	sz   nvme.CMBSZ
	loc  nvme.CMBLOC

	mu   sync.Mutex
	free extents
}

// openCMB looks for the buffer and enables it. It is not an error that there is
// none, or that it cannot be used.
func (t *transport) openCMB() {
	if old := t.cmb.Swap(nil); old != nil {
		t.mem.unreserve(old.base)
	}
	if !t.capp().CMBS() {
		return
	}
	if t.cfg.CMB == 0 {
		// No reset takes a buffer away that somebody before us has enabled: the
		// controller would go on taking addresses of ours for those of its own.
		if err := t.dev.Write64(nvme.RegCMBMSC, 0); err != nil {
			t.cfg.Logger.Warn("controller memory buffer not disabled", "device", t.dev.Name(), "error", err)
		}
		return
	}
	c, err := t.findCMB()
	if err != nil {
		t.cfg.Logger.Warn("controller memory buffer not used", "device", t.dev.Name(), "error", err)
		return
	}
	t.cmb.Store(c)
}

func (t *transport) findCMB() (*cmb, error) {
	if err := t.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(0, true, false))); err != nil {
		return nil, err
	}
	loc, err := t.dev.Read32(nvme.RegCMBLOC)
	if err != nil {
		return nil, err
	}
	sz, err := t.dev.Read32(nvme.RegCMBSZ)
	if err != nil {
		return nil, err
	}
	c := &cmb{t: t, loc: nvme.CMBLOC(loc), sz: nvme.CMBSZ(sz)}
	off, size, ok := c.sz.Range(c.loc)
	bar := int(c.loc.BIR())
	have := t.dev.BARSize(bar)
	if !ok || size == 0 || bar == 1 || bar > 5 || off >= have {
		return nil, fmt.Errorf("%w: CMBLOC %#x, CMBSZ %#x, BAR %d of %#x bytes", nvme.ErrProtocol, loc, sz, bar, have)
	}
	c.size = min(size, have-off) &^ (pageSize - 1)
	if c.w, err = t.dev.Map(bar, off, c.size); err != nil {
		return nil, fmt.Errorf("map the controller memory buffer: %w", err)
	}
	if c.base, err = t.mem.reserve(c.size); err != nil {
		return nil, err
	}
	if err = t.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(c.base, true, true))); err == nil {
		var st uint32
		if st, err = t.dev.Read32(nvme.RegCMBSTS); err == nil && nvme.CMBSTS(st).CBAI() {
			err = fmt.Errorf("%w: the controller does not take %#x as address of its memory buffer", nvme.ErrProtocol, c.base)
		}
	}
	if err != nil {
		t.mem.unreserve(c.base)
		return nil, err
	}
	c.free = extents{{0, int(c.size >> pageShift)}}
	return c, nil
}

// take returns n pages of the buffer; ok is false if there are not as many.
func (c *cmb) take(n int) (first int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free.take(n, 0)
}

func (c *cmb) give(first, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free.give(first, n)
}

// cmbQueue is a submission queue in the buffer. Commands are put together in
// ordinary memory and copied when the doorbell is rung, so that they go out in
// stores that follow each other.
type cmbQueue struct {
	c        *cmb
	first, n int
	addr     uint64
	w        mmio.Window
}

// cmbForQueue returns room for a submission queue of n entries, nil if it is to
// be in ordinary memory.
func (t *transport) cmbForQueue(n int) *cmbQueue {
	c := t.cmb.Load()
	if c == nil || t.cfg.CMB&CMBQueues == 0 || !c.sz.SQS() {
		return nil
	}
	pages := (n*nvme.CommandSize + pageSize - 1) >> pageShift
	first, ok := c.take(pages)
	if !ok {
		return nil
	}
	off := uint64(first) << pageShift
	w, err := c.w.Slice(off, uint64(pages)<<pageShift)
	if err != nil {
		c.give(first, pages)
		return nil
	}
	return &cmbQueue{c, first, pages, c.base + off, w}
}

func (q *cmbQueue) free() {
	if q != nil {
		q.c.give(q.first, q.n)
	}
}

// copyOut copies the n entries before tail to the controller.
func (c *queueCold) copyOut(sq []sqe, tail, n uint32) (ok bool) {
	return c.t.guarded(func() error {
		at := tail + uint32(len(sq)) - n
		for ; n > 0; n-- {
			at %= uint32(len(sq))
			for i, v := range sq[at].w {
				if err := c.cmb.w.Write64(uint64(at)*nvme.CommandSize+uint64(i)*8, v); err != nil {
					return err
				}
			}
			at++
		}
		mmio.CombinedFence()
		return nil
	})
}

// cmbPages are pages of the buffer that take the place of a pool's.
type cmbPages struct {
	c        *cmb
	first, n int
	w        mmio.Window
}

// cmbForData returns up to *n pages for data, nil if they are to be in ordinary
// memory; *n is then left as it is.
func (t *transport) cmbForData(n *int) *cmbPages {
	c := t.cmb.Load()
	if c == nil || t.cfg.CMB&CMBData == 0 || !c.sz.RDS() || !c.sz.WDS() {
		return nil
	}
	least := t.mostPages(false)
	for want := *n; want >= least; want /= 2 {
		first, ok := c.take(want)
		if !ok {
			continue
		}
		w, err := c.w.Slice(uint64(first)<<pageShift, uint64(want)<<pageShift)
		if err != nil {
			c.give(first, want)
			return nil
		}
		*n = want
		return &cmbPages{c, first, want, w}
	}
	return nil
}

func (p *cmbPages) free() {
	if p != nil {
		p.c.give(p.first, p.n)
	}
}

// addr returns where the controller finds page i.
func (p *cmbPages) addr(i uint32) uint64 {
	return p.c.base + uint64(p.first)<<pageShift + uint64(i)<<pageShift
}

// write copies b to page i, from byte off on, in aligned accesses: device memory
// takes no others on all machines.
func (p *cmbPages) write(i uint32, off int, b []byte) {
	at := uint64(i)<<pageShift + uint64(off)
	p.c.t.guarded(func() error { return storeBytes(p.w, at, b) })
}

// read copies page i, from byte off on, to b.
func (p *cmbPages) read(i uint32, off int, b []byte) {
	at := uint64(i)<<pageShift + uint64(off)
	p.c.t.guarded(func() error { return loadBytes(p.w, at, b) })
}

// clear zeroes page i.
func (p *cmbPages) clear(i uint32) {
	var zero [pageSize]byte
	p.write(i, 0, zero[:])
}

func storeBytes(w mmio.Window, at uint64, b []byte) error {
	for len(b) > 0 {
		var err error
		n := 8
		switch {
		case at%8 == 0 && len(b) >= 8:
			err = w.Write64(at, le64(b))
		default:
			n = 1
			err = w.Write8(at, b[0])
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+uint64(n)
	}
	mmio.CombinedFence()
	return nil
}

func loadBytes(w mmio.Window, at uint64, b []byte) error {
	for len(b) > 0 {
		n := 1
		if at%8 == 0 && len(b) >= 8 {
			v, err := w.Read64(at)
			if err != nil {
				return err
			}
			n = 8
			putLE64(b, v)
		} else {
			v, err := w.Read8(at)
			if err != nil {
				return err
			}
			b[0] = v
		}
		b, at = b[n:], at+uint64(n)
	}
	return nil
}
