package nvme

// Bits of CDW12 of the I/O commands of the NVM command set (NVM Command Set
// Specification 1.1, section 3.3). Bits 15:0 hold the number of blocks minus
// one.
const (
	IOLimitedRetry    uint32 = 1 << 31 // LR
	IOFUA             uint32 = 1 << 30 // FUA: to or from non-volatile media
	IOProtectAction   uint32 = 1 << 29 // PRINFO.PRACT: strip or insert protection information
	IOCheckGuard      uint32 = 1 << 28 // PRINFO.PRCHK: guard
	IOCheckAppTag     uint32 = 1 << 27 // PRINFO.PRCHK: application tag
	IOCheckRefTag     uint32 = 1 << 26 // PRINFO.PRCHK: reference tag
	IODeallocate      uint32 = 1 << 25 // DEAC: Write Zeroes
	IOStorageTagCheck uint32 = 1 << 24 // STC
	IONamespaceZeroes uint32 = 1 << 23 // NSZ: Write Zeroes, the whole namespace

	IOFlagMask uint32 = 0xff800000 // all of the above

	ioDirectiveShift = 20
	ioExtensionShift = 16
)

// Bits of CDW13 7:0 of Read and Write: hints about the data.
const (
	HintIncompressible uint8 = 1 << 7
	HintSequential     uint8 = 1 << 6
	HintLatencyIdle    uint8 = 1 << 4 // longer latency acceptable
	HintLatencyNormal  uint8 = 2 << 4
	HintLatencyLow     uint8 = 3 << 4
	HintTypical        uint8 = 1 // typical number of reads and writes
	HintRare           uint8 = 2 // infrequent writes, infrequent reads
	HintReads          uint8 = 3 // infrequent writes, frequent reads
	HintWrites         uint8 = 4 // frequent writes, infrequent reads
	HintReadsWrites    uint8 = 5 // frequent writes, frequent reads
	HintOnce           uint8 = 6 // once
	HintPrefetch       uint8 = 7 // reads: speculative
	HintSoon           uint8 = 8 // reads: overwritten soon
)

// Directive types, in IOCommand.Directive and the directive commands.
const (
	DirectiveIdentify      uint8 = 0x00
	DirectiveStreams       uint8 = 0x01
	DirectiveDataPlacement uint8 = 0x02
)

// IOCommand is a command of the NVM command set on a range of logical blocks:
// Read, Write, Compare, Verify, Write Zeroes or Write Uncorrectable.
type IOCommand struct {
	Opcode       Opcode
	NSID         uint32
	SLBA         uint64
	Blocks       uint32 // 1 to 65536
	Flags        uint32 // IO... bits
	Directive    uint8  // directive type, 0 to 15; writes only
	DirectiveID  uint16 // directive specific; for data placement the placement identifier
	Extension    uint8  // command extension type, 0 to 15
	ExtensionVal uint16 // command extension value, in place of Hint
	Hint         uint8  // Hint... bits
	Tags         IOTags
}

// IOTags are the tags of a command for a namespace that has protection
// information.
type IOTags struct {
	Lower   uint32 // LBTL: reference tag, or the lower storage and reference tag
	Upper   uint64 // LBTU: 48 bits
	App     uint16 // LBAT: application tag
	AppMask uint16 // LBATM: application tag mask
}

// Command returns the submission queue entry without its data pointer.
func (i IOCommand) Command() (Command, error) {
	if i.Blocks == 0 || i.Blocks > 1<<16 || i.Tags.Upper>>48 != 0 {
		return Command{}, outOfRange(IOName(i.Opcode)+" command", "%d blocks, upper tag 0x%x", i.Blocks, i.Tags.Upper)
	}
	flags, directive := i.Flags&IOFlagMask&^IONamespaceZeroes, i.Directive&0xf
	if i.Opcode == OpWriteZeroes { // which has one bit less for the directive type
		flags, directive = i.Flags&IOFlagMask, i.Directive&7
	}
	cmd := Command{
		Opcode: i.Opcode,
		NSID:   i.NSID,
		CDW2:   uint32(i.Tags.Upper),
		CDW3:   uint32(i.Tags.Upper >> 32),
		CDW10:  uint32(i.SLBA),
		CDW11:  uint32(i.SLBA >> 32),
		CDW12:  i.Blocks - 1 | flags | uint32(directive)<<ioDirectiveShift | uint32(i.Extension&0xf)<<ioExtensionShift,
		CDW13:  uint32(i.DirectiveID) << 16,
		CDW14:  i.Tags.Lower,
		CDW15:  uint32(i.Tags.App) | uint32(i.Tags.AppMask)<<16,
	}
	if i.Extension&0xf != 0 {
		cmd.CDW13 |= uint32(i.ExtensionVal)
	} else {
		cmd.CDW13 |= uint32(i.Hint)
	}
	return cmd, nil
}

// ParseIO reads a Read, Write, Compare, Verify, Write Zeroes or Write
// Uncorrectable command. Any other opcode is a DecodeError.
func ParseIO(cmd *Command) (IOCommand, error) {
	switch cmd.Opcode {
	case OpRead, OpWrite, OpCompare, OpVerify, OpWriteZeroes, OpWriteUncorrectable:
	default:
		return IOCommand{}, malformed("I/O command", "opcode is that of %s", IOName(cmd.Opcode))
	}
	i := IOCommand{
		Opcode:      cmd.Opcode,
		NSID:        cmd.NSID,
		SLBA:        cmd.SLBA(),
		Blocks:      cmd.Blocks(),
		Flags:       cmd.CDW12 & IOFlagMask,
		Directive:   uint8(field(cmd.CDW12, ioDirectiveShift, 4)),
		DirectiveID: uint16(cmd.CDW13 >> 16),
		Extension:   uint8(field(cmd.CDW12, ioExtensionShift, 4)),
		Tags: IOTags{
			Lower: cmd.CDW14, Upper: uint64(cmd.CDW2) | uint64(cmd.CDW3&0xffff)<<32,
			App: uint16(cmd.CDW15), AppMask: uint16(cmd.CDW15 >> 16),
		},
	}
	if cmd.Opcode == OpWriteZeroes {
		i.Directive &^= 8 // that bit is IONamespaceZeroes here
	} else {
		i.Flags &^= IONamespaceZeroes
	}
	if i.Extension != 0 {
		i.ExtensionVal = uint16(cmd.CDW13)
	} else {
		i.Hint = uint8(cmd.CDW13)
	}
	return i, nil
}

// SLBA returns the starting LBA of a command on a range of logical blocks.
func (c *Command) SLBA() uint64 { return uint64(c.CDW10) | uint64(c.CDW11)<<32 }

// Blocks returns the number of logical blocks of such a command, 1 to 65536.
func (c *Command) Blocks() uint32 { return c.CDW12&0xffff + 1 }

func expectIO(cmd *Command, op Opcode) error {
	if cmd.Opcode != op {
		return malformed(IOName(op)+" command", "opcode is that of %s", IOName(cmd.Opcode))
	}
	return nil
}
