package nvme

// FirmwareDownloadCommand is the Firmware Image Download command (Base
// Specification 5.1.9). Its data is a piece of the image.
type FirmwareDownloadCommand struct {
	Offset uint64 // of the piece in the image in bytes, a multiple of 4 below 16 GiB
	Length uint64 // of the piece in bytes, a multiple of 4 from 4 to 16 GiB
}

// Command returns the submission queue entry. FWUG of Identify Controller may
// ask for a coarser granularity than dwords.
func (f FirmwareDownloadCommand) Command() (Command, error) {
	if f.Length == 0 || (f.Offset|f.Length)&3 != 0 || f.Length>>2 > 1<<32 || f.Offset>>2 >= 1<<32 {
		return Command{}, outOfRange("firmware image download command", "%d bytes at %d", f.Length, f.Offset)
	}
	return Command{Opcode: AdminFirmwareImageDownload, CDW10: uint32(f.Length>>2 - 1), CDW11: uint32(f.Offset >> 2)}, nil
}

// ParseFirmwareDownload reads a Firmware Image Download command.
func ParseFirmwareDownload(cmd *Command) (FirmwareDownloadCommand, error) {
	if err := expectAdmin(cmd, AdminFirmwareImageDownload); err != nil {
		return FirmwareDownloadCommand{}, err
	}
	return FirmwareDownloadCommand{Offset: uint64(cmd.CDW11) * 4, Length: (uint64(cmd.CDW10) + 1) * 4}, nil
}

// Values of FirmwareCommitCommand.Action.
const (
	FirmwareReplace         uint8 = 0 // place the image, do not activate it
	FirmwareReplaceActivate uint8 = 1 // place the image, activate it at the next reset
	FirmwareActivate        uint8 = 2 // activate the image in the slot at the next reset
	FirmwareActivateNow     uint8 = 3 // place the image, if any, and activate it at once
	FirmwareReplaceBoot     uint8 = 6 // replace a boot partition
	FirmwareActivateBoot    uint8 = 7 // mark a boot partition active
)

// FirmwareCommitCommand is the Firmware Commit command (Base Specification
// 5.1.8). Several of its non-zero statuses tell of success that needs a reset,
// for example StatusFirmwareNeedsControllerReset.
type FirmwareCommitCommand struct {
	Slot          uint8 // 1 to 7; 0 for the controller to choose
	Action        uint8 // a Firmware... action
	BootPartition uint8 // 0 or 1
}

// Command returns the submission queue entry.
func (f FirmwareCommitCommand) Command() Command {
	return Command{
		Opcode: AdminFirmwareCommit,
		CDW10:  uint32(f.Slot&7) | uint32(f.Action&7)<<3 | uint32(f.BootPartition&1)<<31,
	}
}

// ParseFirmwareCommit reads a Firmware Commit command.
func ParseFirmwareCommit(cmd *Command) (FirmwareCommitCommand, error) {
	if err := expectAdmin(cmd, AdminFirmwareCommit); err != nil {
		return FirmwareCommitCommand{}, err
	}
	v := cmd.CDW10
	return FirmwareCommitCommand{Slot: uint8(v & 7), Action: uint8(field(v, 3, 3)), BootPartition: uint8(v >> 31)}, nil
}

// Values of SanitizeCommand.Action.
const (
	SanitizeExitFailure      uint8 = 1
	SanitizeBlockErase       uint8 = 2
	SanitizeOverwrite        uint8 = 3
	SanitizeCryptoErase      uint8 = 4
	SanitizeExitVerification uint8 = 5
)

// SanitizeCommand is the Sanitize command (Base Specification 5.1.22).
type SanitizeCommand struct {
	Action       uint8 // a Sanitize... action
	Unrestricted bool  // allow unrestricted sanitize exit (AUSE)
	Passes       uint8 // overwrite passes, 1 to 16
	Invert       bool  // invert the pattern between passes
	NoDeallocate bool  // no deallocation afterwards (NDAS)
	Verify       bool  // enter the media verification state (EMVS)
	Pattern      uint32
}

// Command returns the submission queue entry.
func (s SanitizeCommand) Command() Command {
	return Command{
		Opcode: AdminSanitize,
		CDW10: uint32(s.Action&7) | flag[uint32](s.Unrestricted, 3) | uint32(s.Passes&0xf)<<4 | // 16 passes are 0
			flag[uint32](s.Invert, 8) | flag[uint32](s.NoDeallocate, 9) | flag[uint32](s.Verify, 10),
		CDW11: s.Pattern,
	}
}

// ParseSanitize reads a Sanitize command.
func ParseSanitize(cmd *Command) (SanitizeCommand, error) {
	if err := expectAdmin(cmd, AdminSanitize); err != nil {
		return SanitizeCommand{}, err
	}
	v := cmd.CDW10
	s := SanitizeCommand{
		Action: uint8(v & 7), Unrestricted: bit(v, 3), Passes: uint8(field(v, 4, 4)), Invert: bit(v, 8),
		NoDeallocate: bit(v, 9), Verify: bit(v, 10), Pattern: cmd.CDW11,
	}
	if s.Passes == 0 {
		s.Passes = 16
	}
	return s, nil
}

// SelfTestCommand is the Device Self-test command (Base Specification 5.1.5).
type SelfTestCommand struct {
	NSID      uint32 // 0 for the controller alone, NSIDAll for all namespaces
	Code      uint8  // a SelfTest... code
	Parameter uint32 // with SelfTestVendor
}

