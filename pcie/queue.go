//qpoll:hot

package pcie

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// queue is one submission and completion queue pair in memory that it shares
// with the controller: the transport side of one nvme.QueuePair, for one
// connection. All of it runs on the queue pair's core once it is attached.
type queue struct {
	// What every command touches comes first.
	qp    *nvme.QueuePair
	sq    []sqe
	cq    []cqe
	slots []slot
	tail  uint32 // next entry of sq to be written
	head  uint32 // next entry of cq to be read
	phase uint64 // phase tag of a new entry there, in its place
	posts uint32 // counts commands written to sq
	rung  uint32 // posts, as of the last doorbell
	unfed uint32 // completions since the completion queue's doorbell was rung
	id    uint16
	up    bool
	admin bool

	tab *regionTable // what reg is of
	reg region       // where the last buffer was
	mem *memory

	waiting ring // trackers that wait for pages

	cpl   nvme.Completion // handed to Complete; does not escape per command
	cplws *[2]uint64      // cpl in words

	sqBell, cqBell mmio.Register32
	shadow         shadowBells
	limit          uint32 // of unfed
	aers           int    // Asynchronous Event Requests that are out
	fused          uint32 // 1 if the last command posted waits for its other half

	place placement
	pool  pagePool
	lists prpLists

	cold queueCold
}

// slot is what the queue knows about one tracker's command.
type slot struct {
	post    uint32 // number of its submission queue entry, in posts
	page    uint32 // first page of the pool that it has, plus one; 0: none
	waiting bool   // stands in queue.waiting
	bounced bool   // its data goes through pages of the pool
	aer     bool   // an Asynchronous Event Request
}

// ring is a FIFO of tracker indices with room for each of them once.
type ring struct {
	buf  []uint16
	head int
	n    int
}

func (r *ring) push(i int) {
	at := r.head + r.n
	if at >= len(r.buf) {
		at -= len(r.buf)
	}
	r.buf[at] = uint16(i)
	r.n++
}

func (r *ring) pop() {
	r.head++
	if r.head == len(r.buf) {
		r.head = 0
	}
	r.n--
}

func (r *ring) front() int { return int(r.buf[r.head]) }

// Submit implements nvme.QueueTransport.
func (q *queue) Submit(r *nvme.Request) {
	if q.waiting.n != 0 || !q.post(r) {
		q.defer_(r)
	}
}

// post writes a command to the submission queue, or returns false if it has to
// wait for pages.
func (q *queue) post(r *nvme.Request) bool {
	s := &q.slots[r.Index()]
	c := &r.Cmd
	flags := uint64(c.Flags) &^ uint64(nvme.FlagPSDTMask)
	var d1, d2 uint64
	if n := uintptr(r.Data.Len); n != 0 {
		// The common case in line: one buffer, where the last one was, of which
		// two PRP entries say all.
		p := address(r.Data.Buf)
		off := p - q.reg.base
		if first := pageSize - off&(pageSize-1); r.Data.Vec == nil && q.place.plain && n <= first+pageSize && off < q.reg.size &&
			n <= q.reg.size-off && p&3 == 0 && q.tab == q.mem.table.Load() {
			d1 = q.reg.iova + uint64(off)
			if n > first {
				d2 = d1&^(pageSize-1) + pageSize
			}
		} else {
			var ok, sgl bool
			if d1, d2, sgl, ok = q.locate(r, s); !ok {
				return false
			}
			if sgl {
				flags |= uint64(nvme.FlagSGL)
			}
		}
	} else if q.admin {
		d1, d2 = queueAddresses(c)
	}
	e := &q.sq[q.tail]
	// Each field is read as wide as it was written, or narrower, so that the
	// loads need not wait for the stores to reach the cache.
	e.w[0] = uint64(c.Opcode) | flags<<8 | uint64(c.CID)<<16 | uint64(c.NSID)<<32
	e.w[1] = uint64(c.CDW2) | uint64(c.CDW3)<<32
	e.w[2] = c.MPTR
	e.w[3] = d1
	e.w[4] = d2
	e.w[5] = uint64(c.CDW10) | uint64(c.CDW11)<<32
	e.w[6] = uint64(c.CDW12) | uint64(c.CDW13)<<32
	e.w[7] = uint64(c.CDW14) | uint64(c.CDW15)<<32
	s.post = q.posts
	q.posts++
	if q.tail++; int(q.tail) == len(q.sq) {
		q.tail = 0
	}
	q.fused = uint32(c.Flags & nvme.FlagFuseFirst)
	if q.admin {
		q.posted(r, s)
	}
	return true
}

// Poll implements nvme.QueueTransport.
func (q *queue) Poll(int64) int {
	if !q.up {
		return 0
	}
	n := q.reap()
	if q.waiting.n != 0 {
		n += q.retry()
	}
	if q.posts != q.rung || q.unfed > q.limit {
		n += q.ring()
	}
	return n
}

const phaseBit = 1 << 48

// tag returns the phase tag of an entry, in its place.
func (e *cqe) tag() uint64 { return atomic.LoadUint64(&e.hi) & phaseBit }

// reap takes what the controller has completed: at most one turn of the queue,
// so that one that never stops cannot keep the poller.
func (q *queue) reap() int {
	n := 0
	for n < len(q.cq) {
		e := &q.cq[q.head]
		if e.tag() != q.phase {
			break
		}
		mmio.LoadFence()
		// The rest of the entry may have followed the phase tag.
		hi, lo := atomic.LoadUint64(&e.hi), atomic.LoadUint64(&e.lo)
		if q.head++; int(q.head) == len(q.cq) {
			q.head = 0
			q.phase ^= phaseBit
		}
		q.unfed++
		n++
		if !q.complete(lo, hi) {
			break
		}
	}
	return n
}

// complete finishes one command. It returns false if the queue was lost.
func (q *queue) complete(lo, hi uint64) bool {
	r := q.qp.Find(uint16(hi >> 32))
	if r == nil || uint16(hi>>16) != q.id || int(uint16(hi)) >= len(q.sq) {
		q.badCompletion(hi, r != nil)
		return false
	}
	s := &q.slots[r.Index()]
	if int32(q.rung-s.post) <= 0 || s.waiting {
		q.badCompletion(hi, false)
		return false
	}
	q.cplws[0], q.cplws[1] = lo, hi
	if s.page != 0 || s.aer {
		q.finish(r, s)
	}
	q.qp.Complete(r, &q.cpl)
	return true
}

// ring tells the controller of what was posted and reaped.
func (q *queue) ring() int {
	if q.unfed > q.limit { // first: what is posted now needs room, too
		q.feed()
	}
	n := q.posts - q.rung - q.fused
	if n != 0 {
		tail := q.tail
		if q.fused != 0 { // the other half goes with it
			if tail == 0 {
				tail = uint32(len(q.sq))
			}
			tail--
		}
		q.rung += n
		q.tell(tail, n)
	}
	return int(n)
}
