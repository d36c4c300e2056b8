package tsc

//go:noescape
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// clockSource is what Linux calls the counter.
const clockSource = "tsc"

const (
	leafMax         = 0x0000_0000
	leafTSC         = 0x0000_0015 // EBX/EAX: TSC to crystal ratio; ECX: crystal in Hz, 0 if not told
	leafExtendedMax = 0x8000_0000
	leafPower       = 0x8000_0007 // EDX bit 8: invariant TSC

	invariantTSC = 1 << 8
)

// counterInvariant reports whether the processor, or the hypervisor in its
// name, promises a constant rate in all power states.
func counterInvariant() bool {
	if max, _, _, _ := cpuid(leafExtendedMax, 0); max < leafPower {
		return false
	}
	_, _, _, edx := cpuid(leafPower, 0)
	return edx&invariantTSC != 0
}

// counterFrequency is the rate in Hz that the processor states, or 0.
func counterFrequency() uint64 {
	if max, _, _, _ := cpuid(leafMax, 0); max < leafTSC {
		return 0
	}
	den, num, crystal, _ := cpuid(leafTSC, 0)
	return ratio(crystal, num, den)
}

// ratio is crystal*num/den, rounded; 0 if the processor leaves one out.
func ratio(crystal, num, den uint32) uint64 {
	if den == 0 || num == 0 || crystal == 0 {
		return 0
	}
	return (uint64(crystal)*uint64(num) + uint64(den)/2) / uint64(den)
}
