//qpoll:hot

package nvme

import "structs"

// SGLDescriptorSize is the size of an SGL descriptor in bytes.
const SGLDescriptorSize = 16

// SGLDescriptor is one entry of a scatter gather list (Base Specification
// 4.3.2, figure "Generic SGL Descriptor Format"). A zero descriptor is a data
// block of no bytes. Keyed descriptors belong to RDMA and are not built here.
type SGLDescriptor struct {
	_       structs.HostLayout
	Address uint64 // memory address, or an offset into the capsule
	Length  uint32 // in bytes
	_       [3]byte
	ID      uint8 // type in bits 7:4, subtype in bits 3:0
}

// SGLType is the type of an SGL descriptor (figure "SGL Descriptor Type").
type SGLType uint8

// The descriptor types.
const (
	SGLTypeDataBlock          SGLType = 0x0
	SGLTypeBitBucket          SGLType = 0x1
	SGLTypeSegment            SGLType = 0x2
	SGLTypeLastSegment        SGLType = 0x3
	SGLTypeKeyedDataBlock     SGLType = 0x4
	SGLTypeTransportDataBlock SGLType = 0x5
	SGLTypeVendor             SGLType = 0xf
)

// SGLSubtype says what the address of a descriptor means (figure "SGL
// Descriptor Sub Type Values").
type SGLSubtype uint8

// The subtypes. SGLSubtypeTransport is what the TCP transport gives its
// transport data block (NVMe/TCP Transport Specification, section on command
// data buffers).
const (
	SGLSubtypeAddress   SGLSubtype = 0x0
	SGLSubtypeOffset    SGLSubtype = 0x1
	SGLSubtypeTransport SGLSubtype = 0xa
)

func sglID(t SGLType, s SGLSubtype) uint8 { return uint8(t)<<4 | uint8(s) }

// SGLDataBlock describes length bytes of memory at addr.
func SGLDataBlock(addr uint64, length uint32) SGLDescriptor {
	return SGLDescriptor{Address: addr, Length: length, ID: sglID(SGLTypeDataBlock, SGLSubtypeAddress)}
}

// SGLInCapsule describes length bytes of data that travel in the command
// capsule, offset bytes after the end of the submission queue entry and the
// gap that ICDOFF of Identify Controller tells.
func SGLInCapsule(offset uint64, length uint32) SGLDescriptor {
	return SGLDescriptor{Address: offset, Length: length, ID: sglID(SGLTypeDataBlock, SGLSubtypeOffset)}
}

// SGLTransport describes length bytes that the transport moves by its own
// means: PDUs in NVMe/TCP.
func SGLTransport(length uint32) SGLDescriptor {
	return SGLDescriptor{Length: length, ID: sglID(SGLTypeTransportDataBlock, SGLSubtypeTransport)}
}

// SGLSegment points to the next segment, which is not the last, of length
// bytes (a multiple of 16) at addr.
func SGLSegment(addr uint64, length uint32) SGLDescriptor {
	return SGLDescriptor{Address: addr, Length: length, ID: sglID(SGLTypeSegment, SGLSubtypeAddress)}
}

// SGLLastSegment points to the last segment, of length bytes (a multiple of
// 16) at addr.
func SGLLastSegment(addr uint64, length uint32) SGLDescriptor {
	return SGLDescriptor{Address: addr, Length: length, ID: sglID(SGLTypeLastSegment, SGLSubtypeAddress)}
}

// SGLBitBucket makes the controller drop length bytes of a read.
func SGLBitBucket(length uint32) SGLDescriptor {
	return SGLDescriptor{Length: length, ID: sglID(SGLTypeBitBucket, SGLSubtypeAddress)}
}

// Type returns the descriptor type.
func (d SGLDescriptor) Type() SGLType { return SGLType(d.ID >> 4) }

// Subtype returns the descriptor subtype.
func (d SGLDescriptor) Subtype() SGLSubtype { return SGLSubtype(d.ID & 0xf) }

// Is tells whether the descriptor is of the given type and subtype.
func (d SGLDescriptor) Is(t SGLType, s SGLSubtype) bool { return d.ID == sglID(t, s) }

// DPTR returns the descriptor as it stands in Command.DPTR.
func (d SGLDescriptor) DPTR() [2]uint64 {
	return [2]uint64{d.Address, uint64(d.Length) | uint64(d.ID)<<56}
}

// SGLFromDPTR reads the descriptor in Command.DPTR. Whether the command holds
// one at all is told by the PSDT bits of Command.Flags.
func SGLFromDPTR(dptr [2]uint64) SGLDescriptor {
	return SGLDescriptor{Address: dptr[0], Length: uint32(dptr[1]), ID: uint8(dptr[1] >> 56)}
}

// SetSGL puts the descriptor into the command's data pointer and says so in
// its flags.
func (c *Command) SetSGL(d SGLDescriptor) {
	c.DPTR = [2]uint64{d.Address, uint64(d.Length) | uint64(d.ID)<<56}
	c.Flags = c.Flags&^FlagPSDTMask | FlagSGL
}

// SGL returns the descriptor in the command's data pointer.
func (c *Command) SGL() SGLDescriptor { return SGLFromDPTR(c.DPTR) }

// HasSGL tells whether the data pointer is an SGL descriptor, not PRP entries.
func (c *Command) HasSGL() bool { return c.Flags&FlagPSDTMask != 0 }
