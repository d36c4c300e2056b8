package pcietest

import (
	"github.com/qpoll/qpoll/nvme"
)

const invalidField = nvme.StatusInvalidField | nvme.StatusDNR

// admin executes an admin command. It is not done if it completes later.
func (c *Controller) admin(cmd *nvme.Command) (s nvme.Status, result uint64, done bool) {
	if cmd.Flags&nvme.FlagFuseMask != 0 || cmd.Flags&nvme.FlagPSDTMask != 0 {
		return invalidField, 0, true
	}
	switch cmd.Opcode {
	case nvme.AdminAsyncEvent:
		s, done = c.asyncEvent(cmd)
		return s, 0, done
	case nvme.AdminAbort:
		s, result = c.abort(cmd)
	case nvme.AdminGetFeatures:
		s, result = c.getFeatures(cmd)
	case nvme.AdminSetFeatures:
		s, result = c.setFeatures(cmd)
	case nvme.AdminNamespaceManagement:
		s, result = c.manageNamespace(cmd)
	default:
		s = c.plainAdmin(cmd)
	}
	return s, result, true
}

// plainAdmin executes admin commands that return nothing in the completion.
func (c *Controller) plainAdmin(cmd *nvme.Command) nvme.Status {
	switch cmd.Opcode {
	case nvme.AdminDeleteIOSQ:
		return c.deleteSQ(cmd)
	case nvme.AdminCreateIOSQ:
		return c.createSQ(cmd)
	case nvme.AdminDeleteIOCQ:
		return c.deleteCQ(cmd)
	case nvme.AdminCreateIOCQ:
		return c.createCQ(cmd)
	case nvme.AdminGetLogPage:
		return c.getLogPage(cmd)
	case nvme.AdminIdentify:
		return c.identify(cmd)
	case nvme.AdminKeepAlive:
		return 0
	case nvme.AdminNamespaceAttachment:
		return c.attachNamespace(cmd)
	case nvme.AdminFormatNVM:
		return c.formatNVM(cmd)
	case nvme.AdminDoorbellBufferConfig:
		return c.doorbellBuffer(cmd)
	}
	return nvme.StatusInvalidOpcode | nvme.StatusDNR
}

// createCQ executes Create I/O Completion Queue (5.2.1).
func (c *Controller) createCQ(cmd *nvme.Command) nvme.Status {
	q, err := nvme.ParseCreateCQ(cmd)
	switch {
	case err != nil:
		return invalidField
	case c.badQID(q.QID, c.features.cqs) || c.cqs[q.QID] != nil:
		return nvme.StatusInvalidQueueIdentifier | nvme.StatusDNR
	case q.Size == 0 || int(q.Size) >= c.cfg.QueueEntries:
		return nvme.StatusInvalidQueueSize | nvme.StatusDNR
	case !q.Contiguous || c.regs.cc.IOCQES() != 4:
		return invalidField
	case q.Address == 0 || q.Address&uint64(c.page-1) != 0:
		return nvme.StatusPRPOffsetInvalid | nvme.StatusDNR
	case q.Interrupts && int(q.Vector) >= max(1, len(c.vectors)):
		return nvme.StatusInvalidInterruptVector | nvme.StatusDNR
	}
	size := uint32(q.Size) + 1
	if s := c.placed(q.Address, uint64(size)*nvme.CompletionSize, useCQ); s != 0 {
		return s
	}
	n := c.newCQ(q.QID, q.Address, size)
	n.vector, n.enabled = q.Vector, q.Interrupts
	return 0
}

// createSQ executes Create I/O Submission Queue (5.2.2).
func (c *Controller) createSQ(cmd *nvme.Command) nvme.Status {
	q, err := nvme.ParseCreateSQ(cmd)
	switch {
	case err != nil:
		return invalidField
	case q.CQID == 0 || int(q.CQID) >= len(c.cqs) || c.cqs[q.CQID] == nil:
		return nvme.StatusCompletionQueueInvalid | nvme.StatusDNR
	case c.badQID(q.QID, c.features.sqs) || c.sqs[q.QID] != nil:
		return nvme.StatusInvalidQueueIdentifier | nvme.StatusDNR
	case q.Size == 0 || int(q.Size) >= c.cfg.QueueEntries:
		return nvme.StatusInvalidQueueSize | nvme.StatusDNR
	case !q.Contiguous || c.regs.cc.IOSQES() != 6:
		return invalidField
	case q.Address == 0 || q.Address&uint64(c.page-1) != 0:
		return nvme.StatusPRPOffsetInvalid | nvme.StatusDNR
	}
	size := uint32(q.Size) + 1
	if s := c.placed(q.Address, uint64(size)*nvme.CommandSize, useSQ); s != 0 {
		return s
	}
	n := c.newSQ(q.QID, q.Address, size, c.cqs[q.CQID])
	n.priority = q.Priority
	c.arbitrate()
	return 0
}

