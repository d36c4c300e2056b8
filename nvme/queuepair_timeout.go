package nvme

import "time"

// startTimer watches for commands that take longer than the timeout.
func (q *QueuePair) startTimer() {
	if q.cold.timeout <= 0 || q.cold.watch != nil || q.state == queueDead {
		return
	}
	every := min(max(q.cold.timeout/8, 10*time.Millisecond), time.Second)
	q.cold.watch = newWatch(q.p, every, q.scanTimeouts)
}

func (q *QueuePair) stopTimer() {
	q.cold.watch.stop()
	q.cold.watch = nil
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
