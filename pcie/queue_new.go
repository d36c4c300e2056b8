package pcie

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// queueCold is the part of a queue that no command touches.
type queueCold struct {
	t      *transport
	memory [][]byte // that it has of the arenas
	cmb    *cmbQueue
	sqAddr uint64
	cqAddr uint64
	vector int // interrupt vector, -1: none
	fd     int // its eventfd, -1: none

	a      *association
	madeCQ bool // they exist on the controller
	madeSQ bool
	unsure bool // the controller was asked for one, and has not answered
}

// newQueue allocates all that a queue pair needs.
func newQueue(t *transport, a *association, qp *nvme.QueuePair) (q *queue, err error) {
	n := qp.Trackers()
	q = &queue{
		qp: qp, id: qp.ID(), admin: qp.ID() == 0, mem: t.mem, phase: phaseBit,
		slots:   make([]slot, n),
		waiting: newRing(n),
		cold:    queueCold{t: t, a: a, vector: -1, fd: -1},
	}
	q.cplws = completionWords(&q.cpl)
	q.tab = t.mem.table.Load()
	defer func() {
		if err != nil {
			q.free()
			q = nil
		}
	}()
	size := qp.Size()
	if err = q.rings(size, t.cqSize(q.id, size)); err != nil {
		return q, err
	}
	if err = q.buffers(n); err != nil {
		return q, err
	}
	return q, q.bells()
}

func newRing(n int) ring { return ring{buf: make([]uint16, n)} }

// alloc takes memory from the arenas, and its address for the device. With
// whole, it is in one piece for the device.
func (q *queue) alloc(n int, whole bool) ([]byte, uint64, error) {
	b, err := q.mem.alloc(n, whole, false)
	if err != nil {
		return nil, 0, err
	}
	q.cold.memory = append(q.cold.memory, b)
	at, ok := q.mem.translate(b)
	if !ok {
		return nil, 0, ErrGone
	}
	return b, at, nil
}

// rings allocates the two queues.
func (q *queue) rings(sq, cq int) error {
	b, at, err := q.alloc(sq*nvme.CommandSize, true)
	if err != nil {
		return err
	}
	q.sq, q.cold.sqAddr = sqes(b[:sq*nvme.CommandSize]), at
	if b, at, err = q.alloc(cq*nvme.CompletionSize, true); err != nil {
		return err
	}
	q.cq, q.cold.cqAddr = cqes(b[:cq*nvme.CompletionSize]), at
	if !q.cold.t.cfg.EagerCQ {
		q.limit = uint32(max(cq-sq, 0))
	}
	if !q.admin {
		q.cold.cmb = q.cold.t.cmbForQueue(sq)
		if q.cold.cmb != nil {
			q.cold.sqAddr = q.cold.cmb.addr
		}
	}
	return nil
}

// buffers allocates the memory for PRP lists, and the pool.
func (q *queue) buffers(n int) error {
	t := q.cold.t
	most := t.mostPages(q.admin)
	// At least 512 bytes: some devices misread lists that are aligned to less.
	q.lists.per = min(max(64, 1<<bits.Len(uint(most-2))), perPage)
	b, _, err := q.alloc(n*q.lists.per*8, false)
	if err != nil {
		return err
	}
	q.lists.words = words(b)
	q.lists.addr = make([]uint64, n)
	for i := range q.lists.addr {
		at, ok := q.mem.translate(b[i*q.lists.per*8:][:8])
		if !ok {
			return ErrGone
		}
		q.lists.addr[i] = at
	}
	size := t.cfg.BounceSize
	if q.admin {
		size = t.cfg.MaxTransfer
	}
	// What is needed for one command of the largest size, and its list, must be
	// there, or it would wait for ever.
	count := max(size>>pageShift, most+q.lists.more(most)) + q.lists.more(most)
	q.place = t.placement(q.admin)
	return q.makePool(count)
}

func (q *queue) makePool(count int) error {
	p := &q.pool
	p.addr, p.next = make([]uint64, count), make([]uint32, count)
	if !q.admin {
		p.cmb = q.cold.t.cmbForData(&count)
	}
	if p.cmb != nil {
		for i := range count {
			p.addr[i] = p.cmb.addr(uint32(i))
		}
	} else {
		b, _, err := q.alloc(count*pageSize, false)
		if err != nil {
			return err
		}
		p.b = b
		for i := range count {
			at, ok := q.mem.translate(p.page(uint32(i)))
			if !ok {
				return ErrGone
			}
			p.addr[i] = at
		}
	}
	p.addr, p.next = p.addr[:count], p.next[:count]
	for i := range count - 1 {
		p.next[i] = uint32(i) + 2
	}
	p.head, p.free = 1, count
	return nil
}

// bells finds the doorbells. Those that cannot be mapped are written through
// the device.
func (q *queue) bells() error {
	t := q.cold.t
	sq, cq := sqDoorbell(q.id, t.stride()), cqDoorbell(q.id, t.stride())
	if end := cq + 4; end > t.dev.BARSize(0) {
		return fmt.Errorf("%w: doorbells of queue %d end at %#x, BAR 0 has %#x bytes", nvme.ErrProtocol, q.id, end, t.dev.BARSize(0))
	}
	var err error
	if q.sqBell, err = t.register(sq); err != nil {
		return err
	}
	q.cqBell, err = t.register(cq)
	return err
}

// register returns the register at off of BAR 0 as mapped memory, an empty one
// if it cannot be mapped.
func (t *transport) register(off uint64) (mmio.Register32, error) {
	w, err := t.dev.Map(0, off&^(pageSize-1), pageSize)
	if err != nil {
		if errors.Is(err, ErrGone) {
			return mmio.Register32{}, err
		}
		return mmio.Register32{}, nil
	}
	return w.Register32(off & (pageSize - 1))
}

// free gives back all memory. The controller must not reach it any more.
func (q *queue) free() {
	for _, b := range q.cold.memory {
		_ = q.mem.release(b, false)
	}
	q.cold.memory = nil
	q.cold.cmb.free()
	q.pool.cmb.free()
	q.cold.cmb, q.pool.cmb = nil, nil
	q.cold.t.giveVector(q.cold.vector, q.cold.fd)
	q.cold.vector, q.cold.fd = -1, -1
	q.sq, q.cq = nil, nil
}

// start lets commands flow. On the core.
func (q *queue) start() {
	q.up = true
	q.qp.Attach(q)
}

// stop ends that: nothing is touched any more. On the core.
func (q *queue) stop() {
	q.up = false
	q.waiting.head, q.waiting.n = 0, 0
	clear(q.slots)
}
