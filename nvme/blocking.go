package nvme

import (
	"context"
	"fmt"
	"io"
)

// The blocking calls may be made from any goroutine but a poller's. Each costs
// one hop to the controller's own poller (Config.Poller) and one back, some
// microseconds to some tens of them; they suit control planes, tools and
// code that wants io.ReaderAt. Buffers may be any memory. There is no
// read-modify-write: offsets and lengths must be multiples of BlockSize.
//
// Their errors, but for io.EOF, are of type *OpError: they say what was
// attempted on which namespace, controller and queue, and wrap the cause, which
// errors.Is and errors.As find.

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
	n, err := ns.readAt(ctx, p, off)
	if err != nil && err != io.EOF {
		err = ns.ioError(OpRead, off, int64(len(p)), err)
	}
	return n, err
}

func (ns *Namespace) readAt(ctx context.Context, p []byte, off int64) (int, error) {
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
		return 0, ns.ioError(OpWrite, off, int64(len(p)), err)
	}
	return len(p), nil
}

// CompareAt compares p with the media at off; a difference returns an error
// that is StatusCompareFailure.
func (ns *Namespace) CompareAt(ctx context.Context, p []byte, off int64) error {
	return ns.ioError(OpCompare, off, int64(len(p)), ns.outbound(ctx, OpCompare, p, off))
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
	return ns.ioError(OpFlush, 0, 0, ns.do(ctx, s))
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
	return ns.ioError(op, off, n, ns.doRange(ctx, op, off, n))
}

func (ns *Namespace) doRange(ctx context.Context, op Opcode, off, n int64) error {
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
