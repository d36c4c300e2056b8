package nvme

import "fmt"

// Status is the status field of a completion queue entry without the phase
// tag (Base Specification 3.3.3.2.1): status code in bits 7:0, status code
// type in 10:8, command retry delay in 12:11, more in 13, do not retry in 14.
//
// Status is an error. errors.Is compares the status code type and status code
// alone, so errors.Is(err, StatusLBAOutOfRange) holds with and without DNR.
// Turn a Status into an error with Err, which gives nil for success.
type Status uint16

const (
	statusCodeMask Status = 0x07ff
	statusCRDShift        = 11
	statusMore     Status = 1 << 13
	statusDNR      Status = 1 << 14
)

// StatusDNR is the do not retry bit. A target ORs it into a status; a host
// reads it with the DNR method.
const StatusDNR = statusDNR

// StatusMore is the more bit: the Error Information log has details.
const StatusMore = statusMore

// SCT is a status code type.
type SCT uint8

// The status code types (Base Specification, figure "Status Code – Status
// Code Type Values").
const (
	SCTGeneric         SCT = 0
	SCTCommandSpecific SCT = 1
	SCTMedia           SCT = 2
	SCTPath            SCT = 3
	SCTVendor          SCT = 7
)

// String returns the type in words.
func (t SCT) String() string {
	switch t {
	case SCTGeneric:
		return "Generic Command Status"
	case SCTCommandSpecific:
		return "Command Specific Status"
	case SCTMedia:
		return "Media and Data Integrity Errors"
	case SCTPath:
		return "Path Related Status"
	case SCTVendor:
		return "Vendor Specific"
	}
	return numbered("status code type", uint32(t), false)
}

// MakeStatus composes a Status from a type and a code.
func MakeStatus(t SCT, code uint8) Status { return Status(t&7)<<8 | Status(code) }

// Code returns the status code type and status code alone, which is what the
// Status... constants hold.
func (s Status) Code() Status { return s & statusCodeMask }

// SCT returns the status code type.
func (s Status) SCT() SCT { return SCT(s >> 8 & 7) }

// SC returns the status code within its type.
func (s Status) SC() uint8 { return uint8(s) }

// CRD returns the command retry delay: 0 for none, 1 to 3 for the CRDT1 to
// CRDT3 fields of Identify Controller.
func (s Status) CRD() uint8 { return uint8(s >> statusCRDShift & 3) }

// WithCRD returns s with its command retry delay index set to n (0 to 3).
func (s Status) WithCRD(n uint8) Status {
	return s&^(3<<statusCRDShift) | Status(n&3)<<statusCRDShift
}

// More tells whether the Error Information log holds more about this status.
func (s Status) More() bool { return s&statusMore != 0 }

// DNR tells whether the same command is expected to fail again on any
// controller of the subsystem.
func (s Status) DNR() bool { return s&statusDNR != 0 }

// OK tells whether the command succeeded.
func (s Status) OK() bool { return s&statusCodeMask == 0 }

// IsPath tells whether the status is of the path related type, so that
// another path to the namespace may well succeed.
func (s Status) IsPath() bool { return s>>8&7 == Status(SCTPath) }

// IsANA tells whether the status reports an asymmetric namespace access
// condition: inaccessible, persistent loss or transition.
func (s Status) IsANA() bool {
	c := s.Code()
	return c >= StatusANAPersistentLoss && c <= StatusANATransition
}

// IsVendor tells whether the code is in a vendor specific range.
func (s Status) IsVendor() bool { return s.SCT() == SCTVendor || s.SC() >= 0xc0 }

// Err returns nil for success, and s otherwise.
func (s Status) Err() error {
	if s.OK() {
		return nil
	}
	return s
}

// Is makes errors.Is ignore the DNR, more and retry delay bits.
func (s Status) Is(target error) bool {
	t, ok := target.(Status)
	return ok && t.Code() == s.Code()
}

// Error returns the specification's name of the status and its numbers. Where
// command sets use one value for different things, all names are given; see
// NameFor.
func (s Status) Error() string { return s.format(s.Name()) }

// ErrorFor is like Error and uses the command's opcode to choose the name.
func (s Status) ErrorFor(op Opcode) string { return s.format(s.NameFor(op)) }

func (s Status) format(name string) string {
	out := fmt.Sprintf("%s (sct 0x%x, sc 0x%02x", name, uint8(s.SCT()), s.SC())
	if s.CRD() != 0 {
		out += fmt.Sprintf(", retry delay %d", s.CRD())
	}
	if s.More() {
		out += ", more"
	}
	if s.DNR() {
		out += ", do not retry"
	}
	return out + ")"
}
