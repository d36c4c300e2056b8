package pcie

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

// dmaSpace is the address space that a device does its DMA in.
type dmaSpace interface {
	ranges() []Range
	maxMappings() int // 0: no limit known
	mapDMA(b []byte, iova uint64) error
	unmapDMA(b []byte, iova uint64) error
	// close gives up one use of it, after the device has been closed.
	close() error
}

// A group belongs to one container, or address space, however many of its
// functions are open. The table has those of this process.
var spaces struct {
	sync.Mutex
	open map[spaceKey]*sharedSpace
}

// spaceKey names the space of a group. The kernel keeps tests apart.
type spaceKey struct {
	kernel vfioKernel
	group  int
	cdev   bool
}

// sharedSpace is a container with its group, or an iommufd with an address space.
type sharedSpace struct {
	kernel    vfioKernel
	key       spaceKey
	devices   map[string]bool // addresses of those open, under the table's lock
	container int             // or the iommufd
	group     int             // -1 with iommufd
	ioas      uint32
	kind      int // of the container's IOMMU; 0 with iommufd
	allowed   []Range
	limit     int
}

// share adds a device to the space of its group, which create makes if it is not
// there yet. A device is open once: the kernel would let it be opened again
// through the same group.
func share(key spaceKey, address string, create func() (*sharedSpace, error)) (*sharedSpace, error) {
	spaces.Lock()
	defer spaces.Unlock()
	if s := spaces.open[key]; s != nil {
		if s.devices[address] {
			return nil, &InUseError{address, []Use{{address, UseOpen, fmt.Sprintf("%d (this one)", os.Getpid())}}}
		}
		s.devices[address] = true
		return s, nil
	}
	s, err := create()
	if err != nil {
		return nil, err
	}
	s.key, s.devices = key, map[string]bool{address: true}
	if spaces.open == nil {
		spaces.open = map[spaceKey]*sharedSpace{}
	}
	spaces.open[key] = s
	return s, nil
}

// release takes a device out; the last one closes it.
func (s *sharedSpace) release(address string) error {
	spaces.Lock()
	defer spaces.Unlock()
	delete(s.devices, address)
	if len(s.devices) > 0 {
		return nil
	}
	delete(spaces.open, s.key)
	return s.closeFiles()
}

func (s *sharedSpace) closeFiles() error {
	var err error
	if s.group >= 0 {
		err = s.kernel.Close(s.group)
	}
	return errors.Join(err, s.kernel.Close(s.container))
}

// ioSpace is a device's part of a sharedSpace.
type ioSpace struct {
	*sharedSpace
	address string
	part    []Range
}

func (s *ioSpace) ranges() []Range  { return slices.Clone(s.part) }
func (s *ioSpace) maxMappings() int { return s.limit }
func (s *ioSpace) close() error     { return s.release(s.address) }

func (s *ioSpace) mapDMA(b []byte, iova uint64) error {
	if s.group >= 0 {
		return s.kernel.MapDMA(s.container, b, iova)
	}
	return s.kernel.MapIOAS(s.container, s.ioas, b, iova)
}

func (s *ioSpace) unmapDMA(b []byte, iova uint64) error {
	var n uint64
	var err error
	if s.group >= 0 {
		n, err = s.kernel.UnmapDMA(s.container, iova, uint64(len(b)))
	} else {
		n, err = s.kernel.UnmapIOAS(s.container, s.ioas, iova, uint64(len(b)))
	}
	if err == nil && n != uint64(len(b)) {
		err = fmt.Errorf("the kernel unmapped %d bytes of %d", n, len(b))
	}
	return err
}

// partOf returns part i of n of the ranges, so that the functions of a group,
// which share their addresses, never give out the same. Each part is whole
// 1 GiB pages, as far as ranges have those.
func partOf(all []Range, i, n int) []Range {
	if n <= 1 {
		return all
	}
	const gib = 1 << 30
	total := uint64(0)
	for _, r := range all {
		total += (r.Last - r.First) / gib // of 2^64 at most: no overflow
	}
	first, last := share64(total, i, n), share64(total, i+1, n)
	var part []Range
	at := uint64(0)
	for _, r := range all {
		size := (r.Last - r.First) / gib
		lo, hi := max(first, at), min(last, at+size)
		if lo < hi {
			part = append(part, Range{r.First + (lo-at)*gib, r.First + (hi-at)*gib - 1})
		}
		at += size
	}
	return part
}

// share64 is v*i/n.
func share64(v uint64, i, n int) uint64 {
	hi, lo := bits.Mul64(v, uint64(i))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return q
}

// turn returns which of the NVMe functions of its group a function is, and how
// many there are.
func (f *Function) turn() (i, n int) {
	n = 1
	for _, p := range f.Peers {
		if p.Class == ClassNVMe {
			n++
			if p.Address < f.Address {
				i++
			}
		}
	}
	return i, n
}

func toRanges(rs []vfio.Range) []Range {
	out := make([]Range, len(rs))
	for i, r := range rs {
		out[i] = Range{r.First, r.Last}
	}
	return out
}

// mapError makes an error of the kernel's say what to do about it. held is how
// many bytes are mapped already.
func mapError(err error, n, held uint64) error {
	switch {
	case errors.Is(err, syscall.ENOMEM):
		limit, lerr := sys.MemlockLimit()
		if lerr == nil && limit != math.MaxUint64 {
			return &MemlockError{Need: held + n, Have: limit, Err: err}
		}
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("too many mappings (dma_entry_limit of module vfio_iommu_type1): %w", err)
	}
	return err
}
