package nvme

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

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

// own implements waiter.
func (s *syncOp) own() bool { return false }

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

// cancel ends an operation of the blocking API. On the poller's core.
func (q *QueuePair) cancel(s *syncOp) {
	if q.withdraw(s) {
		s.end(StatusCommandAbortedByHost, nil)
		return
	}
	q.Cancel(s)
}

// Cancel ends the commands and transfers that were submitted with arg, which has
// to be comparable: what is held fails at once, what the controller has is
// aborted, if it takes Abort. All of them complete as ever, and perhaps with
// success. On the core.
func (q *QueuePair) Cancel(arg any) {
	q.cancelStalled(arg)
	var held []uint16
	for i := range q.reqs {
		r := &q.reqs[i]
		o, piece := r.arg.(*op)
		if r.arg != arg && !(piece && o.arg == arg) {
			continue
		}
		switch r.state {
		case reqHeld:
			held = append(held, r.index)
		case reqPosted:
			r.flags &^= reqReplay // should it be lost
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
func (q *QueuePair) cancelStalled(arg any) {
	for o := q.stalled.head; o != nil; o = o.next {
		if o.arg == arg && o.pending == 0 {
			o.fail(StatusCommandAbortedByHost)
			q.stalled.remove(o)
			q.endOp(o)
			return
		}
	}
}
