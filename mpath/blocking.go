package mpath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// The blocking calls are those of a namespace: from any goroutine but a poller's,
// at the cost of one hop to a poller and one back, on a channel of their own.

var (
	_ io.ReaderAt = (*Head)(nil)
	_ io.WriterAt = (*Head)(nil)
)

// ReadAt implements io.ReaderAt. Offsets and lengths must be multiples of
// BlockSize (*nvme.AlignmentError); a read that reaches the end returns what
// there is and io.EOF.
func (h *Head) ReadAt(p []byte, off int64) (int, error) {
	return h.ReadAtContext(context.Background(), p, off)
}

// WriteAt implements io.WriterAt. A write beyond the end writes nothing and
// returns nvme.ErrOutOfRange. Completed writes are durable after Flush.
func (h *Head) WriteAt(p []byte, off int64) (int, error) {
	return h.WriteAtContext(context.Background(), p, off)
}

// ReadAtContext is ReadAt with a context. When ctx ends first, the command is
// aborted and the call returns as soon as no path touches p any more.
func (h *Head) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	width, size := h.geometry()
	if err := align(width, p, off); err != nil {
		return 0, err
	}
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
	if err := h.transfer(ctx, nvme.OpRead, width, p, off); err != nil {
		return 0, err
	}
	return len(p), eof
}

