package nvme

// CompareAndWrite posts the fused operation Compare and Write: write replaces
// what is at lba if and only if that equals compare, as one atomic step (Base
// Specification 3.4.2). Both buffers are blocks times the block size, which
// must fit in one command. A difference completes with StatusCompareFailure.
// While the controller reconnects the pair waits together; once sent, it is
// never sent again, since a second try could not tell its own first one from
// another's: it completes with StatusCommandAbortedByHost instead.
// ErrUnsupported if the controller has no such operation. Must be called on the
// poller's core.
func (q *NamespaceQueue) CompareAndWrite(compare, write []byte, lba uint64, blocks uint32, done Done, arg any) error {
	if q.ns.c.id.Load().FUSES&FUSESCompareAndWrite == 0 {
		return ErrUnsupported
	}
	g := q.ns.geo.Load()
	n := uint64(blocks)
	size := n * uint64(g.xfer)
	switch {
	case g.gone:
		return ErrNoNamespace
	case n == 0 || n > uint64(g.oneCommand) || uint64(len(compare)) != size || uint64(len(write)) != size:
		return ErrLength
	case lba >= g.blocks || n > g.blocks-lba:
		return ErrOutOfRange
	}
	qp := q.qp
	if err := qp.accepts(); err != nil {
		return err
	}
	if qp.Room() < 2 {
		return ErrQueueFull
	}
	o, err := qp.takeOp()
	if err != nil {
		return err
	}
	o.done, o.arg, o.ns, o.left, o.pending = done, arg, q.ns, 0, 2
	for _, half := range [2]struct {
		op   Opcode
		fuse uint8
		buf  []byte
	}{{OpCompare, FlagFuseFirst, compare}, {OpWrite, FlagFuseSecond, write}} {
		r := qp.take()
		c := r.command(half.op, g.nsid)
		c.Flags = half.fuse
		c.setRange(lba, blocks)
		r.buffer(half.buf, uint32(size), DirOut)
		r.piece(o)
		qp.submit(r)
	}
	return nil
}
