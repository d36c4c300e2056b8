package nvme

import (
	"math/bits"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// queueCold is the part of a queue pair that no command touches.
type queueCold struct {
	id       uint16
	size     int
	class    Class
	ctrl     *Controller
	err      error // why it is down or dead
	broken   error // why the connection was lost, from then on until the next
	failNext bool  // fail fast once the connection is taken down
	linked   bool  // connected: what is posted is sent
	link     link
	retries  uint8 // how often a command may be replayed
	timeout  time.Duration
	watch    *watch
	added    bool
	lost     func(q *QueuePair, err error)             // told once per loss
	timedOut func(q *QueuePair, cid uint16, age int64) // told at the timeout, and at twice the timeout

	failover    bool // commands never wait for a reconnect
	notify      func(q *QueuePair, live bool)
	association uint64 // that it was live in last
}

// queueParams describes a queue pair to be made.
type queueParams struct {
	id       uint16
	size     int // entries; commands in flight stay below it
	class    Class
	reserve  int // of these, for internal commands only
	timeout  time.Duration
	retries  uint8
	ctrl     *Controller
	lost     func(q *QueuePair, err error)
	timedOut func(q *QueuePair, cid uint16, age int64)
	failover bool
	notify   func(q *QueuePair, live bool)
}

// maxQueueSize is what a command identifier and MQES can name; the trackers
// beyond the last usable slot keep the identifier space free of overlap.
const maxQueueSize = 1 << 15

func newQueuePair(p *poller.Poller, s queueParams) *QueuePair {
	n := s.size // size-1 commands, and one tracker more for the fabrics Connect
	nbits := bits.Len(uint(n - 1))
	q := &QueuePair{
		p:       p,
		reqs:    make([]Request, n),
		free:    make([]uint16, n),
		held:    make([]uint16, 0, n),
		ops:     make([]op, n),
		freeOps: make([]*op, n),
		reserve: uint(s.reserve) + 1,
		mask:    uint16(1<<nbits - 1),
		step:    uint16(1 << nbits),
		cold: queueCold{id: s.id, size: s.size, class: s.class, ctrl: s.ctrl, retries: s.retries, timeout: s.timeout,
			lost: s.lost, timedOut: s.timedOut, failover: s.failover, notify: s.notify},
	}
	if s.failover {
		q.cold.retries = 0
	}
	for i := range q.reqs {
		q.reqs[i].index = uint16(i)
		q.reqs[i].Cmd.CID = uint16(i)
		q.free[n-1-i] = uint16(i)
		q.ops[i].q = q
		q.freeOps[i] = &q.ops[i]
	}
	return q
}

// Class returns the class that the queue was opened with. Any goroutine.
func (q *QueuePair) Class() Class { return q.cold.class }

// Attach gives the queue pair its transport side. For transports, before the
// first Connect returns.
func (q *QueuePair) Attach(t QueueTransport) { q.t = t }

// Transport returns what Attach was given, nil before.
func (q *QueuePair) Transport() QueueTransport { return q.t }

// Arm implements poller.Waiter.
func (q *QueuePair) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	if q.t == nil {
		return -1, 0, 0, true
	}
	return q.t.Arm(now)
}
