//qpoll:hot

package nvme

import "encoding/binary"

// DSMRange is a range of a Dataset Management command, 16 bytes (NVM Command
// Set Specification 1.1, figure "Dataset Management – Range Definition").
type DSMRange struct {
	Attributes uint32 // context attributes: hints; see DSMCommand
	Length     uint32 // in logical blocks, not minus one
	LBA        uint64
}

// MaxDSMRanges is the most ranges that a Dataset Management command takes;
// IdentifyControllerNVM.DMRL may set a lower limit.
const MaxDSMRanges = 256

const dsmRangeBytes = 16

// DSMCommand is the Dataset Management command (NVM Command Set Specification
// 3.3.3). Its data is a range list, see AppendDSMRanges.
type DSMCommand struct {
	NSID          uint32
	Ranges        int  // 1 to MaxDSMRanges
	Deallocate    bool // AD
	IntegralWrite bool // IDW: the ranges are going to be written as a whole
	IntegralRead  bool // IDR: the ranges are going to be read as a whole
}

// Command returns the submission queue entry.
func (d DSMCommand) Command() (Command, error) {
	if d.Ranges < 1 || d.Ranges > MaxDSMRanges {
		return Command{}, outOfRange("dataset management command", "%d ranges", d.Ranges)
	}
	return Command{
		Opcode: OpDatasetManagement, NSID: d.NSID, CDW10: uint32(d.Ranges - 1),
		CDW11: flag[uint32](d.IntegralRead, 0) | flag[uint32](d.IntegralWrite, 1) | flag[uint32](d.Deallocate, 2),
	}, nil
}

// ParseDSM reads a Dataset Management command.
func ParseDSM(cmd *Command) (DSMCommand, error) {
	if err := expectIO(cmd, OpDatasetManagement); err != nil {
		return DSMCommand{}, err
	}
	return DSMCommand{
		NSID: cmd.NSID, Ranges: int(cmd.CDW10&0xff) + 1,
		IntegralRead: bit(cmd.CDW11, 0), IntegralWrite: bit(cmd.CDW11, 1), Deallocate: bit(cmd.CDW11, 2),
	}, nil
}

// AppendDSMRanges appends a range list, 16 bytes for each range.
func AppendDSMRanges(b []byte, ranges []DSMRange) []byte {
	for i := range ranges {
		r := &ranges[i]
		b = binary.LittleEndian.AppendUint32(b, r.Attributes)
		b = binary.LittleEndian.AppendUint32(b, r.Length)
		b = binary.LittleEndian.AppendUint64(b, r.LBA)
	}
	return b
}

// ParseDSMRanges reads n ranges of a range list.
func ParseDSMRanges(b []byte, n int) ([]DSMRange, error) {
	c := cursor{what: "dataset management ranges", b: b}
	ranges := make([]DSMRange, c.count(uint64(max(n, 0)), dsmRangeBytes))
	for i := range ranges {
		ranges[i] = DSMRange{Attributes: c.u32(), Length: c.u32(), LBA: c.u64()}
	}
	return ranges, c.err
}
