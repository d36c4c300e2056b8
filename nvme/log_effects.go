package nvme

import "structs"

// Effects is a Commands (or NVMe-MI Commands, or FID) Supported and Effects
// data structure (Base Specification 2.1, figures of those names). The fields
// that only commands have are zero in the others.
type Effects uint32

// Bits of Effects.
const (
	EffectSupported           Effects = 1 << 0 // the command or feature is supported
	EffectDataChange          Effects = 1 << 1 // may change user data
	EffectNamespaceCapability Effects = 1 << 2 // may change the capabilities of a namespace
	EffectNamespaceInventory  Effects = 1 << 3 // may change number or capabilities of namespaces
	EffectControllerChange    Effects = 1 << 4 // may change controller capabilities
	EffectUUIDSelection       Effects = 1 << 19
	EffectScopeNamespace      Effects = 1 << 20
	EffectScopeController     Effects = 1 << 21
	EffectScopeNVMSet         Effects = 1 << 22
	EffectScopeEnduranceGroup Effects = 1 << 23
	EffectScopeDomain         Effects = 1 << 24
	EffectScopeSubsystem      Effects = 1 << 25
	EffectScopeDataQueue      Effects = 1 << 26 // features only: a controller data queue
)

// Values of Effects.Submission: what else may be outstanding with a command.
const (
	SubmissionAny          uint8 = 0 // no restriction
	SubmissionOneNamespace uint8 = 1 // nothing else on the namespace
	SubmissionNoNamespace  uint8 = 2 // nothing else on any namespace
)

// Supported tells whether the command or feature is supported.
func (e Effects) Supported() bool { return e&EffectSupported != 0 }

// Submission returns one of the Submission... values; others are reserved.
func (e Effects) Submission() uint8 { return uint8(field(e, 16, 3)) }

// Relaxed tells whether, in place of Submission, it is enough that no admin
// command that affects a namespace is outstanding.
func (e Effects) Relaxed() bool { return field(e, 14, 2) == 1 }

// CommandEffectsLog is the Commands Supported and Effects log page, 4096
// bytes, indexed by opcode.
type CommandEffectsLog struct {
	_     structs.HostLayout
	Admin [256]Effects
	IO    [256]Effects
	_     [2048]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *CommandEffectsLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *CommandEffectsLog) UnmarshalBinary(b []byte) error {
	return decode("command effects log", b, l)
}

// FeatureEffectsLog is the Feature Identifiers Supported and Effects log page,
// 1024 bytes, indexed by FID.
type FeatureEffectsLog struct {
	_        structs.HostLayout
	Features [256]Effects
}

// AppendBinary appends the 1024 bytes of the structure.
func (l *FeatureEffectsLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 1024 bytes of b.
func (l *FeatureEffectsLog) UnmarshalBinary(b []byte) error {
	return decode("feature effects log", b, l)
}

// MIEffectsLog is the NVMe-MI Commands Supported and Effects log page, 4096
// bytes, indexed by the opcode of the management interface command.
type MIEffectsLog struct {
	_        structs.HostLayout
	Commands [256]Effects
	_        [3072]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *MIEffectsLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *MIEffectsLog) UnmarshalBinary(b []byte) error { return decode("MI effects log", b, l) }

// SupportedLogPages is the Supported Log Pages log page, 1024 bytes, indexed by
// LID (figures "Supported Log Pages Log Page" and "LID Supported and Effects
// Data Structure").
type SupportedLogPages struct {
	_     structs.HostLayout
	Pages [256]LIDEffects
}

// LIDEffects is a LID Supported and Effects data structure.
type LIDEffects uint32

// Bits of LIDEffects; the upper half is Parameter.
const (
	LIDSupported   LIDEffects = 1 << 0
	LIDIndexOffset LIDEffects = 1 << 1
)

// Supported tells whether the log page is supported.
func (l LIDEffects) Supported() bool { return l&LIDSupported != 0 }

// IndexOffset tells whether GetLogPageCommand.Index may be set.
func (l LIDEffects) IndexOffset() bool { return l&LIDIndexOffset != 0 }

// Parameter returns the LID specific parameter.
func (l LIDEffects) Parameter() uint16 { return uint16(l >> 16) }

// AppendBinary appends the 1024 bytes of the structure.
func (l *SupportedLogPages) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 1024 bytes of b.
func (l *SupportedLogPages) UnmarshalBinary(b []byte) error {
	return decode("supported log pages", b, l)
}
