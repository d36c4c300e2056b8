package pcie

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// doorbell offsets within BAR0 (PCIe 3.1.2).
func sqDoorbell(qid uint16, stride uint32) uint64 {
	return nvme.RegDoorbells + 2*uint64(qid)*uint64(stride)
}

func cqDoorbell(qid uint16, stride uint32) uint64 {
	return nvme.RegDoorbells + (2*uint64(qid)+1)*uint64(stride)
}

// shadowBells are the doorbells in memory (Base Specification 5.2.5, Doorbell
// Buffer Config): the controller reads the first of each pair when it wants to,
// and says in the second up to where it need not be told.
type shadowBells struct {
	sq, sqEvent, cq, cqEvent *uint32 // nil: there are none
}

// tell rings the submission queue's doorbell: n commands more, up to tail.
func (q *queue) tell(tail, n uint32) {
	if q.cold.cmb != nil && !q.cold.copyOut(q.sq, tail, n) {
		q.lose(ErrGone)
		return
	}
	mmio.StoreFence()
	if b := &q.shadow; b.sq != nil && !announce(b.sq, b.sqEvent, tail) && !q.admin {
		return
	}
	q.write(q.sqBell, sqDoorbell, tail)
}

// feed rings the completion queue's doorbell.
func (q *queue) feed() {
	q.unfed = 0
	if b := &q.shadow; b.cq != nil && !announce(b.cq, b.cqEvent, q.head) && !q.admin {
		return
	}
	q.write(q.cqBell, cqDoorbell, q.head)
}

// announce writes a shadow doorbell and tells whether the controller wants the
// real one rung: if its event index lies within what was passed. An atomic
// store is a full fence here, before the load, so that either we see the index
// of a controller that goes idle, or it sees the doorbell.
func announce(bell, event *uint32, v uint32) bool {
	old := uint16(atomic.LoadUint32(bell))
	atomic.StoreUint32(bell, v)
	at := uint16(atomic.LoadUint32(event))
	return uint16(v)-at-1 < uint16(v)-old
}

// write stores to a doorbell, through the device where it cannot be mapped.
func (q *queue) write(r mmio.Register32, at func(uint16, uint32) uint64, v uint32) {
	if r.Valid() {
		if !store(r, v) {
			q.lose(ErrGone)
		}
		return
	}
	if err := q.cold.t.dev.Write32(uint32(at(q.id, q.cold.t.stride())), v); err != nil {
		q.lose(err)
	}
}

// store reports false if the register is not there any more: an access to
// memory that a device took with it is a fault, which Go can make a panic of.
func store(r mmio.Register32, v uint32) (ok bool) {
	defer caught(debug.SetPanicOnFault(true), &ok)
	r.Store(v)
	return true
}

// caught is what functions that access a device's memory defer.
func caught(old bool, ok *bool) {
	if !old {
		debug.SetPanicOnFault(false)
	}
	if *ok {
		return
	}
	r := recover()
	if f, is := r.(interface {
		runtime.Error
		Addr() uintptr
	}); r != nil && (!is || f.Addr() == 0) {
		panic(r)
	}
}
