package nvme

import "structs"

// IdentifyNamespaceNVM is the NVM Command Set specific Identify Namespace data
// structure, 4096 bytes (NVM Command Set Specification 1.1, "NVM Command Set
// I/O Command Set Specific Identify Namespace Data Structure"; CNS 05h, CSI 0).
type IdentifyNamespaceNVM struct {
	_      structs.HostLayout
	LBSTM  uint64 // logical block storage tag mask
	PIC    uint8  // protection information capabilities; PIC... bits
	PIFA   uint8  // storage tag masking in 2:0: 0 by bits, 1 by bytes, 2 not supported
	_      [2]byte
	ELBAF  [64]ExtendedLBAFormat // one for each IdentifyNamespace.LBAF
	NPDGL  uint32                // preferred deallocate granularity large, blocks; 0 see NPDG
	NPRG   uint32                // preferred read granularity, blocks minus one
	NPRA   uint32                // preferred read alignment, blocks minus one
	NORS   uint32                // optimal read size, blocks minus one
	NPDAL  uint32                // preferred deallocate alignment large, blocks; 0 see NPDA
	LBAPSS uint32                // LBA format placement shard size, blocks
	TLBAAG uint32                // tracked LBA allocation granularity
	_      [3800]byte
}

// Bits of IdentifyNamespaceNVM.PIC.
const (
	PICStorageTag16     uint8 = 1 << 0 // storage tag with 16-bit guard formats
	PICStorageTagMask16 uint8 = 1 << 1 // storage tag mask with 16-bit guard formats
	PICStorageTagRead   uint8 = 1 << 2 // storage tag check on reads
	PICQualified        uint8 = 1 << 3 // qualified protection information formats
)

// ExtendedLBAFormat is one extended LBA format (figure "Extended LBA Format
// Data Structure").
type ExtendedLBAFormat uint32

// Protection information formats.
const (
	PIFGuard16   uint8 = 0
	PIFGuard32   uint8 = 1
	PIFGuard64   uint8 = 2
	PIFQualified uint8 = 3 // see QPIF
)

// StorageTagSize returns the number of storage tag bits in the storage and
// reference space, 0 to 64.
func (e ExtendedLBAFormat) StorageTagSize() uint8 { return uint8(field(e, 0, 7)) }

// PIF returns one of the PIF... values.
func (e ExtendedLBAFormat) PIF() uint8 { return uint8(field(e, 7, 2)) }

// QPIF returns the qualified protection information format.
func (e ExtendedLBAFormat) QPIF() uint8 { return uint8(field(e, 9, 4)) }

// AppendBinary appends the 4096 bytes of the structure.
func (n *IdentifyNamespaceNVM) AppendBinary(b []byte) ([]byte, error) { return encode(b, n) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (n *IdentifyNamespaceNVM) UnmarshalBinary(b []byte) error {
	return decode("NVM identify namespace", b, n)
}

// IdentifyControllerNVM is the NVM Command Set specific Identify Controller
// data structure, 4096 bytes (NVM Command Set Specification 1.1, "I/O Command
// Set Specific Identify Controller Data Structure for the NVM Command Set";
// CNS 06h, CSI 0). A zero limit means none, or that the controller does not
// tell; for a command whose ONCS bit is clear as well, that it is not supported.
// With the ONCS bit set the limits only recommend.
type IdentifyControllerNVM struct {
	_       structs.HostLayout
	VSL     uint8  // verify size limit; see SizeLimit
	WZSL    uint8  // write zeroes size limit; see SizeLimit
	WUSL    uint8  // write uncorrectable size limit; see SizeLimit
	DMRL    uint8  // dataset management ranges limit
	DMRSL   uint32 // dataset management range size limit, blocks
	DMSL    uint64 // dataset management size limit, blocks
	KPIOCAP uint8  // key per I/O capabilities
	WZDSL   uint8  // write zeroes with deallocate size limit; see SizeLimit
	AOCS    uint16 // admin optional command support
	VER     VS     // version of the NVM command set
	LBAMQF  uint8  // LBA migration queue format
	_       [4071]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (c *IdentifyControllerNVM) AppendBinary(b []byte) ([]byte, error) { return encode(b, c) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (c *IdentifyControllerNVM) UnmarshalBinary(b []byte) error {
	return decode("NVM identify controller", b, c)
}

// SizeLimit returns a limit of IdentifyControllerNVM in bytes, and 0 for no
// limit. minPage is CAP.MinPageSize. The limits are powers of two in that
// unit, like MDTS; one that no command reaches counts as none.
func SizeLimit(v uint8, minPage uint32) uint64 {
	if v == 0 || v >= 32 {
		return 0
	}
	return uint64(minPage) << v
}
