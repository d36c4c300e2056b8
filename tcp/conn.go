//qpoll:hot

package tcp

import (
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// maxInCapsule bounds the data sent within a command capsule, whatever the
// controller would take.
const maxInCapsule = 1 << 20

type connState uint8

const (
	connIdle      connState = iota
	connDialling            // TCP connect is under way
	connHandshake           // ICReq sent
	connFabrics             // Connect sent
	connReady               // commands flow
)

// conn is one NVMe/TCP connection: the transport side of one queue pair. All
// of it runs on the queue pair's core. It outlives the connections that it
// makes one after the other.
type conn struct {
	qp    *nvme.QueuePair
	fd    int
	state connState

	// Receive side; see receive.go.
	mode     rxMode
	rx       []byte // staging memory
	head     int    // rx[head:tail] was received and not yet looked at
	tail     int
	large    bool // the last data was large: more of that kind will follow
	receiver *pdu.Receiver
	in       inbound
	idleAt   int64 // no receive before this time while nothing is outstanding

	// Send side; see send.go.
	tx      sendQueue
	backlog ring // trackers whose capsule is not encoded yet
	r2ts    ring // trackers with R2Ts to answer
	slots   []slot
	out     outbound

	cpl nvme.Completion // handed to Complete; does not escape per command

	received, receives, sends, digestErrors uint64

	cold connCold
}

// slot is what the connection knows about one tracker's command.
type slot struct {
	got      uint32 // bytes of C2HData received
	wanted   uint32 // end of the data that R2Ts have asked for
	refs     int32  // pieces of its memory in the send queue
	r2tHead  uint8  // first entry in use of the slot's share of outbound.r2t
	r2tCount uint8
	sent     bool // the capsule was encoded
	queued   bool // stands in conn.r2ts
	damaged  bool // data arrived with a wrong digest
	last     bool // a C2HData with LAST_PDU arrived
	early    bool // completed while refs > 0: finish when they are gone
	status   nvme.Completion
}

// inbound is the PDU whose data is being received.
type inbound struct {
	req    *nvme.Request
	slot   *slot
	left   uint32 // bytes of data to come
	pad    int    // bytes to skip before the data
	digest uint32 // of the data so far
	vec    int    // cursor into req.Data.Vec
	vecOff int
	ok     bool // SUCCESS: no response capsule follows
	ddgst  bool
}

// outbound is what the connection handshake settled for sending.
type outbound struct {
	capsule pdu.Layout
	data    pdu.Layout
	icd     uint32 // most data in the capsule of a command of this queue
	maxH2C  uint32
	maxR2T  uint32
	r2t     []r2t // maxR2T for each tracker
}

// r2t is a controller's request for data, as far as it is not yet answered.
type r2t struct {
	ttag   uint16
	offset uint32
	left   uint32
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

func (r *ring) reset() { r.head, r.n = 0, 0 }

// idleInterval is how often a connection with nothing outstanding is looked
// at, in nanoseconds: an empty receive costs about as much as it gains.
const idleInterval = 20_000

// Poll implements nvme.QueueTransport.
func (c *conn) Poll(now int64) int {
	if c.state != connReady {
		return c.pollConnect()
	}
	work := 0
	if c.qp.InFlight() > 0 || now >= c.idleAt {
		c.idleAt = now + idleInterval
		work = c.receive()
	}
	if c.backlog.n+c.r2ts.n > 0 {
		c.fill()
	}
	if c.tx.pending() {
		work += c.flush()
	}
	return work
}

// Arm implements nvme.QueueTransport.
func (c *conn) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	switch {
	case c.state == connIdle:
		return -1, 0, 0, true
	case c.state == connDialling || c.tx.pending():
		return c.fd, sys.POLLIN | sys.POLLOUT, 0, true
	}
	c.idleAt = 0
	return c.fd, sys.POLLIN, 0, true
}
