package nvme

// TRType is a transport type as discovery tells it (Base Specification 2.1,
// figure "Discovery Log Page Entry Data Structure").
type TRType uint8

// The transport types. TRTypePCIe is never on the wire; the kernel and its
// tools use the name in addresses.
const (
	TRTypePCIe TRType = 0x00
	TRTypeRDMA TRType = 0x01
	TRTypeFC   TRType = 0x02
	TRTypeTCP  TRType = 0x03
	TRTypeLoop TRType = 0xfe
)

// String returns the name that address strings use.
func (t TRType) String() string {
	switch t {
	case TRTypePCIe:
		return "pcie"
	case TRTypeRDMA:
		return "rdma"
	case TRTypeFC:
		return "fc"
	case TRTypeTCP:
		return "tcp"
	case TRTypeLoop:
		return "loop"
	}
	return numbered("transport type", uint32(t), false)
}

// ADRFam is an address family as discovery tells it.
type ADRFam uint8

// The address families.
const (
	ADRFamNone ADRFam = 0x00
	ADRFamIPv4 ADRFam = 0x01
	ADRFamIPv6 ADRFam = 0x02
	ADRFamIB   ADRFam = 0x03
	ADRFamFC   ADRFam = 0x04
	ADRFamLoop ADRFam = 0xfe
)

// String returns the name that address strings use.
func (a ADRFam) String() string {
	switch a {
	case ADRFamNone:
		return "none"
	case ADRFamIPv4:
		return "ipv4"
	case ADRFamIPv6:
		return "ipv6"
	case ADRFamIB:
		return "ib"
	case ADRFamFC:
		return "fc"
	case ADRFamLoop:
		return "loop"
	}
	return numbered("address family", uint32(a), false)
}

// SubType is a subsystem type as discovery tells it.
type SubType uint8

// The subsystem types.
const (
	SubTypeReferral  SubType = 1 // another discovery service
	SubTypeNVM       SubType = 2 // a subsystem with namespaces
	SubTypeDiscovery SubType = 3 // this discovery service
)

// String returns the type in words.
func (s SubType) String() string {
	switch s {
	case SubTypeReferral:
		return "discovery subsystem referral"
	case SubTypeNVM:
		return "nvme subsystem"
	case SubTypeDiscovery:
		return "current discovery subsystem"
	}
	return numbered("subsystem type", uint32(s), false)
}

// Bits and values of DiscoveryEntry.TREQ.
const (
	TREQSecureMask        uint8 = 3 << 0 // secure channel
	TREQSecureUnspecified uint8 = 0 << 0
	TREQSecureRequired    uint8 = 1 << 0
	TREQSecureNotRequired uint8 = 2 << 0
	TREQDisableFlow       uint8 = 1 << 2 // able to do without SQ flow control
	TREQZeroHostID        uint8 = 1 << 3 // takes a host identifier of zero
	TREQAuthMask          uint8 = 3 << 4 // authentication after Connect
	TREQAuthUnspecified   uint8 = 0 << 4
	TREQAuthRequired      uint8 = 1 << 4
	TREQAuthSecure        uint8 = 2 << 4 // followed by a secure channel
)

// Bits of DiscoveryEntry.EFLAGS.
const (
	EFLAGDuplicate  uint16 = 1 << 0 // DUPRETINFO: entries with it tell the same
	EFLAGPersistent uint16 = 1 << 1 // EPCSD: explicit persistent connections
	EFLAGNoCDC      uint16 = 1 << 2 // NCC: no DDC of this entry is connected to the CDC
)

// SecurityType is the first byte of DiscoveryEntry.TSAS for TCP (NVMe/TCP
// Transport Specification).
type SecurityType uint8

// The security types.
const (
	SecurityNone  SecurityType = 0
	SecurityTLS12 SecurityType = 1
	SecurityTLS13 SecurityType = 2
)

// String returns the type as nvme-cli prints it.
func (s SecurityType) String() string {
	switch s {
	case SecurityNone:
		return "none"
	case SecurityTLS12:
		return "tls"
	case SecurityTLS13:
		return "tls13"
	}
	return numbered("security type", uint32(s), false)
}
