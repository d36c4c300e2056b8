package target

import "github.com/qpoll/qpoll/internal/sys"

// cut takes n bytes off the first piece, which is longer. If it is data that
// may change, what is left of the block that was cut is copied: the host must
// not see one half of a block from before a write and the other from after.
func (q *sendQueue) cut(n int) {
	v := &q.iov[q.first]
	rest := v.Bytes()[n:]
	v.Set(rest)
	x := q.notes[q.first]
	if x&noteUnsafe == 0 {
		return
	}
	size := uint32(1) << (x >> 48 & 0xff)
	off := (uint32(x) + uint32(n)) & (size - 1)
	x = x&^(1<<32-1) | note(off)
	q.notes[q.first] = x
	if off == 0 {
		return
	}
	k := min(int(size-off), len(rest))
	q.spare = append(q.spare[:0], rest[:k]...)
	if k == len(rest) {
		v.Set(q.spare)
		q.notes[q.first] = 0
		return
	}
	v.Set(rest[k:])
	q.notes[q.first] = x &^ (1<<32 - 1)
	// Something was sent before, or the first place is free.
	q.first--
	q.iov[q.first].Set(q.spare)
	q.notes[q.first] = 0
}

// grow gives the queue its memory: header memory of at least bytes, and room
// for pieces. What is queued already, which must be headers, moves over.
func (q *sendQueue) grow(bytes, pieces int) {
	var queued []byte
	for _, v := range q.iov[min(q.first, len(q.iov)):] {
		queued = append(queued, v.Bytes()...)
	}
	size := uint32(2 * headerRoom)
	for int(size) < max(bytes, 2*len(queued)) {
		size *= 2
	}
	q.mem, q.mask = make([]byte, size), size-1
	q.iov, q.notes = make([]sys.Iovec, 1, pieces), make([]note, 1, pieces)
	q.head, q.tail, q.first, q.open = 0, 0, 1, false
	if n := copy(q.mem, queued); n > 0 {
		q.queued -= uint64(n)
		q.commit(n)
	}
}

// forget lets go of memory that was sent.
func (q *sendQueue) forget() {
	clear(q.iov[len(q.iov):cap(q.iov)])
	clear(q.iov[:min(q.first, len(q.iov))])
}
