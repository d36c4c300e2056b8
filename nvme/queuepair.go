//qpoll:hot

package nvme

import "github.com/qpoll/qpoll/poller"

type queueState uint8

const (
	queueNew  queueState = iota // never connected
	queueDown                   // not connected now: submissions are held
	queueLive                   // submissions go out
	queueDead                   // closed or given up: submissions fail
)

// QueuePair is one submission and completion queue pair of a controller,
// together with its trackers. It belongs to one poller: unless a method says
// otherwise, it must be called on that poller's core.
//
// Users reach it through a Namespace's Queue; transports complete commands
// through Find, Complete, Lost and Quiesced.
type QueuePair struct {
	// What every command touches comes first.
	t        QueueTransport
	p        *poller.Poller
	reqs     []Request
	free     []uint16 // stack of tracker indices
	stalled  opList   // split transfers that wait for a tracker
	waiting  []waiter // submissions of other goroutines that do
	seq      uint64
	inflight int  // posted
	reserve  uint // trackers that only internal commands may take
	mask     uint16
	step     uint16 // added to a CID to give it a new generation
	state    queueState
	failFast bool

	submitted, completed, errors, spurious uint64
	polls, idlePolls                       uint64

	// Cold from here on.
	held    []uint16 // trackers in submission order, while not live
	ops     []op
	freeOps []*op
	cold    queueCold
}

// ID returns the queue identifier; 0 is the admin queue. Any goroutine.
func (q *QueuePair) ID() uint16 { return q.cold.id }

// Size returns the queue's size in entries, one more than the number of
// commands that may be in flight. Any goroutine.
func (q *QueuePair) Size() int { return q.cold.size }

// Trackers returns the number of trackers: the range of Request.Index. Any
// goroutine.
func (q *QueuePair) Trackers() int { return len(q.reqs) }

// Tracker returns tracker i, 0 to Trackers()-1. For transports.
func (q *QueuePair) Tracker(i int) *Request { return &q.reqs[i] }

// Poller returns the poller that owns the queue pair. Any goroutine.
func (q *QueuePair) Poller() *poller.Poller { return q.p }

// InFlight returns the number of commands that the transport has.
func (q *QueuePair) InFlight() int { return q.inflight }

// Room returns the number of commands that can be submitted now.
func (q *QueuePair) Room() int { return max(0, len(q.free)-int(q.reserve)) }

// Live reports whether commands go out at once, as opposed to being held for
// a reconnect.
func (q *QueuePair) Live() bool { return q.state == queueLive }

// Poll implements poller.Source: it reaps and then rings, once.
func (q *QueuePair) Poll(now int64) int {
	if q.t == nil {
		return 0
	}
	n := q.t.Poll(now)
	q.polls++
	if n == 0 {
		q.idlePolls++
	}
	return n
}

// take pops a free tracker for a user's command, or returns nil.
func (q *QueuePair) take() *Request {
	n := len(q.free)
	if uint(n) <= q.reserve {
		return nil
	}
	r := &q.reqs[q.free[n-1]]
	q.free = q.free[:n-1]
	r.state = reqTaken
	return r
}

// release gives a tracker back, with a command identifier of a new
// generation: a late or duplicate completion no longer finds it.
func (q *QueuePair) release(r *Request) {
	r.state, r.flags, r.retries = reqFree, 0, 0
	r.Cmd.CID += q.step
	if r.Cmd.CID == 0xffff {
		r.Cmd.CID += q.step // FFFFh means "no command" in the error log
	}
	r.Data = Data{}
	r.done, r.cdone, r.arg, r.ns = nil, nil, nil, nil
	n := len(q.free)
	q.free = q.free[:n+1]
	q.free[n] = r.index
}

// submit sends or holds a filled tracker. The caller checked that the queue
// accepts commands.
func (q *QueuePair) submit(r *Request) {
	r.seq = q.seq
	q.seq++
	r.submitted = q.p.Now()
	if q.state == queueLive {
		q.post(r)
		return
	}
	q.hold(r)
}

func (q *QueuePair) post(r *Request) {
	r.state = reqPosted
	q.inflight++
	q.submitted++
	q.t.Submit(r)
}

// accepts returns nil if a command may be submitted now.
func (q *QueuePair) accepts() error {
	if q.state == queueLive {
		return nil
	}
	return q.refusal()
}

// Find returns the tracker of an outstanding command, or nil if cid names
// none: it is out of range, was never posted, or was completed already. For
// transports; cid comes from the wire.
func (q *QueuePair) Find(cid uint16) *Request {
	i := int(cid & q.mask)
	if i >= len(q.reqs) {
		return nil
	}
	r := &q.reqs[i]
	if r.state != reqPosted || r.Cmd.CID != cid {
		return nil
	}
	return r
}

// Complete finishes a posted command. For transports: the controller's
// completion has arrived, r is what Find returned, and the transport no longer
// touches r or its memory. cpl need stay valid during the call only, and is
// best kept in memory that does not move per command.
func (q *QueuePair) Complete(r *Request, cpl *Completion) {
	q.inflight--
	q.finish(r, cpl)
}

// finish releases r first, so that its owner's callback finds a free tracker;
// but those who wait for one have the first choice.
func (q *QueuePair) finish(r *Request, cpl *Completion) {
	q.completed++
	if !cpl.Status().OK() {
		q.errors++
	}
	done, cdone, arg := r.done, r.cdone, r.arg
	q.release(r)
	switch {
	case q.stalled.head != nil || len(q.waiting) != 0:
		q.passOn(done, cdone, arg, cpl)
	case done != nil:
		done(arg, cpl.Status())
	case cdone != nil:
		cdone(arg, cpl)
	}
}

// passOn is the end of finish on a queue for whose trackers others wait.
func (q *QueuePair) passOn(done Done, cdone CommandDone, arg any, cpl *Completion) {
	q.resume()
	q.admit()
	switch {
	case done != nil:
		done(arg, cpl.Status())
	case cdone != nil:
		cdone(arg, cpl)
	}
}
