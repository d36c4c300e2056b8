//qpoll:hot

package pcie

import "github.com/qpoll/qpoll/nvme"

// placement says how the data of a queue's commands may be described.
type placement struct {
	plain    bool // small transfers need no look at anything: PRP, one IOVA range
	sgl      SGLPolicy
	sglAlign uintptr // less one: alignment of SGL data blocks; SGLNever without SGLs
}

// sglAuto is the least transfer that SGLAuto describes by one descriptor
// instead of a PRP list.
const sglAuto = 32 << 10

// prpLists is memory for PRP lists, and SGL segments, the same for each tracker.
type prpLists struct {
	words []uint64
	per   int // entries for each tracker, a power of two, 64 to 512
	addr  []uint64
}

// locate finds out how the device gets at the data of r, and prepares that: in
// PRP entries, as SGL descriptor, or through the pool where neither can describe
// it. ok is false if the pool has not enough pages now; nothing has happened
// then.
func (q *queue) locate(r *nvme.Request, s *slot) (d1, d2 uint64, sgl, ok bool) {
	d := &r.Data
	if d.Vec != nil {
		return q.locateVec(r, s)
	}
	p, n := address(d.Buf), uintptr(d.Len)
	if !q.find(p, n) {
		d1, d2, ok = q.bounce(r, s)
		return d1, d2, false, ok
	}
	if w := q.place.sgl; w != SGLNever && (p|n)&q.place.sglAlign == 0 && q.reg.extent(p, n) == n &&
		(w == SGLAlways || n >= sglAuto || p&3 != 0) {
		return q.reg.at(p), uint64(n) | uint64(nvme.SGLTypeDataBlock)<<60, true, true
	}
	if p&3 != 0 {
		d1, d2, ok = q.bounce(r, s)
		return d1, d2, false, ok
	}
	l := prpList{q: q, s: s, index: r.Index()}
	if !l.reserve(pages(p, n)) {
		return 0, 0, false, false
	}
	l.add(p, n)
	return l.d1, l.d2, false, true
}

// find makes reg the region with the n bytes at p.
func (q *queue) find(p, n uintptr) bool {
	t := q.mem.table.Load()
	if q.tab == t && q.reg.has(p, n) {
		return true
	}
	r := t.find(p, n)
	if r == nil {
		return false
	}
	q.tab, q.reg = t, *r
	q.place.plain = r.pages == nil && q.place.sgl != SGLAlways
	return true
}

// pages returns how many pages of the controller the n bytes at p touch.
func pages(p, n uintptr) int {
	return int((p&(pageSize-1) + n + pageSize - 1) >> pageShift)
}

// locateVec is locate for data in pieces.
func (q *queue) locateVec(r *nvme.Request, s *slot) (d1, d2 uint64, sgl, ok bool) {
	w := vecWalk{q: q, d: &r.Data}
	w.run()
	switch {
	case w.foreign:
	case q.place.sgl != SGLNever && !w.odd && w.pieces <= q.lists.per/2 && (w.jagged || q.place.sgl == SGLAlways || r.Data.Len >= sglAuto):
		d1, d2 = q.sglList(r.Index(), &r.Data, w.pieces)
		return d1, d2, true, true
	case !w.jagged:
		l := prpList{q: q, s: s, index: r.Index()}
		if !l.reserve(w.pages) {
			return 0, 0, false, false
		}
		for c := newCursor(&r.Data); c.next(); {
			q.find(c.p, c.n)
			l.add(c.p, c.n)
		}
		return l.d1, l.d2, false, true
	}
	d1, d2, ok = q.bounce(r, s)
	return d1, d2, false, ok
}

// vecWalk looks at all pieces of a transfer.
type vecWalk struct {
	q       *queue
	d       *nvme.Data
	pieces  int
	pages   int
	foreign bool // part of it is not registered
	jagged  bool // PRP entries cannot describe it
	odd     bool // SGL descriptors cannot
}