// Command returns the submission queue entry.
func (s SelfTestCommand) Command() Command {
	return Command{Opcode: AdminDeviceSelfTest, NSID: s.NSID, CDW10: uint32(s.Code & 0xf), CDW15: s.Parameter}
}

// ParseSelfTest reads a Device Self-test command.
func ParseSelfTest(cmd *Command) (SelfTestCommand, error) {
	if err := expectAdmin(cmd, AdminDeviceSelfTest); err != nil {
		return SelfTestCommand{}, err
	}
	return SelfTestCommand{NSID: cmd.NSID, Code: uint8(cmd.CDW10 & 0xf), Parameter: cmd.CDW15}, nil
}

// Values of LockdownCommand.Interface.
const (
	LockdownAdminQueue uint8 = 0
	LockdownBoth       uint8 = 1
	LockdownOutOfBand  uint8 = 2
)

// LockdownCommand is the Lockdown command (Base Specification 5.1.15).
type LockdownCommand struct {
	Scope     uint8 // a LockdownScope... value
	Prohibit  bool  // else allow
	Interface uint8 // LockdownAdminQueue, LockdownBoth or LockdownOutOfBand
	ID        uint8 // opcode or feature identifier
	UUIDIndex uint8 // 0 to 127
}

// Command returns the submission queue entry.
func (l LockdownCommand) Command() Command {
	return Command{
		Opcode: AdminLockdown,
		CDW10:  uint32(l.Scope&0xf) | flag[uint32](l.Prohibit, 4) | uint32(l.Interface&3)<<5 | uint32(l.ID)<<8,
		CDW14:  uint32(l.UUIDIndex & 0x7f),
	}
}

// ParseLockdown reads a Lockdown command.
func ParseLockdown(cmd *Command) (LockdownCommand, error) {
	if err := expectAdmin(cmd, AdminLockdown); err != nil {
		return LockdownCommand{}, err
	}
	v := cmd.CDW10
	return LockdownCommand{
		Scope: uint8(v & 0xf), Prohibit: bit(v, 4), Interface: uint8(field(v, 5, 2)), ID: uint8(v >> 8), UUIDIndex: uint8(cmd.CDW14 & 0x7f),
	}, nil
}

// SecurityCommand is the Security Send or Security Receive command (Base
// Specification 5.1.23 and 5.1.24).
type SecurityCommand struct {
	Receive          bool
	NSID             uint32
	Protocol         uint8  // SECP
	ProtocolSpecific uint16 // SPSP1 in the upper byte, SPSP0 in the lower
	Specific         uint8  // NVMe security specific field
	Length           uint32 // transfer or allocation length in bytes
}

// Command returns the submission queue entry.
func (s SecurityCommand) Command() Command {
	op := AdminSecuritySend
	if s.Receive {
		op = AdminSecurityReceive
	}
	return Command{
		Opcode: op, NSID: s.NSID,
		CDW10: uint32(s.Specific) | uint32(s.ProtocolSpecific)<<8 | uint32(s.Protocol)<<24,
		CDW11: s.Length,
	}
}

// ParseSecurity reads a Security Send or Security Receive command.
func ParseSecurity(cmd *Command) (SecurityCommand, error) {
	if cmd.Opcode != AdminSecuritySend && cmd.Opcode != AdminSecurityReceive {
		return SecurityCommand{}, malformed("security command", "opcode is that of %s", AdminName(cmd.Opcode))
	}
	return SecurityCommand{
		Receive: cmd.Opcode == AdminSecurityReceive, NSID: cmd.NSID, Protocol: uint8(cmd.CDW10 >> 24),
		ProtocolSpecific: uint16(cmd.CDW10 >> 8), Specific: uint8(cmd.CDW10), Length: cmd.CDW11,
	}, nil
}

// Values of VirtualizationCommand.Action.
const (
	VirtualizationPrimary uint8 = 0x1 // flexible allocation of the primary controller
	VirtualizationOffline uint8 = 0x7 // secondary controller offline
	VirtualizationAssign  uint8 = 0x8 // resources of a secondary controller
	VirtualizationOnline  uint8 = 0x9 // secondary controller online
)

// VirtualizationCommand is the Virtualization Management command (Base
// Specification 5.2.6).
type VirtualizationCommand struct {
	Action       uint8 // a Virtualization... value
	Interrupts   bool  // VI resources, else VQ
	ControllerID uint16
	Count        uint16 // number of controller resources
}

// Command returns the submission queue entry. The number that was assigned
// comes back in dword 0 of the response.
func (v VirtualizationCommand) Command() Command {
	return Command{
		Opcode: AdminVirtualizationManagement,
		CDW10:  uint32(v.Action&0xf) | flag[uint32](v.Interrupts, 8) | uint32(v.ControllerID)<<16,
		CDW11:  uint32(v.Count),
	}
}

// ParseVirtualization reads a Virtualization Management command.
func ParseVirtualization(cmd *Command) (VirtualizationCommand, error) {
	if err := expectAdmin(cmd, AdminVirtualizationManagement); err != nil {
		return VirtualizationCommand{}, err
	}
	return VirtualizationCommand{
		Action: uint8(cmd.CDW10 & 0xf), Interrupts: field(cmd.CDW10, 8, 3) == 1,
		ControllerID: uint16(cmd.CDW10 >> 16), Count: uint16(cmd.CDW11),
	}, nil
}
