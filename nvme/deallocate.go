//qpoll:hot

package nvme

import "encoding/binary"

// Deallocate implements [Queue]. On the poller's core only. Range lists longer, or ranges larger, than the
// controller takes in one command are split.
func (q *NamespaceQueue) Deallocate(ranges []DSMRange, done Done, arg any) error {
	g := q.ns.geo.Load()
	if g.gone {
		return ErrNoNamespace
	}
	if !g.deallocate {
		return ErrUnsupported
	}
	if len(ranges) == 0 {
		return ErrLength
	}
	for i := range ranges {
		r := &ranges[i]
		if r.Length == 0 {
			return ErrLength
		}
		if r.LBA >= g.blocks || uint64(r.Length) > g.blocks-r.LBA {
			return ErrOutOfRange
		}
	}
	qp := q.qp
	o, err := qp.takeOp()
	if err != nil {
		return err
	}
	if o.scratch == nil {
		o.scratch = make([]byte, MaxDSMRanges*dsmRangeBytes)
	}
	o.cmd = Command{Opcode: OpDatasetManagement, NSID: g.nsid, CDW11: dsmDeallocate}
	o.limits = opLimits{ranges: g.dsmRanges, max: g.dsmRange, total: g.dsmTotal}
	o.ranges, o.left, o.lba = ranges, uint64(len(ranges)), 0
	o.done, o.arg, o.ns = done, arg, q.ns
	qp.start(o)
	return nil
}

const dsmDeallocate = 1 << 2 // CDW11 AD

// issueRanges posts the next Dataset Management command of o, one at a time,
// since its range list stands in the op's own memory. o.lba counts the blocks
// of the current range that were issued.
func (q *QueuePair) issueRanges(o *op) bool {
	if o.pending > 0 || o.left == 0 {
		return true
	}
	r := q.take()
	if r == nil {
		return false
	}
	n, budget := 0, o.limits.total
	for o.left > 0 && n < o.limits.ranges && budget > 0 {
		cur := &o.ranges[uint64(len(o.ranges))-o.left]
		blocks := min(uint64(cur.Length)-o.lba, o.limits.max, budget)
		b := o.scratch[n*dsmRangeBytes:]
		binary.LittleEndian.PutUint32(b, cur.Attributes)
		binary.LittleEndian.PutUint32(b[4:], uint32(blocks))
		binary.LittleEndian.PutUint64(b[8:], cur.LBA+o.lba)
		n++
		budget -= blocks
		o.lba += blocks
		if o.lba == uint64(cur.Length) {
			o.lba = 0
			o.left--
		}
	}
	c := r.command(o.cmd.Opcode, o.cmd.NSID)
	c.CDW10, c.CDW11 = uint32(n-1), o.cmd.CDW11
	r.buffer(o.scratch[:n*dsmRangeBytes], uint32(n*dsmRangeBytes), DirOut)
	r.piece(o)
	r.flags = reqReplay
	o.pending++
	q.submit(r)
	return true
}
