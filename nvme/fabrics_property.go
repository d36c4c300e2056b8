package nvme

// PropertyGetCommand is the Property Get command, which reads a controller
// property over fabrics (Base Specification 6.5). The value comes back in
// Completion.Result.
type PropertyGetCommand struct {
	Offset uint32 // one of the Reg... constants
	Size   int    // 4 or 8 bytes; see PropertySize
}

// PropertySetCommand is the Property Set command, which writes a controller
// property over fabrics (Base Specification 6.6).
type PropertySetCommand struct {
	Offset uint32 // one of the Reg... constants
	Size   int    // 4 or 8 bytes; see PropertySize
	Value  uint64 // the upper half is not sent when Size is 4
}

// NewPropertyGet returns a Property Get of the property at offset with its
// own size.
func NewPropertyGet(offset uint32) PropertyGetCommand {
	return PropertyGetCommand{Offset: offset, Size: PropertySize(offset)}
}

// NewPropertySet returns a Property Set of the property at offset with its
// own size.
func NewPropertySet(offset uint32, value uint64) PropertySetCommand {
	return PropertySetCommand{Offset: offset, Size: PropertySize(offset), Value: value}
}

// Command returns the submission queue entry.
func (p PropertyGetCommand) Command() Command {
	cmd := fabricsCommand(FabricsPropertyGet)
	cmd.CDW10 = propertyAttributes(p.Size)
	cmd.CDW11 = p.Offset
	return cmd
}

// Command returns the submission queue entry.
func (p PropertySetCommand) Command() Command {
	cmd := fabricsCommand(FabricsPropertySet)
	cmd.CDW10 = propertyAttributes(p.Size)
	cmd.CDW11 = p.Offset
	cmd.CDW12 = uint32(p.Value)
	if p.Size == 8 {
		cmd.CDW13 = uint32(p.Value >> 32)
	}
	return cmd
}

// ParsePropertyGet reads a Property Get command. A reserved size is a
// DecodeError.
func ParsePropertyGet(cmd *Command) (PropertyGetCommand, error) {
	size, err := propertySize(cmd, FabricsPropertyGet)
	if err != nil {
		return PropertyGetCommand{}, err
	}
	return PropertyGetCommand{Offset: cmd.CDW11, Size: size}, nil
}

// ParsePropertySet reads a Property Set command. A reserved size is a
// DecodeError.
func ParsePropertySet(cmd *Command) (PropertySetCommand, error) {
	size, err := propertySize(cmd, FabricsPropertySet)
	if err != nil {
		return PropertySetCommand{}, err
	}
	p := PropertySetCommand{Offset: cmd.CDW11, Size: size, Value: uint64(cmd.CDW12)}
	if size == 8 {
		p.Value |= uint64(cmd.CDW13) << 32
	}
	return p, nil
}

func propertyAttributes(size int) uint32 {
	if size == 8 {
		return 1
	}
	return 0
}

func propertySize(cmd *Command, t FabricsType) (int, error) {
	if err := expectFabrics(cmd, t); err != nil {
		return 0, err
	}
	switch cmd.CDW10 & 7 {
	case 0:
		return 4, nil
	case 1:
		return 8, nil
	}
	return 0, malformed(t.String()+" command", "property size code %d", cmd.CDW10&7)
}

// AuthCommand is the Authentication Send or Receive command (Base
// Specification 6.1 and 6.2).
type AuthCommand struct {
	Type             FabricsType // FabricsAuthSend or FabricsAuthReceive
	SecurityProtocol uint8       // SECP; 0xe9 for NVMe authentication
	ProtocolSpecific [2]uint8    // SPSP0 and SPSP1
	Length           uint32      // transfer or allocation length in bytes
}

// Command returns the submission queue entry.
func (a AuthCommand) Command() Command {
	cmd := fabricsCommand(a.Type)
	cmd.CDW10 = uint32(a.ProtocolSpecific[0])<<8 | uint32(a.ProtocolSpecific[1])<<16 | uint32(a.SecurityProtocol)<<24
	cmd.CDW11 = a.Length
	return cmd
}

// ParseAuth reads an Authentication Send or Receive command.
func ParseAuth(cmd *Command) (AuthCommand, error) {
	t := cmd.FabricsType()
	if cmd.Opcode != OpFabrics || t != FabricsAuthSend && t != FabricsAuthReceive {
		return AuthCommand{}, malformed("authentication command", "opcode 0x%02x, fabrics type %v", uint8(cmd.Opcode), t)
	}
	return AuthCommand{
		Type:             t,
		SecurityProtocol: uint8(cmd.CDW10 >> 24),
		ProtocolSpecific: [2]uint8{uint8(cmd.CDW10 >> 8), uint8(cmd.CDW10 >> 16)},
		Length:           cmd.CDW11,
	}, nil
}
