//qpoll:hot

package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// requestState is where a request is.
type requestState uint8

const (
	reqFree       requestState = iota
	reqReceiving               // being looked at, or its in-capsule data is arriving
	reqStarved                 // waits for memory
	reqTransfer                // waits for H2CData
	reqFused                   // half of a fused operation, waits for the other
	reqPaired                  // second half of one that is executing
	reqExecuting               // the backend has it
	reqHeld                    // an admin command that is answered later
	reqResponding              // its response is being encoded
	reqSending                 // its response stands in the send queue
)

// request is one command, from its capsule until the last byte of its response
// was sent.
type request struct {
	op   backend.Op
	conn *conn
	ns   *channel // what op was or will be submitted to; counts as a user of it
	next *request // in the list that it is in
	buf  *buffer  // memory of its own
	end  uint64   // where its response ends in the stream of what is sent
	turn int64    // when it became the host's turn, if buf is not nil

	length uint32 // of the data to transfer, bytes
	sent   uint32 // how much of it was encoded
	got    uint32 // how much of it has arrived
	asked  uint32 // how much of it R2Ts have asked for

	index  uint16 // in conn.requests
	r2ts   uint16 // outstanding
	ranges uint16 // of a Dataset Management, that are done
	state  requestState
	hunger starvation
	toHost bool // has data for the host
	unsafe bool // the data may change until it is sent
	steps  bool // takes more than one operation
	ready  bool // half of a fused operation, whose data is there
	queued bool // is in conn.waiting

	status nvme.Status
	result uint64
	cmd    nvme.Command
	pair   *request     // the other half of a fused operation
	fill   func([]byte) // makes the data of an admin command
}

// take returns a request that is not in use, or nil: the host has more
// commands outstanding than the queue has entries.
func (c *conn) take() *request {
	r := c.free
	if r == nil {
		return nil
	}
	c.free = r.next
	c.used++
	r.next = nil
	r.state = reqReceiving
	return r
}

// release makes a request available again.
func (c *conn) release(r *request) {
	if r.buf != nil {
		c.releaseBuffer(r)
	}
	if r.ns != nil {
		c.unbind(r)
	}
	r.op.Data, r.op.Second = nil, nil
	r.length, r.sent, r.got, r.asked = 0, 0, 0, 0
	r.status, r.result = 0, 0
	r.r2ts, r.ranges = 0, 0
	r.toHost, r.unsafe, r.steps, r.ready = false, false, false, false
	r.pair, r.fill = nil, nil
	r.state = reqFree
	r.next = c.free
	c.free = r
	c.used--
}

// unbind ends a request's use of its namespace.
func (c *conn) unbind(r *request) {
	ch := r.ns
	r.ns = nil
	if ch.users--; ch.users == 0 && ch.retired {
		c.w.untidy = true
	}
}

// Keep implements backend.Owner: in-capsule data gets memory of its own.
func (r *request) Keep(op *backend.Op) {
	switch {
	case r.buf != nil || len(op.Data) == 0:
	case r.ns != nil && r.ns.discards && op.Kind == backend.Write:
		op.Data = nil
	default:
		r.conn.keep(r)
	}
}

// Done implements backend.Owner.
func (r *request) Done(*backend.Op) {
	r.conn.executed(r)
}

// requestList is a list of requests in the order in which they came.
type requestList struct {
	head, tail *request
}

func (l *requestList) push(r *request) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
}

func (l *requestList) pushFront(r *request) {
	r.next = l.head
	l.head = r
	if l.tail == nil {
		l.tail = r
	}
}

func (l *requestList) pop() *request {
	r := l.head
	l.head, r.next = r.next, nil
	if l.head == nil {
		l.tail = nil
	}
	return r
}
