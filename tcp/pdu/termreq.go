package pdu

import (
	"encoding/binary"
	"strconv"
)

// TermReq is a view of the header of an H2CTermReq or C2HTermReq. As data it is
// followed by the header of the offending PDU, at most TermReqMaxData bytes.
// It never has digests.
type TermReq [TermReqSize]byte

// TermReqFields are the fields of a TermReq.
type TermReqFields struct {
	FES FES
	FEI uint32 // offset of the field, or the received header digest; see FES
}

// Encode writes the whole header of a TermReq that end from sends, to be
// followed by datal bytes of the offending header.
func (h *TermReq) Encode(from End, f TermReqFields, datal int) {
	t := TypeH2CTermReq
	if from == Controller {
		t = TypeC2HTermReq
	}
	clear(h[:])
	h.Common().put(head(t, 0, TermReqSize, 0), TermReqSize+uint32(datal))
	binary.LittleEndian.PutUint16(h[8:], uint16(f.FES))
	binary.LittleEndian.PutUint32(h[10:], f.FEI)
}

// Common returns the common header.
func (h *TermReq) Common() *Common { return (*Common)(h[:]) }

// FES returns the fatal error status, bytes 9:8.
func (h *TermReq) FES() FES { return FES(binary.LittleEndian.Uint16(h[8:])) }

// FEI returns the fatal error information, bytes 13:10: for an invalid header
// field or an unsupported parameter the offset of the field in the offending
// PDU, for a header digest error the digest that was received, else reserved.
func (h *TermReq) FEI() uint32 { return binary.LittleEndian.Uint32(h[10:]) }

// AppendTermReq appends to b the TermReq with which end from answers the PDU
// whose header, as far as it was received, is given, and returns the extended
// slice. If e.Silent, it returns b as it is.
func (e *Error) AppendTermReq(b []byte, from End, header []byte) []byte {
	if e.Silent {
		return b
	}
	return AppendTermReq(b, from, TermReqFields{FES: e.FES, FEI: e.FEI}, header)
}

// PeerError tells that the peer terminated the connection with a TermReq.
type PeerError struct {
	From   End    // who sent it
	FES    FES    // why
	FEI    uint32 // see TermReq.FEI
	Header []byte // of the offending PDU, as the peer returned it
}

// Err returns the error that the TermReq stands for. header is the data that
// follows it; it is copied.
func (h *TermReq) Err(header []byte) *PeerError {
	return &PeerError{
		From:   h.Common().Type().Receiver().Peer(),
		FES:    h.FES(),
		FEI:    h.FEI(),
		Header: append([]byte(nil), header[:min(len(header), TermReqMaxData)]...),
	}
}

// Field returns the name of the header field that the peer found fault with,
// such as "DGST" in an ICReq, or "" if it named none.
func (e *PeerError) Field() string {
	if len(e.Header) == 0 || !e.FES.hasFieldOffset() {
		return ""
	}
	return fieldName(Type(e.Header[0]), e.FEI)
}

// Error implements error.
func (e *PeerError) Error() string {
	s := "nvme/tcp: connection terminated by the " + e.From.String() + ": " + e.FES.Name(e.From)
	if len(e.Header) > 0 {
		s += " in " + Type(e.Header[0]).String()
	}
	switch {
	case e.FES.hasFieldOffset():
		s += ", "
		if name := e.Field(); name != "" {
			s += name + ", "
		}
		s += "field at byte " + strconv.FormatUint(uint64(e.FEI), 10)
	case e.FES == FESHeaderDigestError:
		s += ", digest 0x" + hex32(e.FEI)
	}
	return s
}
