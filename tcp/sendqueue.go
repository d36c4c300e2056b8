//qpoll:hot

package tcp

import "github.com/qpoll/qpoll/internal/sys"

const (
	txMemory = 128 << 10 // header memory of a connection; a power of two is not needed
	txPieces = 512       // initial number of pieces that the queue has room for
)

// noSlot marks a piece of header memory.
const noSlot = -1

// sendQueue is what is to be sent: pieces of header memory, which is a ring of
// bytes, and pieces of the users' buffers, in order.
type sendQueue struct {
	mem     []byte
	write   int  // next free byte of mem
	read    int  // first byte of mem that is not yet sent
	used    int  // bytes of mem that are not yet sent
	wrap    int  // where write went back to 0
	wrapped bool // write has gone back to 0 and read has not
	open    bool // the last piece is header memory that ends at write

	iov   []sys.Iovec
	owner []int32 // parallel to iov: slot index, or noSlot
	first int     // iov[first:] is not yet sent
	bytes int     // in iov[first:]
}

func (q *sendQueue) init() {
	q.mem = make([]byte, txMemory)
	q.iov = make([]sys.Iovec, 0, txPieces)
	q.owner = make([]int32, 0, txPieces)
}

func (q *sendQueue) pending() bool { return q.first < len(q.iov) }

// reserve returns n contiguous bytes of header memory, or nil if there is no
// room now. What it returns must be committed, at least one byte of it, before
// the next call.
func (q *sendQueue) reserve(n int) []byte {
	if q.used == 0 {
		q.read, q.write, q.wrapped, q.open = 0, 0, false, false
	}
	if q.wrapped {
		if q.read-q.write < n {
			return nil
		}
		return q.mem[q.write : q.write+n]
	}
	if len(q.mem)-q.write < n {
		if q.read < n {
			return nil
		}
		q.wrap, q.wrapped = q.write, true
		q.write, q.open = 0, false
	}
	return q.mem[q.write : q.write+n]
}

// release frees n bytes of header memory, the oldest.
func (q *sendQueue) release(n int) {
	q.used -= n
	q.read += n
	if q.wrapped && q.read == q.wrap {
		q.read, q.wrapped = 0, false
	}
}

// commit queues the first n bytes of what reserve returned.
func (q *sendQueue) commit(n int) {
	if q.open {
		q.iov[len(q.iov)-1].Len += uint64(n)
	} else {
		q.add(q.mem[q.write:q.write+n], noSlot)
		q.open = true
	}
	q.write += n
	q.used += n
	q.bytes += n
}

// payload queues a user's memory.
func (q *sendQueue) payload(b []byte, slot int) {
	q.add(b, int32(slot))
	q.bytes += len(b)
	q.open = false
}

func (q *sendQueue) add(b []byte, owner int32) {
	if len(q.iov) == cap(q.iov) && q.first > 0 {
		n := copy(q.iov, q.iov[q.first:])
		copy(q.owner, q.owner[q.first:])
		clear(q.iov[n:])
		q.iov, q.owner, q.first = q.iov[:n], q.owner[:n], 0
	}
	var v sys.Iovec
	v.Set(b)
	q.iov = append(q.iov, v)
	q.owner = append(q.owner, owner)
}

func (q *sendQueue) reset() {
	clear(q.iov[:cap(q.iov)])
	q.iov, q.owner, q.first, q.bytes = q.iov[:0], q.owner[:0], 0, 0
	q.read, q.write, q.used, q.wrapped, q.open = 0, 0, 0, false, false
}
