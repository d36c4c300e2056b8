package pcietest

import (
	"errors"
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
)

// Backend stores the data of a namespace; an *os.File is almost one. It is
// called from the goroutine that runs the controller, and from several if it is
// shared. An error that is an nvme.Status is what the command fails with; any
// other is an internal error.
//
// A Backend may also have a method Zero(off, n int64) error, to make a range
// read as zeros, and Sync() error, for Flush.
type Backend interface {
	io.ReaderAt
	io.WriterAt

	// Size is the capacity in bytes. It does not change.
	Size() int64
}

type zeroer interface{ Zero(off, n int64) error }

type syncer interface{ Sync() error }

// Memory is a Backend that keeps the data in memory, which is taken up where
// something was written.
type Memory struct {
	b      []byte
	closed atomic.Bool
}

// NewMemory returns a Memory of size bytes that reads as zeros.
func NewMemory(size int64) (*Memory, error) {
	if size <= 0 || int64(int(size)) != size {
		return nil, bad("memory of %d bytes", size)
	}
	b, err := sys.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &Memory{b: b}, nil
}

// Size implements Backend.
func (m *Memory) Size() int64 { return int64(len(m.b)) }

// ReadAt implements Backend.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.b)) || int64(len(p)) > int64(len(m.b))-off {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, m.b[off:]), nil
}

// WriteAt implements Backend.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.b)) || int64(len(p)) > int64(len(m.b))-off {
		return 0, io.ErrShortWrite
	}
	return copy(m.b[off:], p), nil
}

// Zero makes a range read as zeros.
func (m *Memory) Zero(off, n int64) error {
	if off < 0 || n < 0 || off > int64(len(m.b)) || n > int64(len(m.b))-off {
		return io.ErrUnexpectedEOF
	}
	clear(m.b[off : off+n])
	return nil
}

// Close gives the memory back. Nothing may use it any more.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	return sys.Munmap(m.b)
}

// Null is a Backend of so many bytes that forgets what is written and reads as
// zeros.
type Null int64

// Size implements Backend.
func (n Null) Size() int64 { return int64(n) }

// ReadAt implements Backend.
func (n Null) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// WriteAt implements Backend.
func (n Null) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Zero does nothing.
func (n Null) Zero(int64, int64) error { return nil }

var zeroPage [64 << 10]byte

// zero makes a range of a backend read as zeros.
func zero(b Backend, off, n int64) error {
	if z, ok := b.(zeroer); ok {
		return z.Zero(off, n)
	}
	for n > 0 {
		k, err := b.WriteAt(zeroPage[:min(n, int64(len(zeroPage)))], off)
		if err != nil {
			return err
		}
		if k == 0 {
			return io.ErrShortWrite
		}
		off, n = off+int64(k), n-int64(k)
	}
	return nil
}

// full turns a read that was complete into one without an error.
func full(n, want int, err error) error {
	if n == want && (err == nil || errors.Is(err, io.EOF)) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
