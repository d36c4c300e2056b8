// Package mmio reads and writes the registers of devices, and memory that is
// shared with them, in accesses of exactly the width that was asked for.
//
// Neither plain Go accesses nor those of sync/atomic do: the compiler may merge
// or drop the former, and the latter store with a locked exchange on amd64. Each
// access here is one load or store instruction in an assembly function, which
// the compiler can neither see into nor move other accesses across.
//
// An access orders nothing but itself; see [StoreFence], [LoadFence] and
// [Fence]. An access to memory that a device no longer backs faults like any
// other access: see runtime/debug.SetPanicOnFault.
package mmio
