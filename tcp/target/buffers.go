//qpoll:hot

package target

import "math/bits"

// Sizes of buffers are powers of two, from that of class 0 on.
const (
	leastBuffer = 4 << 10
	mostBuffer  = maxMaxTransfer
	classes     = 11 // 4 KiB to 4 MiB
)

var _ [mostBuffer - leastBuffer<<(classes-1)]struct{}

// buffer is memory for the data of one request.
type buffer struct {
	b     []byte
	class int
	next  *buffer
}

// pool is the buffers of one worker. What is not in use is kept, within the
// limit.
type pool struct {
	limit  int64 // bytes, of those that count
	used   int64
	kept   int64
	unused [classes]*buffer
}

func bufferClass(n uint32) int {
	if n <= leastBuffer {
		return 0
	}
	return bits.Len32((n - 1) / leastBuffer)
}

func bufferSize(class int) int64 { return leastBuffer << class }

// get returns a buffer of a class. It may exceed the limit.
func (p *pool) get(class int) *buffer {
	p.used += bufferSize(class)
	b := p.unused[class]
	if b == nil {
		return &buffer{b: make([]byte, bufferSize(class)), class: class}
	}
	p.unused[class], b.next = b.next, nil
	p.kept -= bufferSize(class)
	return b
}

// fits reports whether a buffer of a class is within the limit.
func (p *pool) fits(class int) bool { return p.used+bufferSize(class) <= p.limit }

// put takes a buffer back.
func (p *pool) put(b *buffer) {
	size := bufferSize(b.class)
	p.used -= size
	if p.used+p.kept+size > p.limit {
		return
	}
	p.kept += size
	b.next = p.unused[b.class]
	p.unused[b.class] = b
}

// starvation is what a request wants memory for.
type starvation uint8

const (
	starvedRead  starvation = iota // to read into
	starvedView                    // to copy what was read
	starvedWrite                   // to receive into
	starvedReply                   // for the data of an admin command
)

// provide gives a request memory for its data, or has it wait and returns
// false.
func (c *conn) provide(r *request, why starvation) bool {
	if c.starved.head == nil && c.grant(r) {
		return true
	}
	r.state, r.hunger = reqStarved, why
	if !c.cold.starving {
		c.cold.starving = true
		c.w.cold.starving = append(c.w.cold.starving, c)
	}
	c.starved.push(r)
	c.w.watchStalled(c)
	return false
}

// grant gives a request memory for its data if that is within the limits.
func (c *conn) grant(r *request) bool {
	class := bufferClass(r.length)
	size := bufferSize(class)
	if c.bufBytes+size > c.w.t.cfg.Limits.ConnectionBuffers || !c.w.buffers.fits(class) {
		return false
	}
	c.lend(r, class)
	return true
}

func (c *conn) lend(r *request, class int) {
	r.buf = c.w.buffers.get(class)
	r.turn = c.w.now
	c.bufBytes += bufferSize(class)
	if r.hasRead() {
		r.op.Data = r.buf.b[:r.length:r.length]
	}
}

// hasRead reports whether the request's memory is for the backend to fill in.
func (r *request) hasRead() bool { return r.toHost && r.ns != nil && !r.ns.views }

// keep gives a request memory of its own for data that lies in the capsule. It
// is not subject to the limits, since nothing can wait here; the size of the
// queue and that of capsules bound it.
func (c *conn) keep(r *request) {
	data := r.op.Data
	c.lend(r, bufferClass(uint32(len(data))))
	r.op.Data = r.buf.b[:copy(r.buf.b, data)]
}

// copyView makes a request's data independent of the backend.
func (c *conn) copyView(r *request) { r.op.Data = r.buf.b[:copy(r.buf.b, r.op.Data)] }

// releaseBuffer takes a request's memory back.
func (c *conn) releaseBuffer(r *request) {
	c.bufBytes -= bufferSize(r.buf.class)
	c.w.buffers.put(r.buf)
	r.buf = nil
	c.w.hungry = len(c.w.cold.starving) > 0
}

// feed gives memory to requests that wait for it, to each connection in turn.
func (w *worker) feed() {
	w.hungry = false
	list := w.cold.starving
	w.cold.starving = nil
	for i, c := range list {
		c.eat()
		if c.cold.starving = c.starved.head != nil; c.cold.starving {
			w.cold.starving = append(w.cold.starving, c)
		}
		list[i] = nil
	}
	w.watchStalled(w.cold.starving...)
	// The one that has waited longest comes first next time.
	if n := len(w.cold.starving); n > 1 {
		w.cold.starving = append(w.cold.starving[1:n:n], w.cold.starving[0])
	}
}

// eat goes on with requests of a connection that there is memory for now.
func (c *conn) eat() {
	for c.starved.head != nil && c.grant(c.starved.head) {
		r := c.starved.pop()
		switch r.hunger {
		case starvedRead:
			c.submit(r)
		case starvedView:
			c.copyView(r)
			c.respond(r)
		case starvedWrite:
			c.requestData(r)
		case starvedReply:
			c.fillReply(r)
		}
	}
}
