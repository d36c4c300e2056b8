package nvme

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// queueCold is the part of a queue pair that no command touches.
type queueCold struct {
	id       uint16
	size     int
	ctrl     *Controller
	err      error // why it is down or dead
	broken   error // why the connection was lost, from then on until the next
	linked   bool  // connected: what is posted is sent
	link     link
	retries  uint8 // how often a command may be replayed
	timeout  time.Duration
	timer    *poller.Timer
	added    bool
	lost     func(q *QueuePair, err error)             // told once per loss
	timedOut func(q *QueuePair, cid uint16, age int64) // told at the timeout, and at twice the timeout
}

// queueParams describes a queue pair to be made.
type queueParams struct {
	id       uint16
	size     int // entries; commands in flight stay below it
	reserve  int // of these, for internal commands only
	timeout  time.Duration
	retries  uint8
	ctrl     *Controller
	lost     func(q *QueuePair, err error)
	timedOut func(q *QueuePair, cid uint16, age int64)
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
		cold: queueCold{id: s.id, size: s.size, ctrl: s.ctrl, retries: s.retries, timeout: s.timeout,
			lost: s.lost, timedOut: s.timedOut},
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

// PostInternal posts a command of the library's own, for example the fabrics
// Connect, whatever the queue's state, from trackers that users cannot exhaust.
// For transports. done is called on completion, or with
// StatusCommandAbortedByHost if the queue is lost first. It returns false if no
// tracker is left.
func (q *QueuePair) PostInternal(cmd *Command, d Data, done CommandDone, arg any) bool {
	return q.postInternal(cmd, d, 0, done, arg)
}

// postOwn is PostInternal for a queue that is connected; without a connection
// nobody would answer.
func (q *QueuePair) postOwn(cmd *Command, d Data, f reqFlags, done CommandDone, arg any) error {
	switch {
	case q.state == queueDead:
		return q.deadError()
	case !q.cold.linked:
		return fmt.Errorf("%w: no connection", ErrNotLive)
	case !q.postInternal(cmd, d, f, done, arg):
		return ErrQueueFull
	}
	return nil
}

func (q *QueuePair) postInternal(cmd *Command, d Data, f reqFlags, done CommandDone, arg any) bool {
	n := len(q.free)
	if n == 0 || q.inflight >= q.cold.size-1 || q.state == queueDead || q.t == nil {
		return false
	}
	r := &q.reqs[q.free[n-1]]
	q.free = q.free[:n-1]
	cid := r.Cmd.CID
	r.Cmd = *cmd
	r.Cmd.CID = cid
	r.Data, r.cdone, r.arg = d, done, arg
	r.flags = reqInternal | f
	r.seq = q.seq
	q.seq++
	r.submitted = q.p.Now()
	q.post(r)
	return true
}

// linkBegin precedes a Connect.
func (q *QueuePair) linkBegin() { q.cold.broken, q.cold.linked = nil, false }

// linkEnd follows it. It fails if the connection is lost again already.
func (q *QueuePair) linkEnd() error {
	q.cold.linked = q.cold.broken == nil
	return q.cold.broken
}

// Spurious counts a completion that named no outstanding command. For
// transports; what follows (usually Lost) is theirs to decide.
func (q *QueuePair) Spurious() { q.spurious++ }

// Lost tells that the queue pair can no longer be used: the connection broke,
// the controller violated the protocol, or it failed. For transports. Commands
// stay outstanding until Quiesced. Of several calls for one connection the
// first counts.
func (q *QueuePair) Lost(err error) {
	if q.state == queueDead || q.cold.broken != nil {
		return
	}
	q.state = queueDown
	q.cold.err, q.cold.broken, q.cold.linked = err, err, false
	if q.cold.lost != nil {
		q.cold.lost(q, err)
	}
}

// Quiesced tells that no outstanding command can touch host memory or complete
// any more. For transports, after Lost or within Disconnect. Commands that may
// be sent again are held for the reconnect, in order of submission; the others
// complete with StatusCommandAbortedByHost.
func (q *QueuePair) Quiesced() {
	if q.state != queueDead {
		q.state = queueDown
	}
	q.cold.linked = false
	var failed []uint16
	for i := range q.reqs {
		r := &q.reqs[i]
		if r.state != reqPosted {
			continue
		}
		q.inflight--
		if q.state != queueDead && r.flags&reqReplay != 0 && r.retries < q.cold.retries {
			r.retries++
			r.flags &^= reqTimed | reqOverdue
			r.state = reqHeld
			q.held = append(q.held, r.index)
			continue
		}
		r.state = reqTaken
		failed = append(failed, r.index)
	}
	slices.SortFunc(q.held, q.bySeq)
	slices.SortFunc(failed, q.bySeq)
	q.abort(failed, StatusCommandAbortedByHost)
	if q.failFast {
		q.failHeld(StatusHostPathError)
	}
}

func (q *QueuePair) bySeq(a, b uint16) int {
	if q.reqs[a].seq < q.reqs[b].seq {
		return -1
	}
	return 1
}

func (q *QueuePair) hold(r *Request) {
	r.state = reqHeld
	q.held = append(q.held, r.index)
}

// unhold takes trackers out of the list of those that wait for a reconnect.
func (q *QueuePair) unhold(list []uint16) {
	for _, i := range list {
		q.reqs[i].state = reqTaken
	}
	q.held = slices.DeleteFunc(q.held, func(i uint16) bool { return q.reqs[i].state != reqHeld })
}

// abort completes trackers that are with nobody.
func (q *QueuePair) abort(list []uint16, st Status) {
	for _, i := range list {
		r := &q.reqs[i]
		q.finish(r, &Completion{CID: r.Cmd.CID, SQID: q.cold.id, StatusPhase: uint16(st) << 1})
	}
}

// failHeld completes what waits for a reconnect that will not be waited for.
func (q *QueuePair) failHeld(st Status) {
	list := slices.Clone(q.held)
	q.held = q.held[:0]
	for _, i := range list {
		q.reqs[i].state = reqTaken
	}
	q.abort(list, st)
	q.failStalled(st)
	q.admit()
}

// goLive lets commands out: first those held, in order. If the connection is
// lost again already, the manager will see to it.
func (q *QueuePair) goLive() {
	if q.state == queueDead || !q.cold.linked {
		return
	}
	q.state, q.failFast, q.cold.err = queueLive, false, nil
	list := slices.Clone(q.held)
	q.held = q.held[:0]
	var failed []uint16
	for _, i := range list {
		r := &q.reqs[i]
		if r.ns != nil && r.ns.gone.Load() {
			r.state = reqTaken
			failed = append(failed, i)
			continue
		}
		r.submitted = q.p.Now()
		q.post(r)
	}
	q.abort(failed, StatusInvalidNamespace)
	q.resume()
	q.admit()
}

// setFailFast makes held and new commands fail instead of waiting.
func (q *QueuePair) setFailFast() {
	if q.state == queueLive || q.state == queueDead {
		return
	}
	q.failFast = true
	q.failHeld(StatusHostPathError)
}

// kill ends the queue pair for good. The transport has been quiesced.
func (q *QueuePair) kill(err error) {
	if q.state == queueDead {
		return
	}
	q.state, q.cold.err = queueDead, err
	q.stopTimer()
	q.Quiesced()
	if errors.Is(err, ErrClosed) {
		q.failHeld(StatusCommandAbortedByHost)
	} else {
		q.failHeld(StatusHostPathError)
	}
}

// refusal says why a queue that is not live takes no commands, or returns nil
// if it holds them.
func (q *QueuePair) refusal() error {
	switch {
	case q.state == queueDead:
		return q.deadError()
	case q.failFast:
		return fmt.Errorf("%w: %w", ErrNotLive, StatusHostPathError)
	}
	return nil
}

func (q *QueuePair) deadError() error {
	if q.cold.err != nil {
		return q.cold.err
	}
	return ErrClosed
}

// startTimer watches for commands that take longer than the timeout.
func (q *QueuePair) startTimer() {
	if q.cold.timeout <= 0 || q.cold.timer != nil || q.state == queueDead {
		return
	}
	every := min(max(q.cold.timeout/8, 10*time.Millisecond), time.Second)
	q.cold.timer = q.p.AfterFunc(every, func() {
		if q.state == queueDead {
			return
		}
		q.scanTimeouts()
		if q.cold.timer != nil {
			q.cold.timer.Reset(every)
		}
	})
}

func (q *QueuePair) stopTimer() {
	if q.cold.timer != nil {
		q.cold.timer.Stop()
		q.cold.timer = nil
	}
}

func (q *QueuePair) scanTimeouts() {
	if q.inflight == 0 {
		return
	}
	now, limit := q.p.Now(), int64(q.cold.timeout)
	for i := range q.reqs {
		r := &q.reqs[i]
		age := now - r.submitted
		switch {
		case r.state != reqPosted || r.flags&(reqNoTime|reqOverdue) != 0 || age < limit:
			continue
		case r.flags&reqTimed == 0:
			r.flags |= reqTimed
		case age >= 2*limit:
			r.flags |= reqOverdue
		default:
			continue
		}
		if q.cold.timedOut != nil {
			q.cold.timedOut(q, r.Cmd.CID, age)
		}
	}
}

// QueueStats are the counters of a queue pair since it was made.
type QueueStats struct {
	Submitted uint64 // commands given to the transport, replays included
	Completed uint64 // commands completed, by the controller or by the host
	Errors    uint64 // of these, with a status other than success
	Spurious  uint64 // completions that named no outstanding command
	Polls     uint64 // calls of Poll
	IdlePolls uint64 // polls that found nothing to do
	InFlight  int    // commands that the transport has
	Held      int    // commands that wait for a reconnect
}

// Stats returns the counters. Must be called on the poller's core.
func (q *QueuePair) Stats() QueueStats {
	return QueueStats{q.submitted, q.completed, q.errors, q.spurious, q.polls, q.idlePolls, q.inflight, len(q.held)}
}
