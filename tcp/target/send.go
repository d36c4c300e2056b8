//qpoll:hot

package target

import "github.com/qpoll/qpoll/internal/sys"

// sendQueue is what is to be sent: pieces of header memory and pieces of data,
// in order.
type sendQueue struct {
	// Header memory is a ring. head and tail run freely.
	mem  []byte
	mask uint32
	head uint32 // what is written next
	tail uint32 // what is not sent yet begins

	iov   []sys.Iovec // iov[first:] is to be sent
	notes []note      // one for each
	first int
	open  bool   // the last piece is header memory that ends at head
	spare []byte // see cut

	queued uint64 // position in the stream of the end of what is queued
	sent   uint64 // and of what was sent
}

// note is what there is to know about a piece: where the header memory is free
// again behind it, or, for data that may change until it is sent, how much of
// its first block comes before it.
type note uint64

const (
	noteHeader note = 1 << 63
	noteUnsafe note = 1 << 62 // bits 55:48 log2 of the block size, 31:0 offset
)

// headerRoom is what is reserved for headers that go together: those of a
// C2HData and of a response capsule, with padding and digests.
const headerRoom = 256

// copyBelow is the length from which data is sent from where it is. Shorter
// data is copied next to its header.
const copyBelow = 1 << 10

func (q *sendQueue) pending() bool { return q.first < len(q.iov) }

// reserve returns n contiguous bytes of header memory, or nil if there is no
// room for them, or for the pieces of a PDU.
func (q *sendQueue) reserve(n uint32) []byte {
	if cap(q.iov)-len(q.iov) < 4 && !q.compact() {
		return nil
	}
	at := q.head & q.mask
	skip := uint32(0)
	if size := q.mask + 1; size-at < n {
		skip = size - at
	}
	if q.head+skip+n-q.tail > q.mask+1 {
		return nil
	}
	if skip > 0 {
		q.head += skip
		q.open = false
		at = 0
	}
	return q.mem[at : at+n : at+n]
}

// commit queues the first n bytes of what reserve returned.
func (q *sendQueue) commit(n int) {
	if q.open && q.head&q.mask != 0 {
		last := len(q.iov) - 1
		q.iov[last].Len += uint64(n)
		q.head += uint32(n)
		q.notes[last] = noteHeader | note(q.head)
	} else {
		at := q.head & q.mask
		q.head += uint32(n)
		q.push(q.mem[at:at+uint32(n)], noteHeader|note(q.head))
		q.open = true
	}
	q.queued += uint64(n)
}

// data queues data, which stays as it is until it was sent, or, if x says so,
// may change.
func (q *sendQueue) data(b []byte, x note) {
	q.push(b, x)
	q.open = false
	q.queued += uint64(len(b))
}

func (q *sendQueue) push(b []byte, x note) {
	n := len(q.iov)
	q.iov = q.iov[:n+1]
	q.iov[n].Set(b)
	q.notes = q.notes[:n+1]
	q.notes[n] = x
}

// compact moves the pieces to the front, and reports whether that has made
// room. The first place stays free; see cut.
func (q *sendQueue) compact() bool {
	if q.first <= cap(q.iov)/2 {
		return false
	}
	n := 1 + copy(q.iov[1:], q.iov[q.first:])
	copy(q.notes[1:], q.notes[q.first:])
	q.iov, q.notes, q.first = q.iov[:n], q.notes[:n], 1
	return true
}

// restart empties the queue.
func (q *sendQueue) restart() {
	q.iov, q.notes, q.first = q.iov[:1], q.notes[:1], 1
	q.head, q.tail, q.open = 0, 0, false
	q.sent = q.queued
}

// consume takes n bytes off the queue.
func (q *sendQueue) consume(n int) {
	if q.sent += uint64(n); q.sent == q.queued {
		q.restart()
		return
	}
	for {
		v := &q.iov[q.first]
		if uint64(n) < v.Len {
			q.cut(n)
			return
		}
		n -= int(v.Len)
		if x := q.notes[q.first]; x&noteHeader != 0 {
			q.tail = uint32(x)
		}
		q.first++
	}
}

// flush sends what is queued, with one call; with more if responses wait for
// room, as long as the socket takes them.
func (c *conn) flush() int {
	if c.retryAt > c.w.now {
		return 0
	}
	for c.flushOnce() && c.waiting.head != nil {
		c.encodeWaiting()
	}
	if c.state == connTerminating && !c.tx.pending() {
		c.terminated()
	}
	return 1
}

// flushOnce sends what is queued, and reports whether all of it went.
func (c *conn) flushOnce() bool {
	q := &c.tx
	v := q.iov[q.first:]
	var n int
	var err sys.Errno
	if len(v) == 1 {
		n, err = sys.Send(c.fd, v[0].Bytes())
	} else {
		n, err = sys.Sendmsg(c.fd, v[:min(len(v), sys.MaxIovecs)])
	}
	if err != 0 {
		if err != sys.EAGAIN {
			c.lost(err)
			return false
		}
		c.backOff()
		return false
	}
	c.backoff = 0
	q.consume(n)
	c.freeSent()
	return !q.pending()
}

// The first pause after a full socket, and the longest, in nanoseconds.
const (
	leastBackoff = 1_000
	mostBackoff  = 100_000
)

// backOff makes a connection whose socket is full wait for a while.
func (c *conn) backOff() {
	c.backoff = min(max(2*c.backoff, leastBackoff), mostBackoff)
	c.retryAt = c.w.now + c.backoff
}

// freeSent lets go of the requests whose responses were sent.
func (c *conn) freeSent() {
	for r := c.sending.head; r != nil && r.end <= c.tx.sent; r = c.sending.head {
		c.release(c.sending.pop())
	}
}
