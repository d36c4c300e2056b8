//qpoll:hot

package nvme

// op is a transfer that takes more than one command: a cursor over what is
// left to issue, and a count of the pieces in flight. Pieces are issued as
// trackers become free, so that any transfer passes through any queue.
type op struct {
	q       *QueuePair
	next    *op // in QueuePair.stalled
	cmd     Command
	data    Data
	ranges  []DSMRange // Deallocate only
	scratch []byte     // Deallocate only: the range list of the piece in flight
	lba     uint64
	left    uint64 // blocks not yet issued, or ranges for Deallocate
	ns      *Namespace
	limits  opLimits
	pending int
	status  Status
	queued  bool // stands in QueuePair.stalled
	done    Done
	arg     any
}

// opLimits bounds one piece.
type opLimits struct {
	xfer     uint32 // bytes per block that move, 0 without data
	max      uint64 // blocks per command
	boundary uint64 // blocks; no piece crosses a multiple of it; 0: none
	ranges   int    // Deallocate: ranges per command
	total    uint64 // Deallocate: blocks per command
}

// opList is a FIFO of transfers that wait for trackers.
type opList struct{ head, tail *op }

func (l *opList) push(o *op) {
	o.queued = true
	if l.tail == nil {
		l.head = o
	} else {
		l.tail.next = o
	}
	l.tail = o
}

func (l *opList) pop() {
	o := l.head
	l.head = o.next
	if l.head == nil {
		l.tail = nil
	}
	o.next, o.queued = nil, false
}

func (l *opList) remove(o *op) {
	var prev *op
	for e := l.head; e != nil; prev, e = e, e.next {
		if e != o {
			continue
		}
		if prev == nil {
			l.pop()
			return
		}
		prev.next = o.next
		if l.tail == o {
			l.tail = prev
		}
		o.next, o.queued = nil, false
		return
	}
}

// Issue implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Issue(io *IO) error {
	g := q.ns.geo.Load()
	d, lim, err := g.check(io)
	if err != nil {
		return err
	}
	qp := q.qp
	if io.Blocks <= lim.max && (g.boundary == 0 || lim.boundary == 0 || !g.crosses(io.LBA, uint32(io.Blocks))) {
		r, err := qp.forUser()
		if err != nil {
			return err
		}
		c := r.command(io.Op, g.nsid)
		c.CDW12, c.CDW13 = io.control(), uint32(io.DSM)
		c.setRange(io.LBA, uint32(io.Blocks))
		r.Data = d
		r.done, r.arg, r.ns = io.Done, io.Arg, q.ns
		r.flags = reqReplay
		qp.submit(r)
		return nil
	}
	o, err := qp.takeOp()
	if err != nil {
		return err
	}
	o.cmd = Command{Opcode: io.Op, NSID: g.nsid, CDW12: io.control(), CDW13: uint32(io.DSM)}
	o.data, o.lba, o.left, o.limits = d, io.LBA, io.Blocks, lim
	o.done, o.arg, o.ns = io.Done, io.Arg, q.ns
	qp.start(o)
	return nil
}

// control builds the option bits of CDW12 (NVM Command Set Specification,
// "Read command", "Write Zeroes command").
func (io *IO) control() uint32 {
	var v uint32
	if io.FUA {
		v |= 1 << 30
	}
	if io.LR {
		v |= 1 << 31
	}
	if io.DEAC && io.Op == OpWriteZeroes {
		v |= 1 << 25
	}
	return v
}

// setRange sets SLBA and NLB (0's based) and keeps the other bits of CDW12.
func (c *Command) setRange(lba uint64, blocks uint32) {
	c.CDW10, c.CDW11 = uint32(lba), uint32(lba>>32)
	c.CDW12 = c.CDW12&^0xffff | (blocks-1)&0xffff
}

// takeOp takes what a transfer of several commands needs, on a queue that
// accepts commands.
func (q *QueuePair) takeOp() (*op, error) {
	q.p.CheckCore(offCore)
	if err := q.accepts(); err != nil {
		return nil, err
	}
	n := len(q.freeOps)
	if n == 0 {
		return nil, ErrQueueFull
	}
	o := q.freeOps[n-1]
	q.freeOps = q.freeOps[:n-1]
	o.status, o.pending = 0, 0
	return o, nil
}

