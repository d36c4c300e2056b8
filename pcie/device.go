package pcie

import (
	"context"
	"fmt"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// ErrGone: the device does not answer any more: it was pulled out or its link
// went down, the program at the other end of the socket ended, or it was
// closed. It does not come back; where it is plugged in again, that is another
// Device. It is an nvme.ErrGone.
var ErrGone = fmt.Errorf("pcie: %w", nvme.ErrGone)

// Device is one NVMe function as its driver sees it: registers, mapped memory,
// DMA and interrupts. Methods may be called from any goroutine, but not beside
// or after Close, unless they say otherwise.
//
// An access to a device that is gone returns ErrGone. Register accesses are in
// BAR0, of exactly the width asked for and aligned to it, little-endian, and
// reach the device in the order of the calls; each is ordered after the stores
// to DMA memory before it.
type Device interface {
	// Name names the device for messages: "0000:01:00.0", or a socket's path.
	Name() string
	// Info says what the device is. It does not change.
	Info() Info

	// Read32 reads a 32-bit register.
	Read32(off uint32) (uint32, error)
	// Read64 reads a 64-bit register; where the device does not take accesses
	// of 64 bits (Info.Split64), in two of 32, the lower half first.
	Read64(off uint32) (uint64, error)
	// Write32 writes a 32-bit register.
	Write32(off uint32, v uint32) error
	// Write64 writes a 64-bit register, in the manner of Read64.
	Write64(off uint32, v uint64) error

	// BARSize returns the size in bytes of base address register bar, 0 to 5;
	// 0 if there is none.
	BARSize(bar int) uint64
	// Map returns n bytes of a BAR from off on as memory: doorbells, controller
	// memory. It is valid until Close, and mapped once however often it is asked
	// for. An access after the device went does not fault: loads give all ones
	// or what was there, stores are lost; or else it faults as a Go panic with a
	// runtime.Error, which callers of Map are prepared for.
	Map(bar int, off, n uint64) (mmio.Window, error)

	// Reset does a function level reset, bounded by ctx. Afterwards the device
	// does no DMA and bus mastering is off.
	Reset(ctx context.Context) error
	// SetBusMaster lets the device do DMA, or keeps it from it.
	SetBusMaster(on bool) error

	// IOVARanges returns the I/O virtual addresses that MapDMA takes, sorted and
	// not overlapping. It does not change.
	IOVARanges() []Range
	// MaxMappings returns how many mappings MapDMA takes; 0: no limit known.
	MaxMappings() int
	// MapDMA lets the device read and write m at iova. Both are page aligned.
	// Bytes stay mapped, and FD open, until UnmapDMA. Where the device is a
	// PhysicalAddresser, iova is ignored and the memory is only pinned.
	MapDMA(m Memory, iova uint64) error
	// UnmapDMA undoes one MapDMA, of n bytes. The device cannot reach the memory
	// when it returns. An error means that it may still. It works on a device
	// that is gone.
	UnmapDMA(iova, n uint64) error

	// Interrupts returns the number of MSI-X vectors, 0 if there are none.
	Interrupts() int
	// SetInterrupt has an interrupt vector signal an eventfd; -1 undoes it.
	SetInterrupt(vector, eventfd int) error

	// Gone reports whether the device is known to be gone. It is one atomic load.
	Gone() bool
	// OnGone has f called once, from any goroutine, when the device is found to
	// be gone, at once if it is already. f must not block nor call the Device.
	OnGone(f func())
	// Close gives the device back, with bus mastering off and all mappings
	// undone. Idempotent.
	Close() error
}

// PhysicalAddresser is implemented by devices that have no IOMMU between them
// and memory.
type PhysicalAddresser interface {
	// PhysicalAddress returns the physical address of the first byte of m, which
	// lies within one page (of its mapping's page size) and is pinned by MapDMA.
	PhysicalAddress(m []byte) (uint64, error)
}

// Info is what a device says about itself in its PCI configuration space, and
// what the host knows about it.
type Info struct {
	Vendor, Device                   uint16
	SubsystemVendor, SubsystemDevice uint16
	Class                            uint32 // 24 bits: 0x010802 for NVMe
	Revision                         uint8
	NUMANode                         int  // -1: unknown
	Split64                          bool // 64-bit registers are accessed in halves
	// Hardware: a real device, for which memory must be locked. Software devices
	// share it with their process.
	Hardware bool
}

// Range is a range of I/O virtual addresses, both ends included.
type Range struct{ First, Last uint64 }

// Memory is memory for DMA. It is page aligned.
type Memory struct {
	// Bytes is the memory in this process, a mapping.
	Bytes []byte
	// FD is the file that the memory is a shared mapping of, from Offset on, so
	// that another process can map it; -1 if there is none.
	FD     int
	Offset int64
}
