package nvme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// The blocking calls may be made from any goroutine but a poller's. Each costs
// one hop to the controller's own poller (Config.Poller) and one back, some
// microseconds to some tens of them; they suit control planes, tools and
// code that wants io.ReaderAt. Buffers may be any memory. There is no
// read-modify-write: offsets and lengths must be multiples of BlockSize.

var (
	_ io.ReaderAt = (*Namespace)(nil)
	_ io.WriterAt = (*Namespace)(nil)
)

// ReadAt implements io.ReaderAt. Offsets and lengths must be multiples of
// BlockSize (*AlignmentError); a read that reaches the end returns what there
// is and io.EOF.
func (ns *Namespace) ReadAt(p []byte, off int64) (int, error) {
	return ns.ReadAtContext(context.Background(), p, off)
}

// WriteAt implements io.WriterAt. A write beyond the end writes nothing and
// returns ErrOutOfRange. Completed writes are durable after Flush.
func (ns *Namespace) WriteAt(p []byte, off int64) (int, error) {
	return ns.WriteAtContext(context.Background(), p, off)
}

// ReadAtContext is ReadAt with a context. When ctx ends first, the command is
// aborted and the call returns as soon as the controller has let go of p:
// after its answer, or at worst after Config.IOTimeout and a reset.
func (ns *Namespace) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	g, err := ns.usable()
	if err != nil {
		return 0, err
	}
	if err := g.align(p, off); err != nil {
		return 0, err
	}
	size := g.size()
	var eof error
	if off >= size {
		return 0, io.EOF
	}
	if int64(len(p)) > size-off {
		p, eof = p[:size-off], io.EOF
	}
	if len(p) == 0 {
		return 0, eof
	}
	if err := ns.transfer(ctx, g, OpRead, p, off); err != nil {
		return 0, err
	}
	return len(p), eof
}

// WriteAtContext is WriteAt with a context; see ReadAtContext. If it fails,
// any part of the range may have been written.
func (ns *Namespace) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ns.outbound(ctx, OpWrite, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CompareAt compares p with the media at off; a difference returns an error
// that is StatusCompareFailure.
func (ns *Namespace) CompareAt(ctx context.Context, p []byte, off int64) error {
	return ns.outbound(ctx, OpCompare, p, off)
}

func (ns *Namespace) outbound(ctx context.Context, op Opcode, p []byte, off int64) error {
	g, err := ns.usable()
	if err != nil {
		return err
	}
	if err := g.align(p, off); err != nil {
		return err
	}
	if size := g.size(); off > size || int64(len(p)) > size-off {
		return fmt.Errorf("%w: offset %d, %d bytes, namespace of %d", ErrOutOfRange, off, len(p), size)
	}
	if len(p) == 0 {
		return nil
	}
	return ns.transfer(ctx, g, op, p, off)
}

func (g *geometry) align(p []byte, off int64) error {
	if off < 0 {
		return fmt.Errorf("%w: negative offset %d", ErrOutOfRange, off)
	}
	if x := int64(g.xfer); off%x != 0 || int64(len(p))%x != 0 {
		return &AlignmentError{Offset: off, Length: len(p), BlockSize: int(g.xfer)}
	}
	return nil
}

func (ns *Namespace) transfer(ctx context.Context, g *geometry, op Opcode, p []byte, off int64) error {
	x := uint64(g.xfer)
	s := getSync()
	s.io = IO{Op: op, LBA: uint64(off) / x, Blocks: uint64(len(p)) / x, Buf: p, Done: syncDone, Arg: s}
	return ns.do(ctx, s)
}

// Flush makes completed writes of the namespace durable.
func (ns *Namespace) Flush(ctx context.Context) error {
	s := getSync()
	s.io = IO{Op: OpFlush}
	return ns.do(ctx, s)
}

// WriteZeroes sets n bytes at off to zero.
func (ns *Namespace) WriteZeroes(ctx context.Context, off, n int64) error {
	return ns.rangeOp(ctx, OpWriteZeroes, off, n)
}

// Verify has the controller check n bytes at off.
func (ns *Namespace) Verify(ctx context.Context, off, n int64) error {
	return ns.rangeOp(ctx, OpVerify, off, n)
}

// Deallocate tells the controller that n bytes at off are unused.
func (ns *Namespace) Deallocate(ctx context.Context, off, n int64) error {
	return ns.rangeOp(ctx, OpDatasetManagement, off, n)
}

func (ns *Namespace) rangeOp(ctx context.Context, op Opcode, off, n int64) error {
	g, err := ns.usable()
	if err != nil {
		return err
	}
	x, size := int64(g.xfer), g.size()
	switch {
	case off < 0 || n < 0 || off > size || n > size-off:
		return fmt.Errorf("%w: offset %d, %d bytes, namespace of %d", ErrOutOfRange, off, n, size)
	case off%x != 0 || n%x != 0:
		return &AlignmentError{Offset: off, Length: int(n), BlockSize: int(x)}
	case n == 0:
		return nil
	}
	s := getSync()
	s.io = IO{Op: op, LBA: uint64(off / x), Blocks: uint64(n / x), Done: syncDone, Arg: s}
	if op == OpDatasetManagement {
		for lba, left := s.io.LBA, s.io.Blocks; left > 0; {
			k := min(left, 0xffffffff)
			s.ranges = append(s.ranges, DSMRange{LBA: lba, Length: uint32(k)})
			lba, left = lba+k, left-k
		}
	}
	return ns.do(ctx, s)
}

// blockingQueue is the I/O queue pair behind the blocking calls, opened on
// first use.
type blockingQueue struct {
	turn chan struct{} // holds one: the right to open qp
	qp   atomic.Pointer[QueuePair]
}

func (c *Controller) blockingQueue(ctx context.Context) (*QueuePair, error) {
	b := &c.blocking
	if qp := b.qp.Load(); qp != nil {
		return qp, nil
	}
	ctx, cancel := c.fast.context(ctx)
	defer cancel()
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctxError(ctx)
	}
	defer func() { <-b.turn }()
	if qp := b.qp.Load(); qp != nil {
		return qp, nil
	}
	qp, err := c.OpenQueue(ctx, c.p, QueueConfig{})
	if err != nil {
		return nil, err
	}
	b.qp.Store(qp)
	if !c.has(qp) {
		b.qp.CompareAndSwap(qp, nil) // lost again already
	}
	return qp, nil
}

