package pdu

import "strconv"

// FES is a Fatal Error Status, why one end terminates the connection.
type FES uint16

// Fatal error statuses. The value 0x5 means one thing in a C2HTermReq and
// another in an H2CTermReq.
const (
	FESInvalidHeaderField   FES = 0x1 // Invalid PDU Header Field
	FESSequenceError        FES = 0x2 // PDU Sequence Error
	FESHeaderDigestError    FES = 0x3 // Header Digest Error
	FESDataOutOfRange       FES = 0x4 // Data Transfer Out of Range
	FESDataLimitExceeded    FES = 0x5 // in a C2HTermReq: Data Transfer Limit Exceeded
	FESR2TLimitExceeded     FES = 0x5 // in an H2CTermReq: R2T Limit Exceeded
	FESUnsupportedParameter FES = 0x6 // Unsupported Parameter
)

var fesNames = [...]string{
	FESInvalidHeaderField:   "Invalid PDU Header Field",
	FESSequenceError:        "PDU Sequence Error",
	FESHeaderDigestError:    "Header Digest Error",
	FESDataOutOfRange:       "Data Transfer Out of Range",
	FESDataLimitExceeded:    "Data Transfer or R2T Limit Exceeded",
	FESUnsupportedParameter: "Unsupported Parameter",
}

// String returns the specification's name, or "reserved FES 0x..". Name also
// tells the two meanings of 0x5 apart.
func (f FES) String() string {
	if f == 0 || int(f) >= len(fesNames) {
		return "reserved FES 0x" + hex16(uint16(f))
	}
	return fesNames[f]
}

// Name returns the specification's name as it holds in a TermReq that was sent
// by the given end.
func (f FES) Name(from End) string {
	if f != FESDataLimitExceeded {
		return f.String()
	}
	if from == Controller {
		return "Data Transfer Limit Exceeded"
	}
	return "R2T Limit Exceeded"
}

// hasFieldOffset reports whether FEI is the offset of a header field.
func (f FES) hasFieldOffset() bool {
	return f == FESInvalidHeaderField || f == FESUnsupportedParameter
}

// Error tells what is wrong with a received PDU. The error is fatal for the
// connection: the receiver sends the TermReq that AppendTermReq builds, unless
// Silent, and closes.
type Error struct {
	PDU    Type   // type of the offending PDU, as received
	FES    FES    // status for the TermReq
	FEI    uint32 // offset of the field, or the received header digest, else 0
	Field  string // name of the field in the specification, if one is to blame
	Value  uint64 // what the field holds
	Reason string // what is wrong with it

	// Silent is set if no TermReq is to be sent, which is the rule for a
	// TermReq that is itself malformed.
	Silent bool
}

// Error implements error.
func (e *Error) Error() string {
	s := "nvme/tcp: " + e.PDU.String() + ": " + e.FES.Name(e.PDU.Receiver())
	if e.Field != "" {
		s += ": " + e.Field + " " + strconv.FormatUint(e.Value, 10) + " (0x" + strconv.FormatUint(e.Value, 16) + ")"
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// NewError returns an Error for a PDU whose header fields are all valid by
// themselves, but not in the state of the connection or of the command: an
// engine's own finding. fei is the offset of the field for
// FESInvalidHeaderField and FESUnsupportedParameter, and is ignored otherwise.
func NewError(t Type, fes FES, fei uint32, field string, value uint64, reason string) *Error {
	if !fes.hasFieldOffset() {
		fei = 0
	}
	return &Error{PDU: t, FES: fes, FEI: fei, Field: field, Value: value, Reason: reason}
}

func invalid(t Type, off uint32, field string, value uint64, reason string) *Error {
	return &Error{PDU: t, FES: FESInvalidHeaderField, FEI: off, Field: field, Value: value, Reason: reason}
}

func unsupported(t Type, off uint32, field string, value uint64, reason string) *Error {
	return &Error{PDU: t, FES: FESUnsupportedParameter, FEI: off, Field: field, Value: value, Reason: reason}
}

// dataError tells what the Check of an H2CData or C2HData stumbled over.
func dataError(b *[24]byte, s Shape) error {
	h := (*H2CData)(b) // DATAO and DATAL lie the same in both
	t := s.Type()
	if h.DATAL() != s.data {
		return invalid(t, OffDATAL, "DATAL", uint64(h.DATAL()),
			"the PDU carries "+strconv.FormatUint(uint64(s.data), 10)+" bytes")
	}
	return NewError(t, FESDataOutOfRange, 0, "DATAO", uint64(h.DATAO()), "end of the data beyond 4 GiB")
}

func r2tError(h *R2T) error {
	if h.R2TL() == 0 {
		return invalid(TypeR2T, OffDATAL, "R2TL", 0, "nothing asked for")
	}
	return NewError(TypeR2T, FESDataOutOfRange, 0, "R2TO", uint64(h.R2TO()), "end of the data beyond 4 GiB")
}

func hex16(v uint16) string { return hex8(uint8(v>>8)) + hex8(uint8(v)) }
func hex32(v uint32) string { return hex16(uint16(v>>16)) + hex16(uint16(v)) }
