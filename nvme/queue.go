//qpoll:hot

package nvme

// Queue is what a user posts I/O to from the core of a poller: a namespace of
// one controller, or a channel of a multipath head. All methods must be called
// on that poller's core, and complete there through done, exactly once, never
// before they return. An error return means that nothing was submitted and
// done will not be called.
//
// The core is where callbacks run, and what poller.Poller.Call and Post are
// given. Nothing checks that a call comes from there, for that would cost each
// I/O: one from elsewhere is a data race, of which a command that never
// completes is the mildest outcome. Programs that are built for the race
// detector (-race), or with the tag invariants (-tags invariants), panic
// instead.
//
// Buffers belong to the queue until done is called. Transfers larger than what
// the controller takes in one command are split and complete as one; if
// several pieces fail, the first failure is reported.
type Queue interface {
	// Read fills buf from blocks logical blocks at lba. len(buf) must be
	// exactly blocks times the block size.
	Read(buf []byte, lba uint64, blocks uint32, done Done, arg any) error
	// Write writes buf to blocks logical blocks at lba.
	Write(buf []byte, lba uint64, blocks uint32, done Done, arg any) error
	// ReadV is Read into several buffers in turn. The slice itself, too,
	// belongs to the queue until done is called.
	ReadV(bufs [][]byte, lba uint64, blocks uint32, done Done, arg any) error
	// WriteV is Write from several buffers in turn.
	WriteV(bufs [][]byte, lba uint64, blocks uint32, done Done, arg any) error
	// Compare compares buf with the media; a difference completes with
	// StatusCompareFailure.
	Compare(buf []byte, lba uint64, blocks uint32, done Done, arg any) error
	// WriteZeroes sets blocks to zero without a transfer.
	WriteZeroes(lba, blocks uint64, done Done, arg any) error
	// Verify has the controller check blocks without a transfer.
	Verify(lba, blocks uint64, done Done, arg any) error
	// Deallocate tells the controller that ranges are unused. ranges belongs
	// to the queue until done is called.
	Deallocate(ranges []DSMRange, done Done, arg any) error
	// Flush makes completed writes of the namespace durable.
	Flush(done Done, arg any) error
	// Issue is the general form of the calls above, with per-command options.
	// io itself is not kept.
	Issue(io *IO) error
	// Submit posts one raw command, not split and never sent twice. CID, data
	// pointer and PSDT bits are the queue's; NSID is the caller's.
	Submit(cmd *Command, data Data, done CommandDone, arg any) error

	// BlockSize returns the size in bytes of one block as transferred.
	BlockSize() int
	// Blocks returns the size of the namespace in blocks.
	Blocks() uint64
	// Room returns how many commands can be submitted now.
	Room() int
}

// IO describes one I/O in full. Op is OpRead, OpWrite, OpCompare,
// OpWriteZeroes or OpVerify.
type IO struct {
	Op     Opcode
	FUA    bool   // force unit access
	LR     bool   // limited retry
	DEAC   bool   // write zeroes: deallocate
	DSM    uint8  // dataset management hints, CDW13 bits 7:0
	LBA    uint64 // starting LBA
	Blocks uint64
	Buf    []byte   // or
	Vec    [][]byte // the data; neither for WriteZeroes and Verify
	Done   Done
	Arg    any
}

// NamespaceQueue is a Queue on one namespace of one controller: a light handle
// on a QueuePair. Several, for several namespaces, may share a queue pair.
//
// As [Queue] says, methods that submit must be called on the core of the queue
// pair's poller: from a callback, or from a function that [poller.Poller.Call]
// or [poller.Poller.Post] runs there.
type NamespaceQueue struct {
	qp *QueuePair
	ns *Namespace
}

var _ Queue = (*NamespaceQueue)(nil)

// QueuePair returns the queue pair that carries the commands.
func (q *NamespaceQueue) QueuePair() *QueuePair { return q.qp }

// Namespace returns the namespace.
func (q *NamespaceQueue) Namespace() *Namespace { return q.ns }

// BlockSize implements [Queue]. Any goroutine.
func (q *NamespaceQueue) BlockSize() int { return int(q.ns.geo.Load().xfer) }

// Blocks implements [Queue]. Any goroutine.
func (q *NamespaceQueue) Blocks() uint64 { return q.ns.geo.Load().blocks }

// Room implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Room() int { return q.qp.Room() }

// Read implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Read(buf []byte, lba uint64, blocks uint32, done Done, arg any) error {
	return q.rw(OpRead, buf, lba, blocks, done, arg)
}

// Write implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Write(buf []byte, lba uint64, blocks uint32, done Done, arg any) error {
	return q.rw(OpWrite, buf, lba, blocks, done, arg)
}

// offCore is what a submission from elsewhere is told, where that is checked.
const offCore = "nvme: a method of a Queue was"

