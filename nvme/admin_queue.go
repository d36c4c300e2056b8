package nvme

// Priority classes of a submission queue, where weighted round robin with
// urgent priority class is selected.
const (
	PriorityUrgent uint8 = 0
	PriorityHigh   uint8 = 1
	PriorityMedium uint8 = 2
	PriorityLow    uint8 = 3
)

// CreateCQCommand is the Create I/O Completion Queue command of memory-based
// controllers (Base Specification 5.2.1).
type CreateCQCommand struct {
	QID        uint16
	Size       uint16 // entries minus one
	Address    uint64 // of the queue, or of its PRP list when not Contiguous
	Contiguous bool
	Interrupts bool
	Vector     uint16 // interrupt vector
}

// Command returns the submission queue entry.
func (c CreateCQCommand) Command() Command {
	return Command{
		Opcode: AdminCreateIOCQ,
		DPTR:   [2]uint64{c.Address, 0},
		CDW10:  uint32(c.QID) | uint32(c.Size)<<16,
		CDW11:  flag[uint32](c.Contiguous, 0) | flag[uint32](c.Interrupts, 1) | uint32(c.Vector)<<16,
	}
}

// ParseCreateCQ reads a Create I/O Completion Queue command.
func ParseCreateCQ(cmd *Command) (CreateCQCommand, error) {
	if err := expectAdmin(cmd, AdminCreateIOCQ); err != nil {
		return CreateCQCommand{}, err
	}
	return CreateCQCommand{
		QID: uint16(cmd.CDW10), Size: uint16(cmd.CDW10 >> 16), Address: cmd.DPTR[0],
		Contiguous: bit(cmd.CDW11, 0), Interrupts: bit(cmd.CDW11, 1), Vector: uint16(cmd.CDW11 >> 16),
	}, nil
}

// CreateSQCommand is the Create I/O Submission Queue command of memory-based
// controllers (Base Specification 5.2.2).
type CreateSQCommand struct {
	QID        uint16
	Size       uint16 // entries minus one
	Address    uint64 // of the queue, or of its PRP list when not Contiguous
	Contiguous bool
	Priority   uint8  // a Priority... class
	CQID       uint16 // completion queue
	NVMSetID   uint16 // 0 for no association
}

// Command returns the submission queue entry.
func (c CreateSQCommand) Command() Command {
	return Command{
		Opcode: AdminCreateIOSQ,
		DPTR:   [2]uint64{c.Address, 0},
		CDW10:  uint32(c.QID) | uint32(c.Size)<<16,
		CDW11:  flag[uint32](c.Contiguous, 0) | uint32(c.Priority&3)<<1 | uint32(c.CQID)<<16,
		CDW12:  uint32(c.NVMSetID),
	}
}

// ParseCreateSQ reads a Create I/O Submission Queue command.
func ParseCreateSQ(cmd *Command) (CreateSQCommand, error) {
	if err := expectAdmin(cmd, AdminCreateIOSQ); err != nil {
		return CreateSQCommand{}, err
	}
	return CreateSQCommand{
		QID: uint16(cmd.CDW10), Size: uint16(cmd.CDW10 >> 16), Address: cmd.DPTR[0],
		Contiguous: bit(cmd.CDW11, 0), Priority: uint8(field(cmd.CDW11, 1, 2)),
		CQID: uint16(cmd.CDW11 >> 16), NVMSetID: uint16(cmd.CDW12),
	}, nil
}

// DeleteCQCommand returns a Delete I/O Completion Queue command.
func DeleteCQCommand(qid uint16) Command {
	return Command{Opcode: AdminDeleteIOCQ, CDW10: uint32(qid)}
}

// DeleteSQCommand returns a Delete I/O Submission Queue command.
func DeleteSQCommand(qid uint16) Command {
	return Command{Opcode: AdminDeleteIOSQ, CDW10: uint32(qid)}
}

// DoorbellBufferCommand returns a Doorbell Buffer Config command: the addresses
// of the shadow doorbell and event index pages.
func DoorbellBufferCommand(shadow, eventIdx uint64) Command {
	return Command{Opcode: AdminDoorbellBufferConfig, DPTR: [2]uint64{shadow, eventIdx}}
}

// AbortCommand is the Abort command (Base Specification 5.1.1).
type AbortCommand struct {
	SQID uint16
	CID  uint16 // command to abort
}

// AbortNotPerformed in dword 0 of the response to an Abort command: the command
// was not aborted at once, and completes in its own time.
const AbortNotPerformed uint32 = 1 << 0

// Command returns the submission queue entry.
func (a AbortCommand) Command() Command {
	return Command{Opcode: AdminAbort, CDW10: uint32(a.SQID) | uint32(a.CID)<<16}
}

// ParseAbort reads an Abort command.
func ParseAbort(cmd *Command) (AbortCommand, error) {
	if err := expectAdmin(cmd, AdminAbort); err != nil {
		return AbortCommand{}, err
	}
	return AbortCommand{SQID: uint16(cmd.CDW10), CID: uint16(cmd.CDW10 >> 16)}, nil
}

// CancelAll in CancelCommand.CID cancels all commands of the queue.
const CancelAll uint16 = 0xffff

// CancelCommand is the Cancel command, which goes down the I/O queue that it is
// about (Base Specification 7.1).
type CancelCommand struct {
	NSID uint32 // commands of this namespace; NSIDAll for all
	SQID uint16
	CID  uint16 // command to cancel, or CancelAll
}

// Command returns the submission queue entry.
func (c CancelCommand) Command() Command {
	return Command{
		Opcode: OpCancel, NSID: c.NSID, CDW10: uint32(c.SQID) | uint32(c.CID)<<16,
		CDW11: flag[uint32](c.CID == CancelAll, 0),
	}
}

// ParseCancel reads a Cancel command. An action that does not fit the command
// identifier, or is reserved, is a DecodeError.
func ParseCancel(cmd *Command) (CancelCommand, error) {
	if err := expectIO(cmd, OpCancel); err != nil {
		return CancelCommand{}, err
	}
	c := CancelCommand{NSID: cmd.NSID, SQID: uint16(cmd.CDW10), CID: uint16(cmd.CDW10 >> 16)}
	if action := cmd.CDW11 & 3; action > 1 || action == 1 && c.CID != CancelAll {
		return CancelCommand{}, malformed("Cancel command", "action %d with command identifier 0x%04x", action, c.CID)
	}
	return c, nil
}

// CancelResult is dword 0 of the response to a Cancel command.
type CancelResult struct {
	Aborted  uint16 // commands that were aborted at once
	Deferred uint16 // commands that may yet be aborted
}

// Result returns the value as it stands in Completion.Result.
func (c CancelResult) Result() uint64 { return uint64(c.Aborted) | uint64(c.Deferred)<<16 }

// ParseCancelResult reads Completion.Result of a Cancel command.
func ParseCancelResult(result uint64) CancelResult {
	return CancelResult{Aborted: uint16(result), Deferred: uint16(result >> 16)}
}
