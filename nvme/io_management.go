package nvme

import (
	"encoding/binary"
	"structs"
)

// ioManagementHandles is the management operation about reclaim unit handles,
// the only one that the specification defines.
const ioManagementHandles = 1

// HandleStatusCommand is the I/O Management Receive command for the status of
// reclaim unit handles (Base Specification 7.3).
type HandleStatusCommand struct {
	NSID   uint32
	Length uint64 // of the data in bytes, a multiple of 4 from 4 to 16 GiB
}

// Command returns the submission queue entry.
func (h HandleStatusCommand) Command() (Command, error) {
	if h.Length == 0 || h.Length%4 != 0 || h.Length/4 > 1<<32 {
		return Command{}, outOfRange("I/O management receive command", "length %d", h.Length)
	}
	return Command{
		Opcode: OpIOManagementReceive, NSID: h.NSID, CDW10: ioManagementHandles, CDW11: uint32(h.Length/4 - 1),
	}, nil
}

// ParseHandleStatusCommand reads an I/O Management Receive command. Another
// operation is a DecodeError.
func ParseHandleStatusCommand(cmd *Command) (HandleStatusCommand, error) {
	if err := expectIO(cmd, OpIOManagementReceive); err != nil {
		return HandleStatusCommand{}, err
	}
	if op := uint8(cmd.CDW10); op != ioManagementHandles {
		return HandleStatusCommand{}, malformed("I/O Management Receive command", "operation %d", op)
	}
	return HandleStatusCommand{NSID: cmd.NSID, Length: (uint64(cmd.CDW11) + 1) * 4}, nil
}

// HandleStatus is a Reclaim Unit Handle Status Descriptor, 32 bytes (NVM Command
// Set Specification 1.1, figure of that name).
type HandleStatus struct {
	_      structs.HostLayout
	PID    uint16 // placement identifier
	RUHID  uint16 // reclaim unit handle
	EARUTR uint32 // estimated active reclaim unit time remaining, s
	RUAMW  uint64 // reclaim unit available media writes, blocks
	_      [16]byte
}

const (
	handleStatusHeader = 16
	handleStatusSize   = 32
)

// AppendBinary appends the 32 bytes of the structure.
func (h *HandleStatus) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 32 bytes of b.
func (h *HandleStatus) UnmarshalBinary(b []byte) error { return decode("handle status", b, h) }

// ParseHandleStatus reads a Reclaim Unit Handle Status list. A count that leads
// outside of b is a DecodeError.
func ParseHandleStatus(b []byte) ([]HandleStatus, error) {
	c := cursor{what: "handle status list", b: b}
	c.skip(handleStatusHeader - 2)
	n := c.u16()
	list := make([]HandleStatus, c.count(uint64(n), handleStatusSize))
	for i := range list {
		if err := list[i].UnmarshalBinary(c.take(handleStatusSize)); err != nil {
			return nil, err
		}
	}
	return list, c.err
}

// AppendHandleStatus appends a Reclaim Unit Handle Status list.
func AppendHandleStatus(b []byte, list []HandleStatus) ([]byte, error) {
	if len(list) > 0xffff {
		return nil, outOfRange("handle status list", "%d descriptors", len(list))
	}
	b = append(b, make([]byte, handleStatusHeader-2)...)
	b = appendU16(b, uint16(len(list)))
	var err error
	for i := 0; err == nil && i < len(list); i++ {
		b, err = list[i].AppendBinary(b)
	}
	return b, err
}

// HandleUpdateCommand is the I/O Management Send command that moves placement
// identifiers to empty reclaim units (Base Specification 7.4). Its data is the
// list of placement identifiers, see AppendPlacementIDs.
type HandleUpdateCommand struct {
	NSID  uint32
	Count int // placement identifiers, 1 to 65536
}

// Command returns the submission queue entry.
func (h HandleUpdateCommand) Command() (Command, error) {
	if h.Count < 1 || h.Count > 1<<16 {
		return Command{}, outOfRange("I/O management send command", "%d placement identifiers", h.Count)
	}
	return Command{
		Opcode: OpIOManagementSend, NSID: h.NSID, CDW10: ioManagementHandles | uint32(h.Count-1)<<16,
	}, nil
}

// ParseHandleUpdate reads an I/O Management Send command. Another operation is
// a DecodeError.
func ParseHandleUpdate(cmd *Command) (HandleUpdateCommand, error) {
	if err := expectIO(cmd, OpIOManagementSend); err != nil {
		return HandleUpdateCommand{}, err
	}
	if op := uint8(cmd.CDW10); op != ioManagementHandles {
		return HandleUpdateCommand{}, malformed("I/O Management Send command", "operation %d", op)
	}
	return HandleUpdateCommand{NSID: cmd.NSID, Count: int(cmd.CDW10>>16) + 1}, nil
}

// AppendPlacementIDs appends a list of placement identifiers.
func AppendPlacementIDs(b []byte, ids []uint16) []byte { return appendU16(b, ids...) }

// ParsePlacementIDs reads n placement identifiers.
func ParsePlacementIDs(b []byte, n int) ([]uint16, error) {
	if n < 0 || len(b)/2 < n {
		return nil, malformed("placement identifiers", "%d in %d bytes", n, len(b))
	}
	ids := make([]uint16, n)
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return ids, nil
}
