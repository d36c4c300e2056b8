package pcie

import (
	"iter"
	"maps"
	"sync/atomic"
	"unsafe"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// command copies an entry.
func (e *sqe) command() nvme.Command {
	var c nvme.Command
	*(*[8]uint64)(unsafe.Pointer(&c)) = e.w
	return c
}

func mmioLoad(b []byte) uint32     { return atomic.LoadUint32(&halfWords(b[:4])[0]) }
func mmioStore(b []byte, v uint32) { atomic.StoreUint32(&halfWords(b[:4])[0], v) }

func mapKeys[V any](m map[uint16]V) iter.Seq[uint16] { return maps.Keys(m) }

func signal(fd int) { sys.EventSignal(fd) }
