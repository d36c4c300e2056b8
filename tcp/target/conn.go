//qpoll:hot

package target

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// connState is where a connection is in its life.
type connState uint8

const (
	connHandshake   connState = iota // waits for ICReq
	connFabrics                      // waits for Connect
	connReady                        // is a queue
	connTerminating                  // a TermReq was queued; what comes is dropped
	connDead                         // closed, but requests are still under way
)

// conn is a connection: after its Connect command, one queue of a controller.
type conn struct {
	w     *worker
	fd    int
	state connState

	unsent   bool // is in worker.unsent
	listed   bool // is in worker.hot
	watched  bool // is in the epoll instance
	hotUntil int64

	// Receive side; see receive.go.
	mode     rxMode
	receiver *pdu.Receiver
	in       inbound
	carried  int // bytes of a header that has not arrived as a whole
	carry    [pdu.MaxPDO + pdu.CommonSize]byte

	// Requests.
	free     *request
	used     int
	requests []request

	// Send side; see send.go and respond.go.
	tx       sendQueue
	out      outbound
	waiting  requestList // responses that found no room in tx
	sending  requestList // requests whose response stands in tx
	starved  requestList // requests that wait for memory
	bufBytes int64       // memory of its requests
	retryAt  int64       // no attempt to send before
	backoff  int64

	// The queue.
	qid         uint16
	sqSize      uint16 // entries
	sqHead      uint16
	flowControl bool // submission queue flow control is on
	ctrl        *controller
	view        *view    // namespaces; nil on other than I/O queues
	fused       *request // first half of a fused operation
	fusedFailed bool     // the first half has failed already

	stats    counters
	totals   *totals       // where stats are added to
	activity atomic.Uint64 // commands, as of the last time that they were
	cold     connCold
}

// outbound is how the target's PDUs are laid out, and how large they may be.
type outbound struct {
	resp  pdu.Layout
	data  pdu.Layout
	r2t   pdu.Layout
	ddgst bool

	success     bool   // a C2HData may stand for the response as well
	maxC2H      uint32 // data of one C2HData, bytes
	r2tLength   uint32 // data of one R2T, bytes
	maxR2T      uint32 // outstanding for one command
	maxTransfer uint32 // data of one command, bytes
	icd         uint32 // data of one capsule, bytes
	transfers   []transfer
}

// counters are what a connection has counted since they were last added to
// those of its subsystem.
type counters struct {
	reads, writes, others   uint64
	readBytes, writtenBytes uint64
	errors                  uint64
}

// executed goes on with a request whose operation is done.
func (c *conn) executed(r *request) {
	if c.state >= connTerminating {
		c.drop(r)
		return
	}
	r.turn = c.w.now
	if r.steps && (r.op.Status.OK() || r.pair != nil) && c.nextStep(r) {
		return
	}
	if s := r.op.Status; !s.OK() {
		c.fail(r, s)
		return
	}
	if r.toHost {
		c.executedRead(r)
		return
	}
	c.respond(r)
}

// executedRead goes on with a read whose data is there.
func (c *conn) executedRead(r *request) {
	if r.buf == nil && !r.ns.stable {
		// Digest and data must be of the same moment.
		if c.out.ddgst {
			if !c.provide(r, starvedView) {
				return
			}
			c.copyView(r)
		} else {
			r.unsafe = true
		}
	}
	c.respond(r)
}

// fail answers a command with a status other than success.
func (c *conn) fail(r *request, s nvme.Status) {
	c.stats.errors++
	if c.qid == 0 && c.ctrl != nil {
		c.ctrl.errorLog.add(&r.cmd, s)
	}
	r.status = s
	r.length, r.toHost = 0, false
	c.respond(r)
}
