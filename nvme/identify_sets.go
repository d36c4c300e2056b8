package nvme

import "structs"

const maxSetEntries = 31

// NVMSetList is the NVM Set List, 4096 bytes (Base Specification 2.1, figure
// "NVM Set List"; CNS 04h).
type NVMSetList struct {
	_      structs.HostLayout
	NUMENT uint8 // entries in use, at most 31
	_      [127]byte
	Sets   [maxSetEntries]NVMSet
}

// NVMSet is an NVM Set Attributes Entry, 128 bytes.
type NVMSet struct {
	_      structs.HostLayout
	NSETID uint16 // NVM set
	ENDGID uint16 // endurance group
	_      [4]byte
	R4KRT  uint32  // random 4 KiB read typical, 100 ns
	OWS    uint32  // optimal write size, bytes
	TNVMSC Uint128 // total capacity, bytes
	UNVMSC Uint128 // unallocated capacity, bytes
	_      [80]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *NVMSetList) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *NVMSetList) UnmarshalBinary(b []byte) error {
	if err := decode("NVM set list", b, l); err != nil {
		return err
	}
	return checkCount("NVM set list", int(l.NUMENT), len(l.Sets))
}

// Entries returns the entries in use.
func (l *NVMSetList) Entries() []NVMSet { return l.Sets[:min(int(l.NUMENT), len(l.Sets))] }

// DomainList is the Domain List, 4096 bytes (figure "Domain List"; CNS 18h).
type DomainList struct {
	_       structs.HostLayout
	NUMENT  uint8 // entries in use, at most 31
	_       [127]byte
	Domains [maxSetEntries]Domain
}

// Domain is a Domain Attributes Entry, 128 bytes.
type Domain struct {
	_     structs.HostLayout
	DID   uint16 // domain
	_     [14]byte
	TDC   Uint128 // total capacity, bytes
	UDC   Uint128 // unallocated capacity, bytes
	MEGDC Uint128 // maximum capacity of an endurance group, bytes; 0 not told
	_     [64]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *DomainList) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *DomainList) UnmarshalBinary(b []byte) error {
	if err := decode("domain list", b, l); err != nil {
		return err
	}
	return checkCount("domain list", int(l.NUMENT), len(l.Domains))
}

// Entries returns the entries in use.
func (l *DomainList) Entries() []Domain { return l.Domains[:min(int(l.NUMENT), len(l.Domains))] }

// NamespaceGranularityList is the Namespace Granularity List, 4096 bytes (NVM
// Command Set Specification, figure of that name; CNS 16h).
type NamespaceGranularityList struct {
	_          structs.HostLayout
	Attributes uint32 // bit 0: an entry for each LBA format, else one for all
	NUMD       uint8  // entries, minus one, at most 15
	_          [27]byte
	Items      [16]NamespaceGranularity
	_          [3808]byte
}

// NamespaceGranularity is one entry of a NamespaceGranularityList, 16 bytes.
type NamespaceGranularity struct {
	_    structs.HostLayout
	Size uint64 // namespace size granularity, bytes
	Cap  uint64 // namespace capacity granularity, bytes
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *NamespaceGranularityList) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *NamespaceGranularityList) UnmarshalBinary(b []byte) error {
	if err := decode("namespace granularity list", b, l); err != nil {
		return err
	}
	return checkCount("namespace granularity list", int(l.NUMD)+1, len(l.Items))
}

// Entries returns the entries in use, 1 to 16.
func (l *NamespaceGranularityList) Entries() []NamespaceGranularity {
	return l.Items[:min(int(l.NUMD)+1, len(l.Items))]
}

// UUIDList is the UUID List, 4096 bytes (figure "UUID List"; CNS 17h).
type UUIDList struct {
	_     structs.HostLayout
	_     [32]byte
	Items [127]UUIDEntry
}

// UUIDEntry is one entry of a UUIDList, 32 bytes.
type UUIDEntry struct {
	_      structs.HostLayout
	Header uint8 // association in bits 1:0: 0 none, 1 vendor, 2 subsystem vendor
	_      [15]byte
	UUID   [16]byte // zero ends the list
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *UUIDList) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *UUIDList) UnmarshalBinary(b []byte) error { return decode("UUID list", b, l) }

// Index returns the UUID index for a command, 1 to 127, of the UUID, and false
// when the list does not hold it.
func (l *UUIDList) Index(uuid [16]byte) (uint8, bool) {
	for i := range l.Items {
		switch l.Items[i].UUID {
		case [16]byte{}:
			return 0, false
		case uuid:
			return uint8(i + 1), true
		}
	}
	return 0, false
}

func checkCount(what string, n, most int) error {
	if n > most {
		return malformed(what, "%d entries, at most %d", n, most)
	}
	return nil
}
