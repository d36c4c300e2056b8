package nvme

import (
	"errors"
	"fmt"
	"slices"
)

// Lost tells that the queue pair can no longer be used: the connection broke,
// the controller violated the protocol, or it failed. For transports. Commands
// stay outstanding until Quiesced. Of several calls for one connection the
// first counts.
func (q *QueuePair) Lost(err error) {
	if q.state == queueDead || q.cold.broken != nil {
		return
	}
	q.setState(queueDown)
	q.cold.err, q.cold.broken, q.cold.linked = err, err, false
	if q.cold.lost != nil {
		q.cold.lost(q, err)
	}
}

// Broken returns why the connection was lost, nil if it was not since the last
// Connect began. For transports, on the core.
func (q *QueuePair) Broken() error { return q.cold.broken }

// Quiesced tells that no outstanding command can touch host memory or complete
// any more. For transports, after Lost or within Disconnect. Commands that may
// be sent again are held for the reconnect, in order of submission; the others
// complete with StatusCommandAbortedByHost.
func (q *QueuePair) Quiesced() {
	if q.state != queueDead {
		q.setState(queueDown)
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
	q.admit() // the library's own commands fail now
	if q.failFast = q.failFast || q.cold.failNext; q.failFast || q.cold.failover {
		q.failHeld(StatusHostPathError)
	}
}

// setState tells whoever wants to know when the queue pair begins or ceases to
// be live.
func (q *QueuePair) setState(s queueState) {
	was := q.state == queueLive
	q.state = s
	if is := s == queueLive; is != was && q.cold.notify != nil {
		q.cold.notify(q, is)
	}
}

// Association returns the number of the association in which the queue pair is
// live, or was last; 0 before the first. On the core.
func (q *QueuePair) Association() uint64 { return q.cold.association }

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
func (q *QueuePair) goLive(association uint64) {
	if q.state == queueDead || !q.cold.linked {
		return
	}
	q.failFast, q.cold.failNext, q.cold.err = false, false, nil
	q.cold.association = association
	q.setState(queueLive)
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

// setFailFast makes held and new commands fail instead of waiting; on a queue
// that is still up although the controller is lost, once that is taken down.
func (q *QueuePair) setFailFast() {
	switch q.state {
	case queueDead:
	case queueLive:
		// Queues go live after the controller does.
		q.cold.failNext = q.cold.ctrl.State() != StateLive
	default:
		q.failFast = true
		q.failHeld(StatusHostPathError)
	}
}

// kill ends the queue pair for good. The transport has been quiesced.
func (q *QueuePair) kill(err error) {
	if q.state == queueDead {
		return
	}
	q.cold.err = err
	q.setState(queueDead)
	q.stopTimer()
	q.Quiesced()
	if errors.Is(err, ErrClosed) {
		q.failHeld(StatusCommandAbortedByHost)
	} else {
		q.failHeld(StatusHostPathError)
	}
}

// errFailover is one value: a core may meet it for each of its commands.
var errFailover = fmt.Errorf("%w: %w", ErrNotLive, StatusHostPathError)

// refusal says why a queue that is not live takes no commands, or returns nil
// if it holds them.
func (q *QueuePair) refusal() error {
	switch {
	case q.state == queueDead:
		return q.deadError()
	case q.cold.failover:
		return errFailover
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
