package mmio

// The accessors, in assembly. p must be aligned to the width.

//go:noescape
func load8(p *uint8) uint8

//go:noescape
func load16(p *uint16) uint16

//go:noescape
func load32(p *uint32) uint32

//go:noescape
func load64(p *uint64) uint64

//go:noescape
func store8(p *uint8, v uint8)

//go:noescape
func store16(p *uint16, v uint16)

//go:noescape
func store32(p *uint32, v uint32)

//go:noescape
func store64(p *uint64, v uint64)

// CombinedFence is StoreFence for memory that may be mapped write-combining,
// such as a controller memory buffer: what was written to it has left the
// processor's buffers before later stores are seen.
//
//go:noescape
func CombinedFence()

// Fence orders all accesses before it against all accesses after it, a store
// against a later load included.
//
//go:noescape
func Fence()