// syncOp carries one blocking call to the poller and back.
type syncOp struct {
	io     IO
	ranges []DSMRange
	q      NamespaceQueue
	status Status
	err    error
	state  atomic.Uint32 // one of the values below
	wake   chan struct{}
	start  func() // s.enter, bound once
}

const (
	syncRunning uint32 = iota
	syncParked         // the caller sleeps on wake
	syncEnded
)

var syncPool = sync.Pool{New: func() any {
	s := &syncOp{wake: make(chan struct{}, 1)}
	s.start = s.enter
	return s
}}

func getSync() *syncOp { return syncPool.Get().(*syncOp) }

func (ns *Namespace) do(ctx context.Context, s *syncOp) error {
	defer s.recycle()
	if _, err := ns.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return ctxError(ctx)
	}
	if ns.c.onCore() {
		return ErrOnCore
	}
	qp, err := ns.c.blockingQueue(ctx)
	if err != nil {
		return err
	}
	s.q = NamespaceQueue{qp: qp, ns: ns}
	s.state.Store(syncRunning)
	s.err, s.status = nil, 0
	if err := post(ctx, qp.p, s.start); err != nil {
		return err
	}
	cancelled := s.wait(ctx)
	if s.err != nil {
		return s.err
	}
	if cancelled && (s.status.Code() == StatusAbortRequested || s.status.Code() == StatusCommandAbortedByHost) {
		return ctxError(ctx)
	}
	err = s.status.Err()
	if s.status.IsPath() && ns.c.State() == StateDead {
		err = fmt.Errorf("%w: %w", ns.c.dead(), err)
	}
	return err
}

func (s *syncOp) recycle() {
	s.io, s.ranges, s.q = IO{}, s.ranges[:0], NamespaceQueue{}
	syncPool.Put(s)
}

func (s *syncOp) enter() { s.q.qp.enter(s) }

// submit implements waiter.
func (s *syncOp) submit() (full bool) {
	var err error
	switch s.io.Op {
	case OpFlush:
		err = s.q.Flush(syncDone, s)
	case OpDatasetManagement:
		err = s.q.Deallocate(s.ranges, syncDone, s)
	default:
		err = s.q.Issue(&s.io)
	}
	if errors.Is(err, ErrQueueFull) {
		return true
	}
	if err != nil {
		s.end(0, err)
	}
	return false
}

func syncDone(arg any, st Status) { arg.(*syncOp).end(st, nil) }

// end gives s back to its caller.
func (s *syncOp) end(st Status, err error) {
	s.status, s.err = st, err
	if s.state.Swap(syncEnded) == syncParked {
		s.wake <- struct{}{}
	}
}

// spins is how often a caller looks before it sleeps. A goroutine that a
// poller wakes may have to wait to be stolen from the poller's run queue; a
// short operation is cheaper to wait for awake.
const spins = 64

// wait returns when the operation has ended. It reports whether ctx ended
// first.
func (s *syncOp) wait(ctx context.Context) (cancelled bool) {
	for range spins {
		if s.state.Load() == syncEnded {
			return false
		}
		runtime.Gosched()
	}
	if !s.state.CompareAndSwap(syncRunning, syncParked) {
		return false
	}
	select {
	case <-s.wake:
		return false
	case <-ctx.Done():
	}
	qp := s.q.qp
	postLater(qp.p, func() { qp.cancel(s) })
	<-s.wake
	return true
}

// cancel ends an operation of the blocking API: what is held or waits fails at
// once, what the controller has is aborted. On the poller's core.
func (q *QueuePair) cancel(s *syncOp) {
	if q.withdraw(s) {
		s.end(StatusCommandAbortedByHost, nil)
		return
	}
	q.cancelStalled(s)
	var held []uint16
	for i := range q.reqs {
		r := &q.reqs[i]
		o, piece := r.arg.(*op)
		if r.arg != any(s) && !(piece && o.arg == any(s)) {
			continue
		}
		switch r.state {
		case reqHeld:
			held = append(held, r.index)
		case reqPosted:
			q.cold.ctrl.abort(q, r.Cmd.CID, true)
		}
		if piece {
			o.fail(StatusCommandAbortedByHost)
		}
	}
	q.unhold(held)
	q.abort(held, StatusCommandAbortedByHost)
}

// cancelStalled ends a transfer of which no piece is out.
func (q *QueuePair) cancelStalled(s *syncOp) {
	for o := q.stalled.head; o != nil; o = o.next {
		if o.arg == any(s) && o.pending == 0 {
			o.fail(StatusCommandAbortedByHost)
			q.stalled.remove(o)
			q.endOp(o)
			return
		}
	}
}
