package backend

import (
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/poller"
)

// MemoryConfig describes a Memory.
type MemoryConfig struct {
	// Size is the capacity in bytes.
	Size int64

	// MaxSize is how large Resize may make it; address space is reserved for
	// it. 0 is Size.
	MaxSize int64

	// Heap takes memory from Go's heap, where the race detector sees accesses
	// to it. Otherwise it is mapped, and takes up real memory only where
	// something was written.
	Heap bool

	// HugePages asks for huge pages: faster under random access, but real
	// memory is taken up in units of 2 MiB. For mapped memory only.
	HugePages bool

	// Populate takes up the real memory of Size at once, so that no write pays
	// for it later. For mapped memory only.
	Populate bool
}

// Memory is a Backend that keeps the data in memory. Blocks that were never
// written, and those deallocated, read as zeros.
//
// Operations of one poller are atomic, and writes also among those of several.
// A range that one poller reads while another one writes to it may read as a
// mix of old and new.
type Memory struct {
	mem    []byte
	size   atomic.Int64
	mapped bool
	opened atomic.Int64 // channels
	shared atomic.Bool  // there has been more than one channel at a time
	locks  locks
}

// NewMemory returns a Memory.
func NewMemory(cfg MemoryConfig) (*Memory, error) {
	if cfg.MaxSize == 0 {
		cfg.MaxSize = cfg.Size
	}
	if cfg.Size < 0 || cfg.MaxSize < cfg.Size || cfg.MaxSize > math.MaxInt {
		return nil, fmt.Errorf("%w: memory of %d bytes, at most %d", ErrConfig, cfg.Size, cfg.MaxSize)
	}
	m := &Memory{}
	m.size.Store(cfg.Size)
	if cfg.Heap || cfg.MaxSize == 0 {
		m.mem = make([]byte, cfg.MaxSize)
		return m, nil
	}
	if err := m.mapMemory(cfg); err != nil {
		return nil, fmt.Errorf("backend: memory of %d bytes: %w", cfg.MaxSize, err)
	}
	return m, nil
}

// NewHeap returns a Memory of size bytes from Go's heap.
func NewHeap(size int) *Memory {
	m := &Memory{mem: make([]byte, max(size, 0))}
	m.size.Store(int64(len(m.mem)))
	return m
}

func (m *Memory) mapMemory(cfg MemoryConfig) error {
	mem, err := sys.Mmap(-1, 0, int(cfg.MaxSize), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	m.mem, m.mapped = mem, true
	if cfg.HugePages {
		// A kernel without them is slower, no more.
		_ = sys.Madvise(mem, unix.MADV_HUGEPAGE)
	}
	if cfg.Populate {
		populate(mem[:cfg.Size])
	}
	return nil
}

// populate writes to every page: by one call, where the kernel has it.
func populate(b []byte) {
	if len(b) == 0 || sys.Madvise(b, unix.MADV_POPULATE_WRITE) == nil {
		return
	}
	for i := 0; i < len(b); i += page {
		b[i] = 0
	}
}

// page is the size of a page of memory.
const page = 4096

// Info implements Backend.
func (m *Memory) Info() Info {
	return Info{Size: m.size.Load(), Inline: true, Views: true, Zeroes: true}
}

// Resize implements Resizer, up to MemoryConfig.MaxSize.
func (m *Memory) Resize(size int64) error {
	if size < 0 || size > int64(len(m.mem)) {
		return fmt.Errorf("%w: to %d bytes, 0 to %d are possible", ErrResize, size, len(m.mem))
	}
	// Operations that have passed their check may still write beyond; the
	// range is zeroed when it comes into use as well.
	if old := m.size.Swap(size); old > size {
		m.zero(size, old-size)
	} else {
		m.zero(old, size-old)
	}
	return nil
}

// Open implements Backend.
func (m *Memory) Open(*poller.Poller) (Channel, error) {
	if m.opened.Add(1) > 1 {
		m.shared.Store(true)
	}
	return &memoryChannel{inline{}, m}, nil
}

// Close implements Backend.
func (m *Memory) Close() error {
	if !m.mapped {
		return nil
	}
	mem := m.mem
	m.size.Store(0)
	m.mem, m.mapped = nil, false // for a Resize that comes too late
	return sys.Munmap(mem)
}

// zeroByPages is the length in bytes from which giving pages back is cheaper
// than to clear them.
const zeroByPages = 1 << 20

// zero makes a range read as zeros, and gives back the pages of a large one.
func (m *Memory) zero(off, length int64) {
	b := m.mem[off : off+length]
	if !m.mapped || length < zeroByPages {
		clear(b)
		return
	}
	head := -off & (page - 1)
	tail := (off + length) & (page - 1)
	clear(b[:head])
	clear(b[length-tail:])
	if whole := b[head : length-tail]; sys.Madvise(whole, unix.MADV_DONTNEED) != nil {
		clear(whole)
	}
}