// badQID reports whether an identifier is not one of so many I/O queues.
func (c *Controller) badQID(qid uint16, granted int) bool { return qid == 0 || int(qid) > granted }

// placed checks that a queue may be where it is: a controller memory buffer may
// not be good for it, and holds all of it or nothing.
func (c *Controller) placed(base, size uint64, u use) nvme.Status {
	if b := c.inCMB(base, size); b != nil {
		if uint64(len(b)) < size {
			return nvme.StatusInvalidUseOfCMB | nvme.StatusDNR
		}
		return c.forCMB(u)
	}
	return 0
}

// deleteSQ executes Delete I/O Submission Queue (5.2.4). What it holds is
// aborted.
func (c *Controller) deleteSQ(cmd *nvme.Command) nvme.Status {
	qid := uint16(cmd.CDW10)
	if qid == 0 || int(qid) >= len(c.sqs) || c.sqs[qid] == nil {
		return nvme.StatusInvalidQueueIdentifier | nvme.StatusDNR
	}
	q := c.sqs[qid]
	for at := 0; at < len(c.held); {
		h := c.held[at]
		if h.q != q {
			at++
			continue
		}
		c.held = append(c.held[:at], c.held[at+1:]...)
		c.complete(q, h.cmd.CID, nvme.StatusAbortedSQDeletion, 0)
	}
	c.dropSQ(q)
	return 0
}

// deleteCQ executes Delete I/O Completion Queue (5.2.3).
func (c *Controller) deleteCQ(cmd *nvme.Command) nvme.Status {
	qid := uint16(cmd.CDW10)
	if qid == 0 || int(qid) >= len(c.cqs) || c.cqs[qid] == nil {
		return nvme.StatusInvalidQueueIdentifier | nvme.StatusDNR
	}
	if c.cqs[qid].users > 0 {
		return nvme.StatusInvalidQueueDeletion | nvme.StatusDNR
	}
	c.cqs[qid] = nil
	return 0
}

// abort executes Abort (5.1.1): what a rule holds, and Asynchronous Event
// Requests, can be aborted.
func (c *Controller) abort(cmd *nvme.Command) (nvme.Status, uint64) {
	a, err := nvme.ParseAbort(cmd)
	if err != nil {
		return invalidField, 0
	}
	if int(a.SQID) >= len(c.sqs) || c.sqs[a.SQID] == nil {
		return invalidField, 0
	}
	q := c.sqs[a.SQID]
	for at, h := range c.held {
		if h.q == q && h.cmd.CID == a.CID {
			c.held = append(c.held[:at], c.held[at+1:]...)
			c.complete(q, a.CID, nvme.StatusAbortRequested, 0)
			return 0, 0
		}
	}
	if a.SQID == 0 && c.events.cancel(a.CID) {
		c.complete(q, a.CID, nvme.StatusAbortRequested, 0)
		return 0, 0
	}
	return 0, uint64(nvme.AbortNotPerformed)
}

// doorbellBuffer executes Doorbell Buffer Config (5.2.5).
func (c *Controller) doorbellBuffer(cmd *nvme.Command) nvme.Status {
	if c.cfg.NoShadow {
		return nvme.StatusInvalidOpcode | nvme.StatusDNR
	}
	offset := uint64(c.page) - 1
	if cmd.DPTR[0] == 0 || cmd.DPTR[1] == 0 || (cmd.DPTR[0]|cmd.DPTR[1])&offset != 0 {
		return invalidField
	}
	if _, s := c.whole(cmd.DPTR[0], uint64(c.page), useSQ); s != 0 {
		return s
	}
	if _, s := c.whole(cmd.DPTR[1], uint64(c.page), useOther); s != 0 {
		return s
	}
	c.shadow = shadow{on: true, values: cmd.DPTR[0], events: cmd.DPTR[1]}
	for _, q := range c.active {
		if off := c.sqDoorbell(q.id); c.shadowed(q.id, off) {
			_ = c.shadow.db.Write32(off, q.tail)
			_ = c.shadow.ei.Write32(off, q.tail)
		}
		if off := c.cqDoorbell(q.cq.id); c.shadowed(q.cq.id, off) {
			_ = c.shadow.db.Write32(off, q.cq.head)
			_ = c.shadow.ei.Write32(off, q.cq.head)
		}
	}
	return 0
}
