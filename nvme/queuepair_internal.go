package nvme

import "fmt"

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