func (w *vecWalk) run() {
	var end uintptr
	for c := newCursor(w.d); c.next(); w.pieces++ {
		if !w.q.find(c.p, c.n) {
			w.foreign = true
			return
		}
		// All but the first begin, and all but the last end, on a page.
		if w.pieces == 0 && c.p&3 != 0 || w.pieces != 0 && (c.p|end)&(pageSize-1) != 0 {
			w.jagged = true
		}
		if (c.p|c.n)&w.q.place.sglAlign != 0 || w.q.reg.extent(c.p, c.n) != c.n {
			w.odd = true
		}
		w.pages += pages(c.p, c.n)
		end = c.p + c.n
	}
}

// cursor walks the pieces of a transfer, from Off on, for Len bytes.
type cursor struct {
	vec  [][]byte
	skip int
	left uintptr
	p, n uintptr // the piece
	b    []byte  // the same
}

func newCursor(d *nvme.Data) cursor { return cursor{vec: d.Vec, skip: d.Off, left: uintptr(d.Len)} }

// next goes to the next piece that is not empty.
func (c *cursor) next() bool {
	for c.left > 0 && len(c.vec) > 0 {
		b := c.vec[0]
		c.vec = c.vec[1:]
		if c.skip >= len(b) {
			c.skip -= len(b)
			continue
		}
		b = b[c.skip:]
		c.skip = 0
		c.n = min(uintptr(len(b)), c.left)
		c.p, c.b = address(b), b[:c.n]
		c.left -= c.n
		return true
	}
	return false
}

// prpList puts PRP entries where they belong: two in the command; with more,
// the second is the address of a list, of which the last entry in a page is the
// address of the next.
type prpList struct {
	q      *queue
	s      *slot
	index  int
	count  int
	d1, d2 uint64
	list   []uint64 // of the page being filled
	used   int
	chain  uint32 // next page of the pool for the list, plus one
}

// reserve takes what pages of the pool a list of n entries needs beyond the
// tracker's own memory.
func (l *prpList) reserve(n int) bool {
	need := l.q.lists.more(n - 1)
	if need == 0 {
		return true
	}
	if !l.q.pool.take(l.s, need) {
		return false
	}
	l.chain = l.s.page
	return true
}

// more returns how many pages the list of n entries needs beyond the tracker's
// own memory.
func (l *prpLists) more(n int) int {
	if n <= l.per {
		return 0
	}
	// Each page but the last gives one entry to the address of the next.
	return (n - l.per + perPage - 2) / (perPage - 1)
}

// perPage is the number of entries in a page of a PRP list.
const perPage = pageSize / 8

// add appends the n bytes at p, which lie in q.reg.
func (l *prpList) add(p, n uintptr) {
	for n > 0 {
		step := min(n, pageSize-p&(pageSize-1))
		l.entry(l.q.reg.at(p))
		p += step
		n -= step
	}
}

// entry appends one entry.
func (l *prpList) entry(v uint64) {
	l.count++
	switch l.count {
	case 1:
		l.d1 = v
		return
	case 2:
		l.d2 = v
		return
	case 3:
		q := l.q
		l.list = q.lists.words[l.index*q.lists.per : (l.index+1)*q.lists.per]
		l.list[0] = l.d2
		l.d2 = q.lists.addr[l.index]
		l.used = 1
	}
	if l.used == len(l.list) {
		page := l.chain - 1
		next := l.q.pool.words(page)
		next[0] = l.list[l.used-1]
		l.list[l.used-1] = l.q.pool.addr[page]
		l.list, l.used = next, 1
		l.chain = l.q.pool.next[page]
	}
	l.list[l.used] = v
	l.used++
}

// sglList describes the pieces of d, at most half as many as a list has
// entries, and returns the descriptor for the command.
func (q *queue) sglList(index int, d *nvme.Data, pieces int) (d1, d2 uint64) {
	list := q.lists.words[index*q.lists.per : (index+1)*q.lists.per]
	i := 0
	for c := newCursor(d); c.next(); i += 2 {
		q.find(c.p, c.n)
		list[i], list[i+1] = q.reg.at(c.p), uint64(c.n)|uint64(nvme.SGLTypeDataBlock)<<60
	}
	if pieces == 1 {
		return list[0], list[1]
	}
	return q.lists.addr[index], uint64(pieces*nvme.SGLDescriptorSize) | uint64(nvme.SGLTypeLastSegment)<<60
}
