package tsc

// clockSource is what Linux calls the counter.
const clockSource = "arch_sys_counter"

//go:noescape
func cntfrq() uint64

// counterInvariant reports whether the generic timer is usable: its rate is
// constant by architecture, but firmware must have set it.
func counterInvariant() bool { return counterFrequency() != 0 }

// counterFrequency is the rate in Hz that firmware states, or 0.
func counterFrequency() uint64 { return cntfrq() & 0xffff_ffff }