// WriteAtContext is WriteAt with a context; see ReadAtContext. If it fails, any
// part of the range may have been written, or may yet be until a lost path is
// quiet.
func (h *Head) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := h.outbound(ctx, nvme.OpWrite, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CompareAt compares p with the media at off; a difference returns an error that
// is nvme.StatusCompareFailure.
func (h *Head) CompareAt(ctx context.Context, p []byte, off int64) error {
	return h.outbound(ctx, nvme.OpCompare, p, off)
}

func (h *Head) geometry() (width, size int64) {
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	return int64(h.width), int64(h.blocks * uint64(h.width))
}

func align(width int64, p []byte, off int64) error {
	if off < 0 {
		return fmt.Errorf("%w: negative offset %d", nvme.ErrOutOfRange, off)
	}
	if off%width != 0 || int64(len(p))%width != 0 {
		return &nvme.AlignmentError{Offset: off, Length: len(p), BlockSize: int(width)}
	}
	return nil
}

func (h *Head) outbound(ctx context.Context, op nvme.Opcode, p []byte, off int64) error {
	width, size := h.geometry()
	if err := align(width, p, off); err != nil {
		return err
	}
	if off > size || int64(len(p)) > size-off {
		return fmt.Errorf("%w: offset %d, %d bytes, namespace of %d", nvme.ErrOutOfRange, off, len(p), size)
	}
	if len(p) == 0 {
		return nil
	}
	return h.transfer(ctx, op, width, p, off)
}

func (h *Head) transfer(ctx context.Context, op nvme.Opcode, width int64, p []byte, off int64) error {
	s := getSync()
	s.io = nvme.IO{Op: op, LBA: uint64(off / width), Blocks: uint64(int64(len(p)) / width), Buf: p}
	return h.do(ctx, s)
}

// Flush makes completed writes of the namespace durable.
func (h *Head) Flush(ctx context.Context) error {
	s := getSync()
	s.io = nvme.IO{Op: nvme.OpFlush}
	return h.do(ctx, s)
}

// WriteZeroes sets n bytes at off to zero.
func (h *Head) WriteZeroes(ctx context.Context, off, n int64) error {
	return h.span(ctx, nvme.OpWriteZeroes, off, n)
}

// Verify has a controller check n bytes at off.
func (h *Head) Verify(ctx context.Context, off, n int64) error {
	return h.span(ctx, nvme.OpVerify, off, n)
}

// Deallocate tells a controller that n bytes at off are unused.
func (h *Head) Deallocate(ctx context.Context, off, n int64) error {
	return h.span(ctx, nvme.OpDatasetManagement, off, n)
}

func (h *Head) span(ctx context.Context, op nvme.Opcode, off, n int64) error {
	width, size := h.geometry()
	switch {
	case off < 0 || n < 0 || off > size || n > size-off:
		return fmt.Errorf("%w: offset %d, %d bytes, namespace of %d", nvme.ErrOutOfRange, off, n, size)
	case off%width != 0 || n%width != 0:
		return &nvme.AlignmentError{Offset: off, Length: int(n), BlockSize: int(width)}
	case n == 0:
		return nil
	}
	s := getSync()
	s.io = nvme.IO{Op: op, LBA: uint64(off / width), Blocks: uint64(n / width)}
	if op == nvme.OpDatasetManagement {
		for lba, left := s.io.LBA, s.io.Blocks; left > 0; {
			k := min(left, 0xffffffff)
			s.ranges = append(s.ranges, nvme.DSMRange{LBA: lba, Length: uint32(k)})
			lba, left = lba+k, left-k
		}
	}
	return h.do(ctx, s)
}

// syncOp carries one blocking call to the poller and back.
type syncOp struct {
	c      *Channel
	io     nvme.IO
	ranges []nvme.DSMRange
	status nvme.Status
	err    error
	state  atomic.Uint32 // one of the values below
	wake   chan struct{}
	start  func() // s.enter, bound once
	quit   bool   // the caller has given up; on the core
	spent  bool   // and so it is not used again; the caller's
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

func (h *Head) do(ctx context.Context, s *syncOp) error {
	defer s.recycle()
	if ctx.Err() != nil {
		return ctxError(ctx)
	}
	c, err := h.blockingChannel(ctx)
	if err != nil {
		return err
	}
	if c.p.OnCore() {
		return nvme.ErrOnCore
	}
	s.c, s.err, s.status = c, nil, 0
	s.io.Done, s.io.Arg = syncDone, s
	s.state.Store(syncRunning)
	if err := post(ctx, c.p, s.start); err != nil {
		return err
	}
	cancelled := s.wait(ctx)
	switch {
	case errors.Is(s.err, ErrNoPath):
		return h.noPath(s.err)
	case s.err != nil:
		return s.err
	case cancelled && (s.status.Code() == nvme.StatusAbortRequested || s.status.Code() == nvme.StatusCommandAbortedByHost):
		return ctxError(ctx)
	case s.status.IsPath():
		return h.noPath(fmt.Errorf("%w: %w", ErrNoPath, s.status))
	}
	return s.status.Err()
}

// recycle keeps s for another call, unless the core may still look for it.
func (s *syncOp) recycle() {
	if !s.spent {
		s.c, s.io, s.ranges = nil, nvme.IO{}, s.ranges[:0]
		syncPool.Put(s)
	}
}

func ctxError(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", nvme.ErrTimeout, err)
	}
	return err
}

// post has fn run on p's core, and waits for room in its mailbox.
func post(ctx context.Context, p *poller.Poller, fn func()) error {
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		err := p.Post(fn)
		if !errors.Is(err, poller.ErrMailboxFull) {
			return err
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return ctxError(ctx)
		}
	}
}

// enter submits, or waits for room, on the core.
func (s *syncOp) enter() {
	c := s.c
	if s.quit {
		s.end(nvme.StatusCommandAbortedByHost, nil)
		return
	}
	var err error
	switch s.io.Op {
	case nvme.OpFlush:
		err = c.Flush(syncDone, s)
	case nvme.OpDatasetManagement:
		err = c.Deallocate(s.ranges, syncDone, s)
	default:
		err = c.Issue(&s.io)
	}
	switch {
	case err == nil:
	case errors.Is(err, nvme.ErrQueueFull):
		c.p.AfterFunc(0, s.start) // in the next pass
	default:
		s.end(0, err)
	}
}

func syncDone(arg any, st nvme.Status) { arg.(*syncOp).end(st, nil) }

// end gives s back to its caller.
func (s *syncOp) end(st nvme.Status, err error) {
	s.status, s.err = st, err
	if s.state.Swap(syncEnded) == syncParked {
		s.wake <- struct{}{}
	}
}

// spins is how often a caller looks before it sleeps; see package nvme.
const spins = 64

// wait returns when the operation has ended. It reports whether ctx ended first.
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
	s.spent = true
	postLater(s.c.p, func() {
		s.quit = true
		s.c.cancel(s)
	})
	<-s.wake
	return true
}