// start issues what it can of o; the rest follows as trackers become free,
// behind the transfers that wait already.
func (q *QueuePair) start(o *op) {
	if q.stalled.head != nil || !q.issue(o) {
		q.stalled.push(o)
	}
}

// issue posts pieces of o until none is left (true) or no tracker is (false).
func (q *QueuePair) issue(o *op) bool {
	if o.ranges != nil {
		return q.issueRanges(o)
	}
	for o.left > 0 {
		r := q.take()
		if r == nil {
			return false
		}
		n := min(o.left, o.limits.max)
		if b := o.limits.boundary; b != 0 {
			n = min(n, b-o.lba%b)
		}
		c := r.command(o.cmd.Opcode, o.cmd.NSID)
		c.CDW12, c.CDW13 = o.cmd.CDW12, o.cmd.CDW13
		c.setRange(o.lba, uint32(n))
		o.data.cut(&r.Data, uint32(n)*o.limits.xfer)
		r.piece(o)
		r.flags = reqReplay
		o.lba += n
		o.left -= n
		o.pending++
		q.submit(r)
	}
	return true
}

// cut moves the next n bytes of d to c, which is empty.
func (d *Data) cut(c *Data, n uint32) {
	c.Len, c.Dir = n, d.Dir
	switch {
	case n == 0:
	case d.Vec == nil:
		c.Buf, d.Buf = d.Buf[:n:n], d.Buf[n:]
	default:
		c.Vec, c.Off = d.Vec, d.Off
		d.Off += int(n)
		for len(d.Vec) > 1 && d.Off >= len(d.Vec[0]) {
			d.Off -= len(d.Vec[0])
			d.Vec = d.Vec[1:]
		}
	}
}

// piece makes r one of the commands of o.
func (r *Request) piece(o *op) { r.done, r.arg, r.ns = pieceDone, o, o.ns }

func pieceDone(arg any, st Status) {
	o := arg.(*op)
	o.q.opPart(o, st)
}

// resume continues stalled transfers with the trackers that are free now.
func (q *QueuePair) resume() {
	for o := q.stalled.head; o != nil; o = q.stalled.head {
		q.recheck(o)
		if !q.issue(o) {
			return
		}
		q.stalled.pop()
		if o.pending == 0 {
			q.endOp(o)
		}
	}
}

// recheck ends a transfer under way for which circumstances have changed: what
// is left of it must not reach a namespace that took the place of its own.
func (q *QueuePair) recheck(o *op) {
	switch {
	case q.state == queueDead || q.failFast:
		o.fail(StatusHostPathError)
	case o.ns.gone.Load():
		o.fail(StatusInvalidNamespace)
	}
}

// failStalled ends the transfers that wait for trackers.
func (q *QueuePair) failStalled(st Status) {
	for o := q.stalled.head; o != nil; o = q.stalled.head {
		o.fail(st)
		q.stalled.pop()
		if o.pending == 0 {
			q.endOp(o)
		}
	}
}

// fail records the first error and issues nothing more. That one half of a
// fused operation failed because of the other says less than the other's.
// That the fate of a piece is unknown says more than that another one could
// not be sent: what is sent again elsewhere at once must not be executed here.
func (o *op) fail(st Status) {
	unknown := st.Code() == StatusCommandAbortedByHost && o.status.IsPath()
	if o.status.OK() || o.status.Code() == StatusAbortedFailedFused || unknown {
		o.status = st
	}
	o.left = 0
}

// opPart takes the completion of one piece.
func (q *QueuePair) opPart(o *op, st Status) {
	o.pending--
	if !st.OK() {
		o.fail(st)
	}
	if o.ranges != nil && o.left > 0 && !o.queued {
		q.recheck(o)
		if !q.issue(o) {
			q.stalled.push(o)
			return
		}
	}
	if o.pending > 0 || o.left > 0 {
		return
	}
	if o.queued {
		q.stalled.remove(o)
	}
	q.endOp(o)
}

func (q *QueuePair) endOp(o *op) {
	done, arg, st := o.done, o.arg, o.status
	o.data, o.ranges, o.done, o.arg, o.ns = Data{}, nil, nil, nil, nil
	q.freeOps = append(q.freeOps, o)
	if done != nil {
		done(arg, st)
	}
}
