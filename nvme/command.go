package nvme

import "structs"

// Command is a submission queue entry of 64 bytes, exactly as it stands on
// the wire (Base Specification 3.3.3.1, figure "Common Command Format").
// All fields are little-endian, as are the machines that this module builds
// for.
type Command struct {
	_      structs.HostLayout
	Opcode Opcode // CDW0 bits 7:0
	Flags  uint8  // CDW0 bits 15:8: FUSE in 1:0, PSDT in 7:6
	CID    uint16 // CDW0 bits 31:16, set by the queue pair
	NSID   uint32
	CDW2   uint32
	CDW3   uint32
	MPTR   uint64
	DPTR   [2]uint64 // PRP entries or one SGL descriptor, set by the transport
	CDW10  uint32
	CDW11  uint32
	CDW12  uint32
	CDW13  uint32
	CDW14  uint32
	CDW15  uint32
}

// CommandSize is the size of a submission queue entry in bytes.
const CommandSize = 64

// Bits of Command.Flags.
const (
	FlagFuseNone   uint8 = 0x00 // normal operation
	FlagFuseFirst  uint8 = 0x01 // first command of a fused operation
	FlagFuseSecond uint8 = 0x02 // second command of a fused operation
	FlagFuseMask   uint8 = 0x03
	FlagSGL        uint8 = 0x40 // PSDT 01b: SGL for the data, MPTR is one contiguous buffer
	FlagSGLMeta    uint8 = 0x80 // PSDT 10b: SGL for the data, MPTR is an SGL segment
	FlagPSDTMask   uint8 = 0xc0
)
