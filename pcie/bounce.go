//qpoll:hot

package pcie

import "github.com/qpoll/qpoll/nvme"

// pagePool is a queue's pages for data that the device cannot reach where it
// is, and for PRP lists that need more than their tracker has.
type pagePool struct {
	b    []byte
	addr []uint64 // of each page, as the device sees it
	next []uint32 // the page after each, plus one, in the free list or a slot's
	head uint32   // first free page, plus one
	free int
	cmb  *cmbPages // nil unless the pages are in the controller
}

// page returns the memory of a page.
func (p *pagePool) page(i uint32) []byte { return p.b[i<<pageShift : (i+1)<<pageShift] }

// words returns the memory of a page as PRP entries.
func (p *pagePool) words(i uint32) []uint64 { return words(p.page(i)) }

// take moves n pages to a slot that has none.
func (p *pagePool) take(s *slot, n int) bool {
	if n > p.free {
		return false
	}
	s.page = p.head
	last := p.head
	for range n - 1 {
		last = p.next[last-1]
	}
	p.head = p.next[last-1]
	p.next[last-1] = 0
	p.free -= n
	return true
}

// give takes a slot's pages back.
func (p *pagePool) give(s *slot) {
	for s.page != 0 {
		i := s.page - 1
		s.page = p.next[i]
		p.next[i] = p.head
		p.head = i + 1
		p.free++
	}
}

// bounce sends the data of r through the pool: as many whole pages as it takes,
// and a PRP list of them.
func (q *queue) bounce(r *nvme.Request, s *slot) (d1, d2 uint64, ok bool) {
	n := int(r.Data.Len)
	data := (n + pageSize - 1) >> pageShift
	more := q.lists.more(data - 1)
	if !q.pool.take(s, data+more) {
		return 0, 0, false
	}
	s.bounced = true
	// The pages for the list come after those for the data.
	l := prpList{q: q, s: s, index: r.Index()}
	i := s.page
	for range data {
		i = q.pool.next[i-1]
	}
	l.chain = i
	i = s.page
	for range data {
		l.entry(q.pool.addr[i-1])
		i = q.pool.next[i-1]
	}
	switch {
	case r.Data.Dir != nvme.DirIn:
		q.copyOut(&r.Data, s)
	case q.admin || r.Cmd.Opcode != nvme.OpRead:
		// Not all commands fill what they may fill.
		q.clearPages(s, data)
	}
	return l.d1, l.d2, true
}

// copyOut copies data to the pages of a slot.
func (q *queue) copyOut(d *nvme.Data, s *slot) {
	w := pageCursor{pool: &q.pool, at: s.page}
	if d.Vec == nil {
		w.write(d.Buf[:d.Len])
		return
	}
	for c := newCursor(d); c.next(); {
		w.write(c.b)
	}
}

// copyIn copies data from the pages of a slot.
func (q *queue) copyIn(d *nvme.Data, s *slot) {
	w := pageCursor{pool: &q.pool, at: s.page}
	if d.Vec == nil {
		w.read(d.Buf[:d.Len])
		return
	}
	for c := newCursor(d); c.next(); {
		w.read(c.b)
	}
}

func (q *queue) clearPages(s *slot, n int) {
	i := s.page
	for range n {
		if q.pool.cmb != nil {
			q.pool.cmb.clear(i - 1)
		} else {
			clear(q.pool.page(i - 1))
		}
		i = q.pool.next[i-1]
	}
}

// pageCursor moves bytes to or from a chain of pages.
type pageCursor struct {
	pool *pagePool
	at   uint32 // page, plus one
	off  int
}

func (c *pageCursor) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), pageSize-c.off)
		if c.pool.cmb != nil {
			c.pool.cmb.write(c.at-1, c.off, b[:n])
		} else {
			copy(c.pool.page(c.at - 1)[c.off:], b[:n])
		}
		b = b[n:]
		c.advance(n)
	}
}

func (c *pageCursor) read(b []byte) {
	for len(b) > 0 {
		n := min(len(b), pageSize-c.off)
		if c.pool.cmb != nil {
			c.pool.cmb.read(c.at-1, c.off, b[:n])
		} else {
			copy(b[:n], c.pool.page(c.at - 1)[c.off:])
		}
		b = b[n:]
		c.advance(n)
	}
}

func (c *pageCursor) advance(n int) {
	if c.off += n; c.off == pageSize {
		c.off = 0
		c.at = c.pool.next[c.at-1]
	}
}

// finish ends what a command has beside its entry.
func (q *queue) finish(r *nvme.Request, s *slot) {
	if s.aer {
		s.aer = false
		q.aers--
	}
	if s.bounced {
		s.bounced = false
		if r.Data.Dir == nvme.DirIn && q.cpl.Status().OK() {
			q.copyIn(&r.Data, s)
		}
	}
	q.pool.give(s)
}

// defer_ puts a command behind those that wait for pages.
func (q *queue) defer_(r *nvme.Request) {
	if !q.up {
		return // it ends with the connection
	}
	q.slots[r.Index()].waiting = true
	q.waiting.push(r.Index())
}

// retry posts commands that waited, in order, as far as there are pages.
func (q *queue) retry() int {
	n := 0
	for ; q.waiting.n != 0; n++ {
		i := q.waiting.front()
		if !q.post(q.qp.Tracker(i)) {
			break
		}
		q.slots[i].waiting = false
		q.waiting.pop()
	}
	return n
}
