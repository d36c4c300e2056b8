package backend

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/poller"
)

// DefaultFileWorkers is FileConfig.Workers if that is 0.
const DefaultFileWorkers = 4

// maxFileWorkers bounds FileConfig.Workers.
const maxFileWorkers = 1024

// FileConfig describes a File.
type FileConfig struct {
	// Path is the file, which is made if it does not exist.
	Path string

	// Size is the capacity in bytes. A smaller file is made larger; 0 takes
	// the size of the file.
	Size int64

	// Workers is the number of goroutines that read and write, and so of
	// operations under way at the same time.
	Workers int

	// ReadOnly opens the file for reading only; writes fail with
	// nvme.StatusNamespaceWriteProtected.
	ReadOnly bool
}

// File is a Backend that keeps the data in a file, through the page cache of
// the kernel, which is its volatile write cache. System calls block, so
// goroutines of its own make them. Deallocate changes nothing.
type File struct {
	f        *os.File
	fd       int
	readOnly bool
	size     atomic.Int64

	exclusive sync.RWMutex // a CompareAndWrite holds it alone

	mu      sync.Mutex
	work    sync.Cond // of mu: todo has something, or closed
	todo    queue
	closed  bool
	workers sync.WaitGroup
}

// NewFile opens a file as a Backend.
func NewFile(cfg FileConfig) (*File, error) {
	if cfg.Workers == 0 {
		cfg.Workers = DefaultFileWorkers
	}
	if cfg.Size < 0 || cfg.Workers < 0 || cfg.Workers > maxFileWorkers {
		return nil, fmt.Errorf("%w: file of %d bytes with %d workers", ErrConfig, cfg.Size, cfg.Workers)
	}
	flags := os.O_RDWR | os.O_CREATE
	if cfg.ReadOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(cfg.Path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	b := &File{f: f, fd: int(f.Fd()), readOnly: cfg.ReadOnly}
	b.work.L = &b.mu
	if err := b.fit(cfg.Size); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("backend: %w", err)
	}
	for range cfg.Workers {
		b.workers.Go(b.serve)
	}
	return b, nil
}

// fit gives the file its size.
func (b *File) fit(size int64) error {
	st, err := b.f.Stat()
	if err != nil {
		return err
	}
	if size == 0 {
		size = st.Size()
	}
	if st.Size() < size {
		if err := b.f.Truncate(size); err != nil {
			return err
		}
	}
	b.size.Store(size)
	return nil
}

// Info implements Backend.
func (b *File) Info() Info { return Info{Size: b.size.Load(), VolatileCache: true} }

// Resize implements Resizer. It changes the size of the file.
func (b *File) Resize(size int64) error {
	if size < 0 {
		return errSize(size)
	}
	// Smaller before the file is, larger after it.
	if size < b.size.Load() {
		b.size.Store(size)
	}
	if err := b.f.Truncate(size); err != nil {
		return fmt.Errorf("%w: %w", ErrResize, err)
	}
	b.size.Store(size)
	return nil
}

// Open implements Backend.
func (b *File) Open(p *poller.Poller) (Channel, error) { return newFileChannel(b, p), nil }

// Close implements Backend. It waits for its goroutines.
func (b *File) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.work.Broadcast()
	b.workers.Wait()
	return b.f.Close()
}

// serve is a goroutine that executes operations.
func (b *File) serve() {
	for {
		op := b.wait()
		if op == nil {
			return
		}
		op.Status = b.execute(op)
		op.home.executed(op)
	}
}

// wait returns the next operation, or nil at the end.
func (b *File) wait() *Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.todo.head == nil {
		if b.closed {
			return nil
		}
		b.work.Wait()
	}
	return b.todo.pop()
}

func (b *File) enqueue(op *Op) {
	b.mu.Lock()
	b.todo.push(op)
	b.mu.Unlock()
	b.work.Signal()
}

func (b *File) cancel(op *Op) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.todo.remove(op)
}
