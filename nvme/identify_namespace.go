package nvme

import (
	"math"
	"math/bits"
	"structs"
)

// IdentifyNamespace is the Identify Namespace data structure of the NVM
// command set, 4096 bytes (NVM Command Set Specification 1.1, figure "Identify
// – Identify Namespace Data Structure, NVM Command Set"). A namespace that is
// not active gives zeros.
type IdentifyNamespace struct {
	_           structs.HostLayout
	NSZE        uint64        // size in logical blocks
	NCAP        uint64        // capacity in logical blocks
	NUSE        uint64        // utilization in logical blocks
	NSFEAT      uint8         // NSFEAT... bits
	NLBAF       uint8         // number of LBA formats, minus one
	FLBAS       uint8         // formatted LBA size; see FormatIndex
	MC          uint8         // metadata capabilities; MC... bits
	DPC         uint8         // data protection capabilities; DPC... bits
	DPS         uint8         // data protection settings; DPS... bits
	NMIC        uint8         // NMIC... bits
	RESCAP      uint8         // reservation capabilities; RESCAP... bits
	FPI         uint8         // format progress: bit 7 supported, 6:0 percent remaining
	DLFEAT      uint8         // deallocation features; DLFEAT... bits
	NAWUN       uint16        // atomic write unit normal, blocks minus one; 0 as the controller's
	NAWUPF      uint16        // atomic write unit power fail, blocks minus one; 0 as the controller's
	NACWU       uint16        // atomic compare and write unit, blocks minus one; 0 as the controller's
	NABSN       uint16        // atomic boundary size normal, blocks minus one; 0 none
	NABO        uint16        // atomic boundary offset, blocks
	NABSPF      uint16        // atomic boundary size power fail, blocks minus one; 0 none
	NOIOB       uint16        // optimal I/O boundary, blocks; 0 none
	NVMCAP      Uint128       // NVM capacity, bytes
	NPWG        uint16        // preferred write granularity, blocks minus one
	NPWA        uint16        // preferred write alignment, blocks minus one
	NPDG        uint16        // preferred deallocate granularity, blocks minus one
	NPDA        uint16        // preferred deallocate alignment, blocks minus one
	NOWS        uint16        // optimal write size, blocks minus one
	MSSRL       uint16        // copy: maximum single source range length, blocks
	MCL         uint32        // copy: maximum copy length, blocks
	MSRC        uint8         // copy: maximum source range count, minus one
	KPIOS       uint8         // key per I/O status
	NULBAF      uint8         // number of unique capability LBA formats
	_           [1]byte       //
	KPIODAAG    uint32        // key per I/O alignment and granularity, blocks minus one
	_           [4]byte       //
	ANAGRPID    uint32        // ANA group
	_           [3]byte       //
	NSATTR      uint8         // bit 0: write protected
	NVMSETID    uint16        // NVM set
	ENDGID      uint16        // endurance group
	NGUID       [16]byte      // globally unique identifier, big endian; zero if none
	EUI64       [8]byte       // IEEE extended unique identifier, big endian; zero if none
	LBAF        [64]LBAFormat // see Formats
	VendorBytes [3712]byte    // vendor specific
}

