//qpoll:hot

package pdu

import (
	"encoding/binary"
	"hash/crc32"
)

// castagnoli is the polynomial of both digests, the same as iSCSI's. The
// standard library computes it with the CRC32 instructions of amd64 and arm64.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest returns the digest (CRC32C) of b. A header digest covers the HLEN
// bytes of the header, a data digest the data and nothing else: unlike iSCSI's,
// data whose length is not a multiple of four is not padded.
func Digest(b []byte) uint32 { return crc32.Update(0, castagnoli, b) }

// UpdateDigest returns the digest of the bytes behind d followed by b, so that
// the digest of data in several pieces can be computed piece by piece, from 0.
func UpdateDigest(d uint32, b []byte) uint32 { return crc32.Update(d, castagnoli, b) }

// PutDigest writes d to the first DigestSize bytes of b as it goes on the wire:
// little-endian.
func PutDigest(b []byte, d uint32) { binary.LittleEndian.PutUint32(b, d) }

// GetDigest reads the digest in the first DigestSize bytes of b.
func GetDigest(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// VerifyHeader checks the header digest that follows the header of hlen bytes
// at the start of b. A mismatch gives an *Error. b must hold hlen + DigestSize
// bytes.
func VerifyHeader(b []byte, hlen int) error {
	got := binary.LittleEndian.Uint32(b[hlen:])
	if want := Digest(b[:hlen]); got != want {
		return headerDigestError(b, got, want)
	}
	return nil
}

func headerDigestError(b []byte, got, want uint32) error {
	return &Error{
		PDU:    Type(b[0]),
		FES:    FESHeaderDigestError,
		FEI:    got,
		Field:  "HDGST",
		Value:  uint64(got),
		Reason: "computed 0x" + hex32(want),
	}
}
