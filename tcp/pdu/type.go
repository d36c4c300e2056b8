package pdu

import "strconv"

// Type is the PDU-Type of the common header (byte 0). Bit 0 gives the
// direction: clear from host to controller, set from controller to host.
type Type uint8

// PDU types.
const (
	TypeICReq       Type = 0x00 // Initialize Connection Request
	TypeICResp      Type = 0x01 // Initialize Connection Response
	TypeH2CTermReq  Type = 0x02 // Host to Controller Terminate Connection Request
	TypeC2HTermReq  Type = 0x03 // Controller to Host Terminate Connection Request
	TypeCapsuleCmd  Type = 0x04 // Command Capsule
	TypeCapsuleResp Type = 0x05 // Response Capsule
	TypeH2CData     Type = 0x06 // Host to Controller Data Transfer
	TypeC2HData     Type = 0x07 // Controller to Host Data Transfer
	TypeR2T         Type = 0x09 // Ready to Transfer
)

// Header lengths (HLEN) in bytes, without the header digest.
const (
	CommonSize      = 8
	ICReqSize       = 128
	ICRespSize      = 128
	TermReqSize     = 24
	CapsuleCmdSize  = 72
	CapsuleRespSize = 24
	H2CDataSize     = 24
	C2HDataSize     = 24
	R2TSize         = 24

	// MaxHeaderSize is the longest header of any type.
	MaxHeaderSize = 128
)

// Other lengths in bytes.
const (
	// DigestSize is the length of a header digest and of a data digest.
	DigestSize = 4

	// MaxPDO is the largest offset that the data of a PDU can need: that of a
	// CapsuleCmd with header digest, 76 bytes, at an alignment of 18 dwords.
	MaxPDO = 144

	// TermReqMaxData is how much of the offending header a TermReq carries
	// at most, and TermReqMaxSize the length of the whole PDU then.
	TermReqMaxData = 128
	TermReqMaxSize = TermReqSize + TermReqMaxData

	// MinMaxH2CData is the least value of MAXH2CDATA.
	MinMaxH2CData = 4096

	// MaxPDA is the greatest value of HPDA and of CPDA: 0's based dwords.
	MaxPDA = 31
)

var types = [16]struct {
	name string
	hlen uint8
}{
	TypeICReq:       {"ICReq", ICReqSize},
	TypeICResp:      {"ICResp", ICRespSize},
	TypeH2CTermReq:  {"H2CTermReq", TermReqSize},
	TypeC2HTermReq:  {"C2HTermReq", TermReqSize},
	TypeCapsuleCmd:  {"CapsuleCmd", CapsuleCmdSize},
	TypeCapsuleResp: {"CapsuleResp", CapsuleRespSize},
	TypeH2CData:     {"H2CData", H2CDataSize},
	TypeC2HData:     {"C2HData", C2HDataSize},
	TypeR2T:         {"R2T", R2TSize},
}

// HeaderLen returns the header length of the type in bytes, 0 if the
// specification defines no such type.
func (t Type) HeaderLen() int {
	if int(t) >= len(types) {
		return 0
	}
	return int(types[t].hlen)
}

// Known reports whether the specification defines the type.
func (t Type) Known() bool { return t.HeaderLen() != 0 }

// Receiver returns the end of the connection that PDUs of this type go to.
func (t Type) Receiver() End { return End(^t & 1) }

// String returns the specification's short name, or "PDU type 0x.." for a
// type that it does not define.
func (t Type) String() string {
	if !t.Known() {
		return "PDU type 0x" + hex8(uint8(t))
	}
	return types[t].name
}

// isTermReq reports whether t is one of the two TermReq types.
func (t Type) isTermReq() bool { return t&^1 == TypeH2CTermReq }

// End is one of the two ends of a connection.
type End uint8

// The ends. Their values make Type.Receiver a single operation.
const (
	Host       End = 0
	Controller End = 1
)

// Peer returns the other end.
func (e End) Peer() End { return e ^ 1 }

// String returns "host" or "controller".
func (e End) String() string {
	switch e {
	case Host:
		return "host"
	case Controller:
		return "controller"
	}
	return "end " + strconv.Itoa(int(e))
}

// Flags is the FLAGS field of the common header (byte 1). Which bits have a
// meaning depends on the type; the others are reserved and ignored.
type Flags uint8

// Bits of Flags.
const (
	HDGSTF  Flags = 1 << 0 // a header digest follows the header
	DDGSTF  Flags = 1 << 1 // a data digest follows the data
	LastPDU Flags = 1 << 2 // last data PDU of an R2T (H2CData) or of a command (C2HData)
	Success Flags = 1 << 3 // C2HData: the command succeeded, no CapsuleResp follows
)

func hex8(v uint8) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[v>>4], digits[v&15]})
}
