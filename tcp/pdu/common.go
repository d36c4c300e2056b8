//qpoll:hot

package pdu

import "encoding/binary"

// Common is a view of the common header, bytes 7:0 of every PDU.
type Common [CommonSize]byte

// Type returns PDU-Type, byte 0.
func (h *Common) Type() Type { return Type(h[0]) }

// Flags returns FLAGS, byte 1.
func (h *Common) Flags() Flags { return Flags(h[1]) }

// HLEN returns the header length in bytes, without the header digest, byte 2.
func (h *Common) HLEN() uint8 { return h[2] }

// PDO returns the offset of the data from the start of the PDU in bytes,
// byte 3. It means nothing in a PDU without data.
func (h *Common) PDO() uint8 { return h[3] }

// PLEN returns the length of the whole PDU in bytes: header, digests, padding
// and data, bytes 7:4.
func (h *Common) PLEN() uint32 { return binary.LittleEndian.Uint32(h[4:]) }

// SetType sets PDU-Type.
func (h *Common) SetType(t Type) { h[0] = uint8(t) }

// SetFlags sets FLAGS.
func (h *Common) SetFlags(f Flags) { h[1] = uint8(f) }

// SetHLEN sets HLEN.
func (h *Common) SetHLEN(n uint8) { h[2] = n }

// SetPDO sets PDO.
func (h *Common) SetPDO(n uint8) { h[3] = n }

// SetPLEN sets PLEN.
func (h *Common) SetPLEN(n uint32) { binary.LittleEndian.PutUint32(h[4:], n) }

// Offsets of the fields of the common header, for FEI.
const (
	offType  = 0
	offFlags = 1
	offHLEN  = 2
	offPDO   = 3
	offPLEN  = 4
)

// head packs the first four bytes of a common header.
func head(t Type, f Flags, hlen, pdo uint8) uint32 {
	return uint32(t) | uint32(f)<<8 | uint32(hlen)<<16 | uint32(pdo)<<24
}

// put writes the whole common header in one store.
func (h *Common) put(head, plen uint32) {
	binary.LittleEndian.PutUint64(h[:], uint64(head)|uint64(plen)<<32)
}
