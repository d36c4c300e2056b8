package nvme

import (
	"structs"
	"time"
)

// PowerStateTransitions is the data of FeatPowerStateTransition, 256 bytes: one
// entry for each power state (Base Specification 2.1, figure "Autonomous Power
// State Transition – Data Structure Entry").
type PowerStateTransitions struct {
	_       structs.HostLayout
	Entries [32]PowerStateTransition
}

// PowerStateTransition says where to go from a power state after some idle
// time.
type PowerStateTransition uint64

// MakePowerStateTransition composes an entry: after idle, in milliseconds
// rounded up to at most 4.6 hours, go to state (0 to 31). A zero idle time
// disables the transition.
func MakePowerStateTransition(state uint8, idle time.Duration) PowerStateTransition {
	ms := units(idle, time.Millisecond, 0xffffff)
	if ms == 0 {
		return 0
	}
	return PowerStateTransition(state&0x1f)<<3 | PowerStateTransition(ms)<<8
}

// State returns the power state to go to.
func (p PowerStateTransition) State() uint8 { return uint8(field(p, 3, 5)) }

// Idle returns the idle time before the transition; 0 when there is none.
func (p PowerStateTransition) Idle() time.Duration {
	return time.Duration(field(p, 8, 24)) * time.Millisecond
}

// AppendBinary appends the 256 bytes of the structure.
func (p *PowerStateTransitions) AppendBinary(b []byte) ([]byte, error) { return encode(b, p) }

// UnmarshalBinary reads the structure from the first 256 bytes of b.
func (p *PowerStateTransitions) UnmarshalBinary(b []byte) error {
	return decode("power state transitions", b, p)
}

// HostBehavior is the data of FeatHostBehavior, 512 bytes (Base Specification
// 2.1, figure "Host Behavior Support – Data Structure"). Each of the first four
// fields is 1 for support, else 0.
type HostBehavior struct {
	_      structs.HostLayout
	ACRE   uint8  // advanced command retry: Command Interrupted and retry delays
	ETDAS  uint8  // extended telemetry data area 4
	LBAFEE uint8  // LBA format extension
	HDISNS uint8  // host dispersed namespaces
	CDFE   uint16 // copy descriptor formats enabled: bits 2 to 4
	_      [506]byte
}

// AppendBinary appends the 512 bytes of the structure.
func (h *HostBehavior) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (h *HostBehavior) UnmarshalBinary(b []byte) error { return decode("host behavior", b, h) }

// PredictableLatencyConfig is the data of FeatPredictableLatencyConfig, 512
// bytes (Base Specification 2.1, figure "Predictable Latency Mode –
// Deterministic Threshold Configuration Data Structure").
type PredictableLatencyConfig struct {
	_               structs.HostLayout
	Events          uint16 // PredictableLatency... bits to report
	_               [30]byte
	ReadsThreshold  uint64
	WritesThreshold uint64
	TimeThreshold   uint64 // ms
	_               [456]byte
}

// AppendBinary appends the 512 bytes of the structure.
func (p *PredictableLatencyConfig) AppendBinary(b []byte) ([]byte, error) { return encode(b, p) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (p *PredictableLatencyConfig) UnmarshalBinary(b []byte) error {
	return decode("predictable latency configuration", b, p)
}

// HostMemoryBuffer is the value of FeatHostMemoryBuffer, dwords 11 to 15 (Base
// Specification 5.1.25.2.4).
type HostMemoryBuffer struct {
	Enable           bool
	Return           bool   // the memory is as the controller left it
	RestrictAccess   bool   // not in non-operational power states; needs CTRATTHMBRestrict
	Pages            uint32 // size in memory pages (CC.MPS)
	DescriptorList   uint64 // its address, a multiple of 16
	DescriptorsCount uint32
}

// SetFeatures returns the command that sets the value.
func (h HostMemoryBuffer) SetFeatures() SetFeaturesCommand {
	return SetFeaturesCommand{
		FeatureID: FeatHostMemoryBuffer,
		Value:     flag[uint32](h.Enable, 0) | flag[uint32](h.Return, 1) | flag[uint32](h.RestrictAccess, 2),
		More:      [4]uint32{h.Pages, uint32(h.DescriptorList), uint32(h.DescriptorList >> 32), h.DescriptorsCount},
	}
}

// ParseHostMemoryBuffer reads the value from a Set Features command.
func ParseHostMemoryBuffer(s *SetFeaturesCommand) HostMemoryBuffer {
	return HostMemoryBuffer{
		Enable: bit(s.Value, 0), Return: bit(s.Value, 1), RestrictAccess: bit(s.Value, 2),
		Pages:            s.More[0],
		DescriptorList:   uint64(s.More[1]&^0xf) | uint64(s.More[2])<<32,
		DescriptorsCount: s.More[3],
	}
}

// HostMemoryDescriptor is a Host Memory Buffer Descriptor Entry, 16 bytes.
type HostMemoryDescriptor struct {
	_     structs.HostLayout
	BADD  uint64 // address, a multiple of the memory page size
	BSIZE uint32 // size in memory pages
	_     [4]byte
}

// AppendBinary appends the 16 bytes of the structure.
func (h *HostMemoryDescriptor) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 16 bytes of b.
func (h *HostMemoryDescriptor) UnmarshalBinary(b []byte) error {
	return decode("host memory descriptor", b, h)
}

// HostMemoryBufferAttributes is the data of Get Features of
// FeatHostMemoryBuffer, 4096 bytes (Base Specification 2.1, figure "Host Memory
// Buffer – Attributes Data Structure").
type HostMemoryBufferAttributes struct {
	_      structs.HostLayout
	HSIZE  uint32 // size in memory pages
	HMDLAL uint32 // address of the descriptor list, lower half
	HMDLAU uint32 // address of the descriptor list, upper half
	HMDLEC uint32 // descriptors in the list
	_      [4080]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (h *HostMemoryBufferAttributes) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (h *HostMemoryBufferAttributes) UnmarshalBinary(b []byte) error {
	return decode("host memory buffer attributes", b, h)
}

// LBARangeType is an LBA Range Type entry, 64 bytes (NVM Command Set
// Specification, FeatLBARangeType). The data of the feature is up to 64 of
// them; their count, minus one, stands in bits 5:0 of dword 11 and the result.
type LBARangeType struct {
	_          structs.HostLayout
	Type       uint8 // 0 general, 1 filesystem, 2 RAID, 3 cache, 4 swap
	Attributes uint8 // bit 0 may be overwritten, bit 1 hide
	_          [14]byte
	SLBA       uint64
	NLB        uint64 // blocks, minus one
	GUID       [16]byte
	_          [16]byte
}

// AppendBinary appends the 64 bytes of the structure.
func (l *LBARangeType) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 64 bytes of b.
func (l *LBARangeType) UnmarshalBinary(b []byte) error { return decode("LBA range type", b, l) }
