package nvme

import (
	"fmt"
	"time"
)

// maxAborts is how many Abort commands the library keeps with the controller,
// if it takes as many (ACL).
const maxAborts = 4

// aborter sends the Abort commands of the library's own, on the admin queue's
// core. They are never sent again: what a reconnect brings back has a right to
// its full time.
type aborter struct {
	out     int
	waiting []abortTarget
}

type abortTarget struct {
	q   *QueuePair
	cid uint16
}

// abort asks the controller to abort a command. If wait is set, and the
// controller has its fill of Abort commands, it is asked later, provided that
// the command is still out then; q must be of the admin queue's poller.
func (c *Controller) abort(q *QueuePair, cid uint16, wait bool) {
	a := &c.aborts
	if !c.admin.Live() {
		return // the command ends with the connection
	}
	cmd := AbortCommand{SQID: q.cold.id, CID: cid}.Command()
	if a.out < min(c.id.Load().AbortLimit(), maxAborts) && c.admin.postOwn(&cmd, Data{}, 0, abortDone, c) == nil {
		a.out++
	} else if wait {
		a.waiting = append(a.waiting, abortTarget{q, cid})
	}
}

func abortDone(arg any, cpl *Completion) {
	c := arg.(*Controller)
	a := &c.aborts
	a.out--
	if st := cpl.Status(); !st.OK() || uint32(cpl.Result)&AbortNotPerformed != 0 {
		c.events.post(func() {
			c.cfg.Logger.Warn("command not aborted", "controller", c.t.Address(), "status", st.Error())
		})
	}
	list := a.waiting
	a.waiting = nil
	for _, t := range list {
		if t.q.Find(t.cid) != nil {
			c.abort(t.q, t.cid, true)
		}
	}
}

// commandOverdue is told on a queue's core that a command takes too long.
func (c *Controller) commandOverdue(q *QueuePair, cid uint16, age int64) {
	action := "reset"
	if q.cold.id != 0 && age < 2*int64(q.cold.timeout) {
		action = "abort"
	}
	took := time.Duration(age)
	c.events.post(func() {
		c.cfg.Logger.Warn("command overdue", "controller", c.t.Address(), "queue", q.cold.id, "cid", cid, "age", took, "action", action)
		if f := c.cfg.Events.Timeout; f != nil {
			f(c, q.cold.id, cid, took, action)
		}
	})
	if action == "reset" {
		q.Lost(fmt.Errorf("%w: command %#x overdue after %v", ErrTimeout, cid, took.Round(time.Millisecond)))
		return
	}
	c.abortLater(q, cid)
}

// abortFrom is abort on the core of q, which may be another than the admin
// queue's.
func (c *Controller) abortFrom(q *QueuePair, cid uint16) {
	if q.p == c.p {
		c.abort(q, cid, true)
		return
	}
	c.abortLater(q, cid)
}

// abortLater has the controller asked on the admin queue's core. What its limit
// has no room for is left to the timeout.
func (c *Controller) abortLater(q *QueuePair, cid uint16) {
	epoch := c.association()
	postLater(c.p, func() {
		if c.association() == epoch {
			c.abort(q, cid, false)
		}
	})
}
