package nvme

import "encoding/binary"

// Values of GetLBAStatusCommand.Action.
const (
	LBAStatusAllocated uint8 = 0x02 // allocated LBAs in the range
	LBAStatusScan      uint8 = 0x10 // tracked and untracked LBAs, after a scan
	LBAStatusTracked   uint8 = 0x11 // tracked LBAs
)

// GetLBAStatusCommand is the Get LBA Status command, an admin command of the
// NVM command set (NVM Command Set Specification 4.2.1).
type GetLBAStatusCommand struct {
	NSID   uint32
	SLBA   uint64
	Length uint64 // of the data in bytes, a multiple of 4 from 4 to 16 GiB
	Range  uint16 // blocks to look at; 0 to the end of the namespace
	Action uint8  // LBAStatusAllocated, LBAStatusScan or LBAStatusTracked
}

// Command returns the submission queue entry.
func (g GetLBAStatusCommand) Command() (Command, error) {
	if g.Length == 0 || g.Length%4 != 0 || g.Length/4 > 1<<32 {
		return Command{}, outOfRange("get LBA status command", "length %d", g.Length)
	}
	return Command{
		Opcode: AdminGetLBAStatus, NSID: g.NSID, CDW10: uint32(g.SLBA), CDW11: uint32(g.SLBA >> 32),
		CDW12: uint32(g.Length/4 - 1), CDW13: uint32(g.Range) | uint32(g.Action)<<24,
	}, nil
}

// ParseGetLBAStatus reads a Get LBA Status command.
func ParseGetLBAStatus(cmd *Command) (GetLBAStatusCommand, error) {
	if err := expectAdmin(cmd, AdminGetLBAStatus); err != nil {
		return GetLBAStatusCommand{}, err
	}
	return GetLBAStatusCommand{
		NSID: cmd.NSID, SLBA: cmd.SLBA(), Length: (uint64(cmd.CDW12) + 1) * 4,
		Range: uint16(cmd.CDW13), Action: uint8(cmd.CDW13 >> 24),
	}, nil
}

// LBAStatus is an LBA Status Descriptor.
type LBAStatus struct {
	SLBA   uint64
	Blocks uint64 // 1 to 1<<32
	Status uint8  // an LBARange... value in 2:0
}

// Values of LBAStatus.Status 2:0: what the blocks of the range are.
const (
	LBARangeMaybe         uint8 = 0 // any may be unrecoverable, uncorrectable or fine
	LBARangeBad           uint8 = 1 // each may be unrecoverable or uncorrectable
	LBARangeAllocated     uint8 = 2 // some are allocated
	LBARangeUncorrectable uint8 = 3 // each was last written by Write Uncorrectable
)

// Completion conditions of an LBA status list.
const (
	LBAStatusNone       uint8 = 0 // the controller does not tell
	LBAStatusIncomplete uint8 = 1 // there are more descriptors
	LBAStatusComplete   uint8 = 2
)

const lbaStatusDescriptor = 16

// ParseLBAStatus reads an LBA Status Descriptor List: the descriptors and the
// completion condition. A count that leads outside of b is a DecodeError.
func ParseLBAStatus(b []byte) (list []LBAStatus, condition uint8, err error) {
	c := cursor{what: "LBA status list", b: b}
	n := c.u32()
	condition = c.u8()
	c.skip(3)
	list = make([]LBAStatus, c.count(uint64(n), lbaStatusDescriptor))
	for i := range list {
		list[i] = LBAStatus{SLBA: c.u64(), Blocks: uint64(c.u32()) + 1}
		c.skip(1)
		list[i].Status = c.u8()
		c.skip(2)
	}
	return list, condition, c.err
}

// AppendLBAStatus appends the bytes of an LBA Status Descriptor List.
func AppendLBAStatus(b []byte, list []LBAStatus, condition uint8) ([]byte, error) {
	if uint64(len(list)) > maxUint32 {
		return nil, outOfRange("LBA status list", "%d descriptors", len(list))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	b = append(b, condition, 0, 0, 0)
	for _, s := range list {
		if s.Blocks == 0 || s.Blocks > 1<<32 {
			return nil, outOfRange("LBA status list", "range of %d blocks", s.Blocks)
		}
		b = binary.LittleEndian.AppendUint64(b, s.SLBA)
		b = binary.LittleEndian.AppendUint32(b, uint32(s.Blocks-1))
		b = append(b, 0, s.Status, 0, 0)
	}
	return b, nil
}