// AppendBinary appends the 4096 bytes of the structure.
func (n *IdentifyNamespace) AppendBinary(b []byte) ([]byte, error) { return encode(b, n) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (n *IdentifyNamespace) UnmarshalBinary(b []byte) error {
	return decode("identify namespace", b, n)
}

// Bits of IdentifyNamespace.NSFEAT.
const (
	NSFEATThin         uint8 = 1 << 0 // thin provisioning
	NSFEATAtomic       uint8 = 1 << 1 // NAWUN, NAWUPF and NACWU apply, not the controller's
	NSFEATDeallocError uint8 = 1 << 2 // deallocated or unwritten logical block error
	NSFEATUIDReuse     uint8 = 1 << 3 // NGUID and EUI64 are never reused
	NSFEATOptPerfMask  uint8 = 3 << 4 // 1 and up: NPWG, NPWA, NOWS valid; see HasWriteHints
	NSFEATMultiAtomic  uint8 = 1 << 6 // MAM: multiple atomicity mode
	NSFEATOptRead      uint8 = 1 << 7 // OPTRPERF: NPRG, NPRA, NORS valid
)

// Bits of IdentifyNamespace.MC.
const (
	MCExtended uint8 = 1 << 0 // metadata at the end of each block
	MCSeparate uint8 = 1 << 1 // metadata in a buffer of its own
)

// Bits of IdentifyNamespace.DPC.
const (
	DPCType1 uint8 = 1 << 0
	DPCType2 uint8 = 1 << 1
	DPCType3 uint8 = 1 << 2
	DPCFirst uint8 = 1 << 3 // protection information in the first bytes of the metadata
	DPCLast  uint8 = 1 << 4 // protection information in the last bytes of the metadata
)

// Bits of IdentifyNamespace.DPS.
const (
	DPSTypeMask uint8 = 7 << 0 // protection information type: 0 none, 1 to 3
	DPSFirst    uint8 = 1 << 3 // protection information in the first bytes of the metadata
)

// Bits of NMIC.
const (
	NMICShared    uint8 = 1 << 0 // may be attached to several controllers
	NMICDispersed uint8 = 1 << 1 // may be reached through several subsystems
)

// Bits of RESCAP.
const (
	RESCAPPersistPowerLoss                uint8 = 1 << 0
	RESCAPWriteExclusive                  uint8 = 1 << 1
	RESCAPExclusiveAccess                 uint8 = 1 << 2
	RESCAPWriteExclusiveRegistrantsOnly   uint8 = 1 << 3
	RESCAPExclusiveAccessRegistrantsOnly  uint8 = 1 << 4
	RESCAPWriteExclusiveAllRegistrants    uint8 = 1 << 5
	RESCAPExclusiveAccessAllRegistrants   uint8 = 1 << 6
	RESCAPIgnoreExistingKeyFromRevision13 uint8 = 1 << 7
)

// Bits and values of IdentifyNamespace.DLFEAT.
const (
	DLFEATReadMask        uint8 = 7 << 0 // what a deallocated block reads as
	DLFEATReadUnknown     uint8 = 0
	DLFEATReadZeroes      uint8 = 1
	DLFEATReadOnes        uint8 = 2
	DLFEATWriteZeroesDEAC uint8 = 1 << 3 // deallocate bit of Write Zeroes
	DLFEATGuardCRC        uint8 = 1 << 4 // guard field is the CRC of what is read
)

// NSATTRWriteProtected in NSATTR: every write fails.
const NSATTRWriteProtected uint8 = 1 << 0

// LBAFormat is an LBA format, 4 bytes (figure "LBA Format Data Structure, NVM
// Command Set Specific").
type LBAFormat struct {
	_     structs.HostLayout
	MS    uint16 // metadata size, bytes
	LBADS uint8  // LBA data size, power of two; 0 when the format is not available
	RP    uint8  // relative performance in bits 1:0, 0 best
}

// The block sizes that are taken for real: the specification's least, and one
// above anything that can be transferred.
const minLBADS, maxLBADS = 9, 24

// BlockSize returns the block size in bytes, 512 to 16 MiB, and false when the
// format is not available or its size is outside of that.
func (f LBAFormat) BlockSize() (uint32, bool) {
	if f.LBADS < minLBADS || f.LBADS > maxLBADS {
		return 0, false
	}
	return 1 << f.LBADS, true
}

// formats returns how many LBA formats there are, 1 to 64.
func (n *IdentifyNamespace) formats() int {
	return min(int(n.NLBAF)+1+int(n.NULBAF), len(n.LBAF))
}

// Formats returns the LBA formats that the namespace supports, 1 to 64.
func (n *IdentifyNamespace) Formats() []LBAFormat { return n.LBAF[:n.formats()] }

// FormatIndex returns the index of the current format. The two upper bits of
// the index count only when there are more than 16 formats.
func (n *IdentifyNamespace) FormatIndex() int {
	index := int(n.FLBAS & 0xf)
	if n.formats() > 16 {
		index |= int(field(n.FLBAS, 5, 2)) << 4
	}
	return index
}

// Format returns the current LBA format, or a DecodeError when the namespace
// points at none or at one without a usable block size.
func (n *IdentifyNamespace) Format() (LBAFormat, error) {
	i := n.FormatIndex()
	if i >= n.formats() {
		return LBAFormat{}, malformed("identify namespace", "LBA format %d of %d", i, n.formats())
	}
	f := n.LBAF[i]
	if _, ok := f.BlockSize(); !ok {
		return LBAFormat{}, malformed("identify namespace", "LBA format %d has a data size of 2^%d bytes", i, f.LBADS)
	}
	return f, nil
}

// ExtendedMetadata tells whether metadata follows each block's data in the
// data buffer. It means nothing for a format without metadata.
func (n *IdentifyNamespace) ExtendedMetadata() bool { return bit(n.FLBAS, 4) }

// Bytes returns the size of the namespace in bytes, data without metadata, or
// a DecodeError when it does not fit an int64 file offset.
func (n *IdentifyNamespace) Bytes() (int64, error) {
	f, err := n.Format()
	if err != nil {
		return 0, err
	}
	hi, lo := bits.Mul64(n.NSZE, 1<<f.LBADS)
	if hi != 0 || lo > math.MaxInt64 {
		return 0, malformed("identify namespace", "%d blocks of 2^%d bytes", n.NSZE, f.LBADS)
	}
	return int64(lo), nil
}

// Active tells whether the structure describes an active namespace.
func (n *IdentifyNamespace) Active() bool { return n.NSZE != 0 }

// ProtectionType returns the protection information type: 0 none, 1 to 3.
func (n *IdentifyNamespace) ProtectionType() uint8 { return n.DPS & DPSTypeMask }

// HasWriteHints tells whether NPWG, NPWA and NOWS are valid.
func (n *IdentifyNamespace) HasWriteHints() bool { return n.NSFEAT&NSFEATOptPerfMask != 0 }

// FormatRemaining returns the percentage of a format that is still to be done,
// and false when the namespace does not tell.
func (n *IdentifyNamespace) FormatRemaining() (percent uint8, ok bool) {
	return n.FPI & 0x7f, bit(n.FPI, 7)
}
