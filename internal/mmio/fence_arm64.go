package mmio

// StoreFence orders the stores to memory before it against the stores after
// it, as a device sees them: it goes between a submission queue entry and its
// doorbell. On amd64, stores to ordinary and to uncached memory stay in order
// anyway, and it is nothing: the calls of this package keep the compiler from
// moving others.
//
//go:noescape
func StoreFence()

// LoadFence orders the loads before it against the loads after it: it goes
// between the phase tag of a completion queue entry and the rest of the entry.
// On amd64, loads from ordinary memory stay in order anyway.
//
//go:noescape
func LoadFence()
