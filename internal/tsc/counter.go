//qpoll:hot

package tsc

// Ticks returns the raw counter. Its rate is [Frequency] where [Invariant] is
// true. The read is not ordered against the memory accesses around it, so two
// reads closer than some tens of cycles may appear swapped.
//
//go:noescape
func Ticks() uint64

// Pause tells the processor that the caller spins (PAUSE, YIELD). It costs
// from one to about 140 cycles, depending on the processor.
//
//go:noescape
func Pause()
