package nvme

import (
	"fmt"
	"time"
)

// Values of the controller ID field in a Connect command on the admin queue
// (Base Specification 6.3).
const (
	ControllerIDDynamic   uint16 = 0xffff // dynamic controller model: any controller
	ControllerIDStaticAny uint16 = 0xfffe // static controller model: any controller
)

// SQHeadNoFlowControl in the SQ head field of a successful Connect response
// says that submission queue flow control is off (Base Specification 6.3).
const SQHeadNoFlowControl uint16 = 0xffff

// ConnectAttributes is the CATTR field of a Connect command (figure "Connect
// Command – Submission Queue Entry"). Its two low bits are the queue's
// priority class.
type ConnectAttributes uint8

// Bits of ConnectAttributes.
const (
	ConnectPriorityUrgent       ConnectAttributes = 0
	ConnectPriorityHigh         ConnectAttributes = 1
	ConnectPriorityMedium       ConnectAttributes = 2
	ConnectPriorityLow          ConnectAttributes = 3
	ConnectDisableFlowControl   ConnectAttributes = 1 << 2
	ConnectIndividualDeletion   ConnectAttributes = 1 << 3 // host supports deleting single I/O queues
	ConnectDiscoveryControllers ConnectAttributes = 1 << 4 // the connecting entity is a discovery controller
)

// ConnectCommand is the Connect command, which creates a queue. Its data is a
// ConnectData; the transport sets the data pointer.
type ConnectCommand struct {
	QID        uint16 // 0 for the admin queue
	SQSize     uint16 // entries minus one, as on the wire
	Attributes ConnectAttributes
	KeepAlive  time.Duration // admin queue only, sent in milliseconds rounded up; 0 disables
	NVMSetID   uint16        // I/O queues only; 0 for no association
}

// Command returns the submission queue entry.
func (c ConnectCommand) Command() Command {
	cmd := fabricsCommand(FabricsConnect)
	cmd.CDW10 = uint32(c.QID) << 16 // record format 0 in the low half
	cmd.CDW11 = uint32(c.SQSize) | uint32(c.Attributes)<<16
	cmd.CDW12 = units(c.KeepAlive, time.Millisecond, maxUint32)
	cmd.CDW13 = uint32(c.NVMSetID)
	return cmd
}

// ParseConnect reads a Connect command. A record format other than 0 is a
// DecodeError; a target answers it with StatusConnectIncompatibleFormat.
func ParseConnect(cmd *Command) (ConnectCommand, error) {
	if err := expectFabrics(cmd, FabricsConnect); err != nil {
		return ConnectCommand{}, err
	}
	if f := uint16(cmd.CDW10); f != 0 {
		return ConnectCommand{}, malformed("connect command", "record format %d", f)
	}
	return ConnectCommand{
		QID:        uint16(cmd.CDW10 >> 16),
		SQSize:     uint16(cmd.CDW11),
		Attributes: ConnectAttributes(cmd.CDW11 >> 16),
		KeepAlive:  time.Duration(cmd.CDW12) * time.Millisecond,
		NVMSetID:   uint16(cmd.CDW13),
	}, nil
}

// DisconnectCommand returns a Disconnect command, which deletes the I/O queue
// that it is sent on.
func DisconnectCommand() Command { return fabricsCommand(FabricsDisconnect) }

// FabricsType returns the fabrics command type, byte 4 of a command whose
// opcode is OpFabrics.
func (c *Command) FabricsType() FabricsType { return FabricsType(c.NSID) }

// fabricsCommand returns a command of type t. The command set field of Flags
// stays zero for the types without data; the transport sets it with the SGL.
func fabricsCommand(t FabricsType) Command {
	return Command{Opcode: OpFabrics, NSID: uint32(t)}
}

func expectFabrics(cmd *Command, t FabricsType) error {
	if cmd.Opcode != OpFabrics {
		return malformed(t.String()+" command", "opcode 0x%02x", uint8(cmd.Opcode))
	}
	if got := cmd.FabricsType(); got != t {
		return malformed(t.String()+" command", "fabrics type is %v", got)
	}
	return nil
}

// ConnectResponse is dword 0 of the response to a Connect command that
// succeeded (figure "Connect Response – Dword 0 Value Based on Status Code").
type ConnectResponse struct {
	ControllerID uint16
	AuthRequired bool // in-band authentication has to follow
	// SecureRequired asks for authentication followed by a secure channel.
	SecureRequired bool
}

// Result returns the response as it stands in Completion.Result.
func (r ConnectResponse) Result() uint64 {
	return uint64(r.ControllerID) | flag[uint64](r.AuthRequired, 17) | flag[uint64](r.SecureRequired, 18)
}

// ParseConnectResponse reads Completion.Result of a successful Connect.
func ParseConnectResponse(result uint64) ConnectResponse {
	return ConnectResponse{
		ControllerID:   uint16(result),
		AuthRequired:   bit(result, 17),
		SecureRequired: bit(result, 18),
	}
}

// InvalidParameter is dword 0 of the response to a Connect command that failed
// with StatusConnectInvalidParameters: it points at the offending byte.
type InvalidParameter struct {
	Offset uint16 // in bytes (IPO)
	InData bool   // from the start of the data, else of the command (IATTR bit 0)
}

// Result returns the value as it stands in Completion.Result.
func (p InvalidParameter) Result() uint64 {
	return uint64(p.Offset) | flag[uint64](p.InData, 16)
}

// ParseInvalidParameter reads Completion.Result of a Connect that failed with
// StatusConnectInvalidParameters.
func ParseInvalidParameter(result uint64) InvalidParameter {
	return InvalidParameter{Offset: uint16(result), InData: bit(result, 16)}
}

// String names the field of the command or data that the offset falls into.
func (p InvalidParameter) String() string {
	where, fields := "command", connectCommandFields
	if p.InData {
		where, fields = "data", connectDataFields
	}
	for _, f := range fields {
		if p.Offset >= f.from && p.Offset < f.to {
			return fmt.Sprintf("%s (%s offset %d)", f.name, where, p.Offset)
		}
	}
	return fmt.Sprintf("%s offset %d", where, p.Offset)
}

type fieldRange struct {
	from, to uint16
	name     string
}

var connectCommandFields = []fieldRange{
	{24, 40, "SGL descriptor"}, {40, 42, "record format"}, {42, 44, "queue ID"},
	{44, 46, "queue size"}, {46, 47, "attributes"}, {48, 52, "keep alive timeout"},
	{52, 54, "NVM set"},
}

var connectDataFields = []fieldRange{
	{0, 16, "host ID"}, {16, 18, "controller ID"},
	{256, 512, "subsystem NQN"}, {512, 768, "host NQN"},
}
