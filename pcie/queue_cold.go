package pcie

import (
	"fmt"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// lose gives the queue up.
func (q *queue) lose(err error) {
	if q.up {
		q.up = false
		q.qp.Lost(err)
	}
}

// CompletionError is a completion queue entry that no outstanding command, or
// not this queue, explains: the controller, or what lies between, is broken.
type CompletionError struct {
	Queue  uint16 // identifier of the queue
	CID    uint16 // as in the entry, like the following
	SQID   uint16
	SQHead uint16
	Status nvme.Status
}

// Error implements error.
func (e *CompletionError) Error() string {
	return fmt.Sprintf("pcie: completion in queue %d for command %#x of submission queue %d, head %d, %s: no such command is outstanding",
		e.Queue, e.CID, e.SQID, e.SQHead, e.Status.Error())
}

// Unwrap returns nvme.ErrProtocol.
func (e *CompletionError) Unwrap() error { return nvme.ErrProtocol }

// badCompletion gives the queue up because of an entry that cannot be right.
func (q *queue) badCompletion(hi uint64, known bool) {
	if !known {
		q.qp.Spurious()
	}
	q.lose(&CompletionError{
		Queue: q.id, CID: uint16(hi >> 32), SQID: uint16(hi >> 16), SQHead: uint16(hi),
		Status: nvme.Status(hi >> 49),
	})
}

// posted takes note of an admin command.
func (q *queue) posted(r *nvme.Request, s *slot) {
	if r.Cmd.Opcode == nvme.AdminAsyncEvent {
		s.aer = true
		q.aers++
	}
}

// queueAddresses returns the data pointer of the commands in which it is the
// address of a queue or of doorbells; the others without data have none.
func queueAddresses(c *nvme.Command) (d1, d2 uint64) {
	switch c.Opcode {
	case nvme.AdminCreateIOCQ, nvme.AdminCreateIOSQ, nvme.AdminDoorbellBufferConfig:
		return c.DPTR[0], c.DPTR[1]
	}
	return 0, 0
}

// How long a poller may sleep that has no interrupt to wake it, in nanoseconds:
// with nothing but event requests outstanding, and with other admin commands.
const (
	idlePause = 10_000_000
	busyPause = 50_000
)

// Arm implements nvme.QueueTransport.
func (q *queue) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	if !q.up {
		return -1, 0, 0, true
	}
	if q.unfed != 0 {
		q.feed()
	}
	if q.posts != q.rung+q.fused || q.waiting.n != 0 {
		return -1, 0, 0, false
	}
	if q.cold.fd >= 0 {
		// What comes after this wakes, what came before is seen below.
		sys.EventDrain(q.cold.fd)
		return q.cold.fd, sys.POLLIN, 0, q.empty()
	}
	switch out := q.qp.InFlight() - q.aers; {
	case out <= 0 && q.aers == 0:
		return -1, 0, 0, true
	case out <= 0:
		return -1, 0, now + idlePause, true
	case q.admin:
		return -1, 0, now + busyPause, true
	}
	return -1, 0, 0, false
}

// empty tells whether there is no completion to be taken.
func (q *queue) empty() bool { return q.cq[q.head].tag() != q.phase }
