package nvme

import (
	"encoding/binary"
	"structs"
)

// Source range formats of the Copy command (NVM Command Set Specification 1.1,
// figure "Copy – Copy Descriptor Formats"); each is a bit of
// IdentifyController.CDFS. Formats 2 and 3 have to be enabled by
// HostBehavior.CDFE. Format 4, of the subsystem local memory command set, is not
// built here.
const (
	CopyFormat0 uint8 = 0 // 16-bit guard, same namespace: CopyRange
	CopyFormat1 uint8 = 1 // 32- or 64-bit guard, same namespace: CopyRangeLong
	CopyFormat2 uint8 = 2 // 16-bit guard, any namespace: CopyRange
	CopyFormat3 uint8 = 3 // 32- or 64-bit guard, any namespace: CopyRangeLong
)

// MaxCopyRanges is the most ranges that a Copy command takes;
// IdentifyNamespace.MSRC sets the limit.
const MaxCopyRanges = 256

// CopyFastOnly in the SOPT field of a source range of formats 2 and 3: fail
// when the range is not copied by fast copy.
const CopyFastOnly uint16 = 1 << 15

// CopyRange is a source range of formats 0 and 2, 32 bytes.
type CopyRange struct {
	_      structs.HostLayout
	SNSID  uint32 // source namespace, format 2 only
	_      [4]byte
	SLBA   uint64
	NLB    uint16 // blocks, minus one
	CETYPE uint8  // command extension type
	_      [1]byte
	CEV    uint16 // command extension value
	SOPT   uint16 // CopyFastOnly
	ELBT   uint32 // expected logical block tags
	ELBAT  uint16 // expected application tag
	ELBATM uint16 // expected application tag mask
}

// AppendBinary appends the 32 bytes of the structure.
func (r *CopyRange) AppendBinary(b []byte) ([]byte, error) { return encode(b, r) }

// UnmarshalBinary reads the structure from the first 32 bytes of b.
func (r *CopyRange) UnmarshalBinary(b []byte) error { return decode("copy range", b, r) }

// CopyRangeLong is a source range of formats 1 and 3, 40 bytes.
type CopyRangeLong struct {
	_      structs.HostLayout
	SNSID  uint32 // source namespace, format 3 only
	_      [4]byte
	SLBA   uint64
	NLB    uint16 // blocks, minus one
	CETYPE uint8  // command extension type
	_      [1]byte
	CEV    uint16 // command extension value
	SOPT   uint16 // CopyFastOnly
	_      [2]byte
	ELBT   [10]byte // expected logical block tags, most significant byte first
	ELBAT  uint16   // expected application tag
	ELBATM uint16   // expected application tag mask
}

// AppendBinary appends the 40 bytes of the structure.
func (r *CopyRangeLong) AppendBinary(b []byte) ([]byte, error) { return encode(b, r) }

// UnmarshalBinary reads the structure from the first 40 bytes of b.
func (r *CopyRangeLong) UnmarshalBinary(b []byte) error { return decode("copy range", b, r) }

// CopyCommand is the Copy command (NVM Command Set Specification 3.3.2). Its
// data is a list of source ranges of one format.
type CopyCommand struct {
	NSID        uint32
	SDLBA       uint64 // starting destination LBA
	Ranges      int    // 1 to MaxCopyRanges
	Format      uint8  // a CopyFormat... value
	Flags       uint32 // IO... bits for the write, and IOStorageTagCheck, CopyStorageTagRead
	ReadProtect uint8  // PRINFO of the read, 4 bits: action in 3, check in 2:0
	Directive   uint8  // directive type of the write
	DirectiveID uint16
	Extension   uint8  // command extension type of the write
	ExtensionV  uint16 // command extension value of the write
	Tags        IOTags // of the write
}

// CopyStorageTagRead in CopyCommand.Flags checks the storage tag on the read
// (STCR).
const CopyStorageTagRead uint32 = 1 << 25

const copyFlagMask = IOFlagMask &^ IONamespaceZeroes

// Command returns the submission queue entry.
func (c CopyCommand) Command() (Command, error) {
	if c.Ranges < 1 || c.Ranges > MaxCopyRanges || c.Format > CopyFormat3 || c.Tags.Upper>>48 != 0 {
		return Command{}, outOfRange("copy command", "%d ranges of format %d, upper tag 0x%x", c.Ranges, c.Format, c.Tags.Upper)
	}
	return Command{
		Opcode: OpCopy,
		NSID:   c.NSID,
		CDW2:   uint32(c.Tags.Upper),
		CDW3:   uint32(c.Tags.Upper >> 32),
		CDW10:  uint32(c.SDLBA),
		CDW11:  uint32(c.SDLBA >> 32),
		CDW12: uint32(c.Ranges-1) | uint32(c.Format)<<8 | uint32(c.ReadProtect&0xf)<<12 |
			uint32(c.Extension&0xf)<<ioExtensionShift | uint32(c.Directive&0xf)<<ioDirectiveShift | c.Flags&copyFlagMask,
		CDW13: uint32(c.ExtensionV) | uint32(c.DirectiveID)<<16,
		CDW14: c.Tags.Lower,
		CDW15: uint32(c.Tags.App) | uint32(c.Tags.AppMask)<<16,
	}, nil
}

// ParseCopy reads a Copy command. Whether the format is supported is the
// caller's to check.
func ParseCopy(cmd *Command) (CopyCommand, error) {
	if err := expectIO(cmd, OpCopy); err != nil {
		return CopyCommand{}, err
	}
	return CopyCommand{
		NSID:        cmd.NSID,
		SDLBA:       cmd.SLBA(),
		Ranges:      int(cmd.CDW12&0xff) + 1,
		Format:      uint8(field(cmd.CDW12, 8, 4)),
		Flags:       cmd.CDW12 & copyFlagMask,
		ReadProtect: uint8(field(cmd.CDW12, 12, 4)),
		Directive:   uint8(field(cmd.CDW12, ioDirectiveShift, 4)),
		DirectiveID: uint16(cmd.CDW13 >> 16),
		Extension:   uint8(field(cmd.CDW12, ioExtensionShift, 4)),
		ExtensionV:  uint16(cmd.CDW13),
		Tags: IOTags{
			Lower: cmd.CDW14, Upper: uint64(cmd.CDW2) | uint64(cmd.CDW3&0xffff)<<32,
			App: uint16(cmd.CDW15), AppMask: uint16(cmd.CDW15 >> 16),
		},
	}, nil
}

// AppendCopyRanges appends source ranges of formats 0 and 2.
func AppendCopyRanges(b []byte, ranges []CopyRange) ([]byte, error) {
	var err error
	for i := 0; err == nil && i < len(ranges); i++ {
		b, err = ranges[i].AppendBinary(b)
	}
	return b, err
}

// ParseCopyRanges reads n source ranges of formats 0 and 2.
func ParseCopyRanges(b []byte, n int) ([]CopyRange, error) {
	size := binary.Size(CopyRange{})
	c := cursor{what: "copy ranges", b: b}
	ranges := make([]CopyRange, c.count(uint64(max(n, 0)), size))
	for i := range ranges {
		if err := ranges[i].UnmarshalBinary(c.take(size)); err != nil {
			return nil, err
		}
	}
	return ranges, c.err
}