// rw is the fast path: one contiguous buffer, one command, no options, a live
// queue with room. All else goes the general way. It calls nothing but the
// transport, which saves it from keeping its arguments.
func (q *NamespaceQueue) rw(o Opcode, buf []byte, lba uint64, blocks uint32, done Done, arg any) error {
	g := q.ns.geo.Load()
	qp := q.qp
	qp.p.CheckCore(offCore)
	size := uint64(blocks) * uint64(g.xfer)
	n := len(qp.free)
	if blocks-1 >= g.oneCommand || lba >= g.blocks || uint64(blocks) > g.blocks-lba || uint64(len(buf)) != size ||
		g.boundary != 0 && g.crosses(lba, blocks) || qp.state != queueLive || uint(n) <= qp.reserve {
		return q.Issue(&IO{Op: o, LBA: lba, Blocks: uint64(blocks), Buf: buf, Done: done, Arg: arg})
	}
	r := &qp.reqs[qp.free[n-1]]
	qp.free = qp.free[:n-1]
	r.done, r.arg, r.ns, r.Data.Buf = done, arg, q.ns, buf
	r.Data.Len, r.Data.Dir = uint32(size), o.Direction()
	c := r.command(o, g.nsid)
	c.CDW10, c.CDW11, c.CDW12 = uint32(lba), uint32(lba>>32), blocks-1
	r.flags = reqReplay
	r.seq = qp.seq
	qp.seq++
	r.submitted = qp.p.Now()
	qp.post(r)
	return nil
}

// ReadV implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) ReadV(bufs [][]byte, lba uint64, blocks uint32, done Done, arg any) error {
	return q.Issue(&IO{Op: OpRead, LBA: lba, Blocks: uint64(blocks), Vec: bufs, Done: done, Arg: arg})
}

// WriteV implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) WriteV(bufs [][]byte, lba uint64, blocks uint32, done Done, arg any) error {
	return q.Issue(&IO{Op: OpWrite, LBA: lba, Blocks: uint64(blocks), Vec: bufs, Done: done, Arg: arg})
}

// Compare implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Compare(buf []byte, lba uint64, blocks uint32, done Done, arg any) error {
	return q.Issue(&IO{Op: OpCompare, LBA: lba, Blocks: uint64(blocks), Buf: buf, Done: done, Arg: arg})
}

// WriteZeroes implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) WriteZeroes(lba, blocks uint64, done Done, arg any) error {
	return q.Issue(&IO{Op: OpWriteZeroes, LBA: lba, Blocks: blocks, Done: done, Arg: arg})
}

// Verify implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Verify(lba, blocks uint64, done Done, arg any) error {
	return q.Issue(&IO{Op: OpVerify, LBA: lba, Blocks: blocks, Done: done, Arg: arg})
}

// Flush implements [Queue]. On the poller's core only.
func (q *NamespaceQueue) Flush(done Done, arg any) error {
	if q.ns.gone.Load() {
		return ErrNoNamespace
	}
	qp := q.qp
	r, err := qp.forUser()
	if err != nil {
		return err
	}
	r.command(OpFlush, q.ns.id)
	r.done, r.arg, r.ns = done, arg, q.ns
	r.flags = reqReplay
	qp.submit(r)
	return nil
}

// Submit implements [Queue]. On the poller's core only. data.Dir must agree with
// the opcode for the transports that learn the direction from it.
func (q *NamespaceQueue) Submit(cmd *Command, data Data, done CommandDone, arg any) error {
	return q.qp.submitRaw(cmd, data, q.ns, done, arg)
}

func (q *QueuePair) submitRaw(cmd *Command, data Data, ns *Namespace, done CommandDone, arg any) error {
	if ns != nil && ns.gone.Load() {
		return ErrNoNamespace
	}
	if data.Len > 0 && data.room() < uint64(data.Len) {
		return ErrLength
	}
	r, err := q.forUser()
	if err != nil {
		return err
	}
	cid := r.Cmd.CID
	r.Cmd = *cmd
	r.Cmd.CID = cid
	r.Cmd.Flags &^= FlagPSDTMask
	r.Data, r.cdone, r.arg, r.ns = data, done, arg, ns
	q.submit(r)
	return nil
}

// forUser takes a tracker for one command of a user.
func (q *QueuePair) forUser() (*Request, error) {
	q.p.CheckCore(offCore)
	if err := q.accepts(); err != nil {
		return nil, err
	}
	if r := q.take(); r != nil {
		return r, nil
	}
	return nil, ErrQueueFull
}

// room returns how many bytes d's memory holds.
func (d *Data) room() uint64 {
	if d.Vec == nil {
		return uint64(len(d.Buf))
	}
	var n uint64
	for _, b := range d.Vec {
		n += uint64(len(b))
	}
	return n - min(n, uint64(max(d.Off, 0)))
}
