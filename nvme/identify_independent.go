package nvme

import "structs"

// IdentifyNamespaceIndependent is the I/O Command Set Independent Identify
// Namespace data structure, 4096 bytes (Base Specification 2.1, figure of that
// name; CNS 08h).
type IdentifyNamespaceIndependent struct {
	_        structs.HostLayout
	NSFEAT   uint8  // NSFEATIndependent... bits
	NMIC     uint8  // NMIC... bits
	RESCAP   uint8  // RESCAP... bits
	FPI      uint8  // format progress: bit 7 supported, 6:0 percent remaining
	ANAGRPID uint32 // ANA group
	NSATTR   uint8  // bit 0: write protected
	_        [1]byte
	NVMSETID uint16 // NVM set
	ENDGID   uint16 // endurance group
	NSTAT    uint8  // NSTAT... bits
	KPIOS    uint8  // key per I/O status
	MAXKT    uint16 // maximum key tag
	_        [2]byte
	RGRPID   uint32 // reachability group
	_        [4072]byte
}

// Bits of IdentifyNamespaceIndependent.NSFEAT.
const (
	NSFEATIndependentUIDReuse   uint8 = 1 << 3 // NGUID and EUI64 are never reused
	NSFEATIndependentRotational uint8 = 1 << 4 // rotational media
	NSFEATIndependentNoCache    uint8 = 1 << 5 // no volatile write cache for this namespace
)

// Bits and values of IdentifyNamespaceIndependent.NSTAT.
const (
	NSTATReady        uint8 = 1 << 0
	NSTATImpactMask   uint8 = 3 << 1 // whether I/O is degraded
	NSTATImpactNone   uint8 = 2 << 1
	NSTATImpactedNow  uint8 = 3 << 1
	NSTATImpactUntold uint8 = 0 << 1
)

// AppendBinary appends the 4096 bytes of the structure.
func (n *IdentifyNamespaceIndependent) AppendBinary(b []byte) ([]byte, error) { return encode(b, n) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (n *IdentifyNamespaceIndependent) UnmarshalBinary(b []byte) error {
	return decode("independent identify namespace", b, n)
}

// Ready tells whether the namespace is ready for I/O.
func (n *IdentifyNamespaceIndependent) Ready() bool { return n.NSTAT&NSTATReady != 0 }
