//qpoll:hot

package pdu

import "encoding/binary"

// Offsets of the fields of H2CData, C2HData and R2T, for FEI. CCCID is also
// what an engine names that finds no command of that identifier.
const (
	OffCCCID = 8
	OffTTAG  = 10
	OffDATAO = 12 // and R2TO
	OffDATAL = 16 // and R2TL
)

// H2CData is a view of the header of a Host to Controller Data Transfer.
type H2CData [H2CDataSize]byte

// H2CDataFields are the fields of an H2CData. The flags are a parameter of
// Encode of their own because the compiler keeps a struct of at most four
// fields in registers.
type H2CDataFields struct {
	CCCID uint16 // command identifier of the command
	TTAG  uint16 // transfer tag of the R2T
	DATAO uint32 // offset of the data in the command's data, bytes
	DATAL uint32 // length of the data in this PDU, bytes, not 0
}

// Encode writes the whole header. l is the layout for TypeH2CData, flags is
// LastPDU or 0; the digest flags come from the layout.
func (h *H2CData) Encode(l *Layout, flags Flags, f H2CDataFields) {
	h.Common().put(l.data|uint32(flags)<<8, l.over+f.DATAL)
	binary.LittleEndian.PutUint64(h[8:], uint64(f.CCCID)|uint64(f.TTAG)<<16|uint64(f.DATAO)<<32)
	binary.LittleEndian.PutUint64(h[16:], uint64(f.DATAL))
}

// Common returns the common header.
func (h *H2CData) Common() *Common { return (*Common)(h[:]) }

// CCCID returns the command identifier, bytes 9:8.
func (h *H2CData) CCCID() uint16 { return binary.LittleEndian.Uint16(h[8:]) }

// TTAG returns the transfer tag, bytes 11:10.
func (h *H2CData) TTAG() uint16 { return binary.LittleEndian.Uint16(h[10:]) }

// DATAO returns the data offset in bytes, bytes 15:12.
func (h *H2CData) DATAO() uint32 { return binary.LittleEndian.Uint32(h[12:]) }

// DATAL returns the data length in bytes, bytes 19:16.
func (h *H2CData) DATAL() uint32 { return binary.LittleEndian.Uint32(h[16:]) }

// SetDATAO sets the data offset.
func (h *H2CData) SetDATAO(n uint32) { binary.LittleEndian.PutUint32(h[12:], n) }

// SetDATAL sets the data length.
func (h *H2CData) SetDATAL(n uint32) { binary.LittleEndian.PutUint32(h[16:], n) }

// Check checks the fields after the common header against the length of the
// data that the common header gives. The error is an *Error.
func (h *H2CData) Check(s Shape) error {
	if n := h.DATAL(); n == s.data && n <= ^h.DATAO() {
		return nil
	}
	return dataError((*[24]byte)(h), s)
}

// C2HData is a view of the header of a Controller to Host Data Transfer.
type C2HData [C2HDataSize]byte

// C2HDataFields are the fields of a C2HData.
type C2HDataFields struct {
	CCCID uint16 // command identifier of the command
	DATAO uint32 // offset of the data in the command's data, bytes
	DATAL uint32 // length of the data in this PDU, bytes, not 0
}

// Encode writes the whole header. l is the layout for TypeC2HData, flags are
// any of LastPDU and Success; the digest flags come from the layout.
func (h *C2HData) Encode(l *Layout, flags Flags, f C2HDataFields) {
	h.Common().put(l.data|uint32(flags)<<8, l.over+f.DATAL)
	binary.LittleEndian.PutUint64(h[8:], uint64(f.CCCID)|uint64(f.DATAO)<<32)
	binary.LittleEndian.PutUint64(h[16:], uint64(f.DATAL))
}

// Common returns the common header.
func (h *C2HData) Common() *Common { return (*Common)(h[:]) }

// CCCID returns the command identifier, bytes 9:8.
func (h *C2HData) CCCID() uint16 { return binary.LittleEndian.Uint16(h[8:]) }

// DATAO returns the data offset in bytes, bytes 15:12.
func (h *C2HData) DATAO() uint32 { return binary.LittleEndian.Uint32(h[12:]) }

// DATAL returns the data length in bytes, bytes 19:16.
func (h *C2HData) DATAL() uint32 { return binary.LittleEndian.Uint32(h[16:]) }

// SetDATAO sets the data offset.
func (h *C2HData) SetDATAO(n uint32) { binary.LittleEndian.PutUint32(h[12:], n) }

// SetDATAL sets the data length.
func (h *C2HData) SetDATAL(n uint32) { binary.LittleEndian.PutUint32(h[16:], n) }

// Check checks the fields after the common header against the length of the
// data that the common header gives. The error is an *Error.
func (h *C2HData) Check(s Shape) error {
	if n := h.DATAL(); n == s.data && n <= ^h.DATAO() {
		return nil
	}
	return dataError((*[24]byte)(h), s)
}

// R2T is a view of the header of a Ready to Transfer.
type R2T [R2TSize]byte

// R2TFields are the fields of an R2T.
type R2TFields struct {
	CCCID uint16 // command identifier of the command
	TTAG  uint16 // transfer tag, chosen by the controller, for the H2CData that answer
	R2TO  uint32 // offset of the wanted data in the command's data, bytes
	R2TL  uint32 // length of the wanted data, bytes, not 0
}

// Encode writes the whole header. l is the layout for TypeR2T.
func (h *R2T) Encode(l *Layout, f R2TFields) {
	h.Common().put(l.bare, l.bareLen)
	binary.LittleEndian.PutUint64(h[8:], uint64(f.CCCID)|uint64(f.TTAG)<<16|uint64(f.R2TO)<<32)
	binary.LittleEndian.PutUint64(h[16:], uint64(f.R2TL))
}

// Common returns the common header.
func (h *R2T) Common() *Common { return (*Common)(h[:]) }

// CCCID returns the command identifier, bytes 9:8.
func (h *R2T) CCCID() uint16 { return binary.LittleEndian.Uint16(h[8:]) }

// TTAG returns the transfer tag, bytes 11:10.
func (h *R2T) TTAG() uint16 { return binary.LittleEndian.Uint16(h[10:]) }

// R2TO returns the offset of the wanted data in bytes, bytes 15:12.
func (h *R2T) R2TO() uint32 { return binary.LittleEndian.Uint32(h[12:]) }

// R2TL returns the length of the wanted data in bytes, bytes 19:16.
func (h *R2T) R2TL() uint32 { return binary.LittleEndian.Uint32(h[16:]) }

// SetR2TO sets the offset of the wanted data.
func (h *R2T) SetR2TO(n uint32) { binary.LittleEndian.PutUint32(h[12:], n) }

// SetR2TL sets the length of the wanted data.
func (h *R2T) SetR2TL(n uint32) { binary.LittleEndian.PutUint32(h[16:], n) }

// Check checks the fields after the common header. The error is an *Error.
func (h *R2T) Check() error {
	if h.R2TL()-1 < ^h.R2TO() {
		return nil
	}
	return r2tError(h)
}
