package tcptest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
)

// maxNamespaceBytes bounds the memory of a namespace.
const maxNamespaceBytes = 1 << 30

// Namespace is a namespace in memory, for any number of controllers.
type Namespace struct {
	ids   nvme.NamespaceIdentity
	shift uint8
	adapt func(id *nvme.IdentifyNamespace)

	mu  sync.Mutex
	mem []byte
}

var namespaces atomic.Uint64 // for unique identifiers

// NewNamespace makes a namespace of blocks blocks of blockSize bytes, a power
// of two from 512 on, filled with zeroes. It has a NGUID of its own. Sizes that
// are not possible, or above 1 GiB in all, panic.
func NewNamespace(blocks uint64, blockSize uint32) *Namespace {
	if blockSize < 512 || blockSize&(blockSize-1) != 0 || blocks == 0 || blocks > maxNamespaceBytes/uint64(blockSize) {
		panic(fmt.Sprintf("tcptest: namespace of %d blocks of %d bytes", blocks, blockSize))
	}
	ns := &Namespace{shift: uint8(bits.TrailingZeros32(blockSize)), mem: make([]byte, blocks*uint64(blockSize))}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("tcptest"), namespaces.Add(1)))
	copy(ns.ids.NGUID[:], sum[:])
	return ns
}

// SetIDs replaces the unique identifiers. Not while the namespace is in use.
func (ns *Namespace) SetIDs(id nvme.NamespaceIdentity) { ns.ids = id }

// Adapt lets f change the Identify Namespace data that hosts get. Not while
// the namespace is in use.
func (ns *Namespace) Adapt(f func(id *nvme.IdentifyNamespace)) { ns.adapt = f }

// ReadAt copies from the media; off and len(p) are in bytes. Reading beyond the
// end panics.
func (ns *Namespace) ReadAt(p []byte, off int64) (int, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return copy(p, ns.mem[off:off+int64(len(p))]), nil
}

// WriteAt copies to the media; see ReadAt.
func (ns *Namespace) WriteAt(p []byte, off int64) (int, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return copy(ns.mem[off:off+int64(len(p))], p), nil
}

func (ns *Namespace) identify() *nvme.IdentifyNamespace {
	blocks := uint64(len(ns.mem)) >> ns.shift
	id := &nvme.IdentifyNamespace{
		NSZE: blocks, NCAP: blocks, NUSE: blocks, DLFEAT: nvme.DLFEATReadZeroes,
		NGUID: ns.ids.NGUID, EUI64: ns.ids.EUI64,
	}
	id.LBAF[0].LBADS = ns.shift
	if ns.adapt != nil {
		ns.adapt(id)
	}
	return id
}

// span returns the bytes of a range of blocks, or false if it is not in the
// namespace.
func (ns *Namespace) span(lba, blocks uint64) (b []byte, ok bool) {
	total := uint64(len(ns.mem)) >> ns.shift
	if lba >= total || blocks > total-lba {
		return nil, false
	}
	return ns.mem[lba<<ns.shift : (lba+blocks)<<ns.shift], true
}
