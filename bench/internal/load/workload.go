package load

import (
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
)

// Workload says what the jobs of a queue do.
type Workload struct {
	Bytes       int    // per I/O
	Random      bool   // or sequential
	ReadPercent int    // of all I/Os, 0 to 100
	Jobs        int    // per queue: I/Os outstanding
	Range       uint64 // bytes of the namespace to use, from its start; 0: all
	Seed        uint64 // of the random numbers: positions, mix and contents

	// Alloc returns memory for the buffers of one queue, which it is asked for
	// once each; nil: memory of Go's heap, in huge pages if there are any.
	Alloc func(n int) ([]byte, error)
}

// Errors of New and Run.Add.
var (
	// ErrWorkload means that a Workload makes no sense.
	ErrWorkload = errors.New("bad workload")
	// ErrBlockSize means that I/Os are not made of whole blocks.
	ErrBlockSize = errors.New("I/O size is not a multiple of the block size")
	// ErrRange means that the namespace is smaller than what is to be used.
	ErrRange = errors.New("namespace too small")
	// ErrBuffers means that there was no memory for the buffers.
	ErrBuffers = errors.New("no buffers")
)

// maxBufferBytes bounds the memory of the buffers of one queue.
const maxBufferBytes = 4 << 30

func (wl *Workload) check() error {
	switch {
	case wl.Jobs < 1:
		return fmt.Errorf("%w: depth %d, 1 is the least", ErrWorkload, wl.Jobs)
	case wl.Bytes < 1:
		return fmt.Errorf("%w: I/Os of %d bytes", ErrWorkload, wl.Bytes)
	case wl.ReadPercent < 0 || wl.ReadPercent > 100:
		return fmt.Errorf("%w: %d percent reads", ErrWorkload, wl.ReadPercent)
	case wl.Jobs > maxBufferBytes/wl.Bytes:
		return fmt.Errorf("%w: %d I/Os of %d bytes take more than %d GiB of buffers", ErrWorkload, wl.Jobs, wl.Bytes, maxBufferBytes>>30)
	}
	return nil
}

// fit works out how the workload lies on a namespace: blocks per I/O, and how
// many I/Os have room side by side.
func (wl *Workload) fit(q nvme.Queue) (blocks uint32, slots uint64, err error) {
	size := uint64(q.BlockSize())
	if uint64(wl.Bytes)%size != 0 {
		return 0, 0, fmt.Errorf("%w: %d bytes, blocks of %d", ErrBlockSize, wl.Bytes, size)
	}
	n := uint64(wl.Bytes) / size
	have := q.Blocks()
	if wl.Range > have*size {
		return 0, 0, fmt.Errorf("%w: it has %d bytes, not %d", ErrRange, have*size, wl.Range)
	}
	if wl.Range != 0 {
		have = wl.Range / size
	}
	if n > have {
		return 0, 0, fmt.Errorf("%w: it has %d bytes to use, not the %d of an I/O", ErrRange, have*size, wl.Bytes)
	}
	return uint32(n), have / n, nil
}
