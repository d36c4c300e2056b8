package nvme

import "fmt"

// Types of namespace identification descriptors (Base Specification, figure
// "Identify – Namespace Identification Descriptor").
const (
	nidTypeEUI64 = 1
	nidTypeNGUID = 2
	nidTypeUUID  = 3
	nidTypeCSI   = 4

	nidHeaderSize = 4
)

// NamespaceIdentity is what the namespace identification descriptors (Identify
// CNS 03h) say about a namespace. The identifiers are in the byte order of the
// wire, which is that of their text form; zero means that there is none.
type NamespaceIdentity struct {
	EUI64  [8]byte
	NGUID  [16]byte
	UUID   [16]byte
	CSI    CSI
	HasCSI bool // a descriptor told CSI; without one it is the NVM command set
}

// ParseNamespaceDescriptors reads a list of namespace identification
// descriptors. Descriptors of types that it does not know are passed over. A
// known type with a wrong length, one given twice, or a length that leads
// outside of b is a DecodeError; what stood before it is returned with it.
func ParseNamespaceDescriptors(b []byte) (NamespaceIdentity, error) {
	var id NamespaceIdentity
	var seen [nidTypeCSI + 1]bool
	for offset := 0; offset+nidHeaderSize <= len(b); {
		kind, length := b[offset], int(b[offset+1])
		if length == 0 {
			break // end of the list
		}
		value := b[offset+nidHeaderSize:]
		if length > len(value) {
			return id, malformed("namespace descriptors", "%d bytes at offset %d of %d", length, offset, len(b))
		}
		if want := nidLength(kind); want != 0 {
			if want != length || seen[kind] {
				return id, malformed("namespace descriptors", "type %d of %d bytes at offset %d", kind, length, offset)
			}
			seen[kind] = true
			id.set(kind, value[:length])
		}
		offset += nidHeaderSize + length
	}
	return id, nil
}

// nidLength returns the length of a known descriptor type, else 0.
func nidLength(kind uint8) int {
	switch kind {
	case nidTypeEUI64:
		return 8
	case nidTypeNGUID, nidTypeUUID:
		return 16
	case nidTypeCSI:
		return 1
	}
	return 0
}

func (id *NamespaceIdentity) set(kind uint8, value []byte) {
	switch kind {
	case nidTypeEUI64:
		copy(id.EUI64[:], value)
	case nidTypeNGUID:
		copy(id.NGUID[:], value)
	case nidTypeUUID:
		copy(id.UUID[:], value)
	case nidTypeCSI:
		id.CSI, id.HasCSI = CSI(value[0]), true
	}
}

// AppendBinary appends the descriptors of the identifiers that are not zero,
// padded to IdentifyDataSize.
func (id *NamespaceIdentity) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	add := func(kind uint8, value []byte) {
		b = append(b, kind, uint8(len(value)), 0, 0)
		b = append(b, value...)
	}
	if id.EUI64 != [8]byte{} {
		add(nidTypeEUI64, id.EUI64[:])
	}
	if id.NGUID != [16]byte{} {
		add(nidTypeNGUID, id.NGUID[:])
	}
	if id.UUID != [16]byte{} {
		add(nidTypeUUID, id.UUID[:])
	}
	if id.HasCSI {
		add(nidTypeCSI, []byte{uint8(id.CSI)})
	}
	return append(b, make([]byte, IdentifyDataSize-(len(b)-start))...), nil
}

// UnmarshalBinary is ParseNamespaceDescriptors.
func (id *NamespaceIdentity) UnmarshalBinary(b []byte) error {
	parsed, err := ParseNamespaceDescriptors(b)
	if err == nil {
		*id = parsed
	}
	return err
}

// IsZero tells whether no identifier of the namespace is known, so that it
// cannot be told from another one.
func (id *NamespaceIdentity) IsZero() bool {
	return id.EUI64 == [8]byte{} && id.NGUID == [16]byte{} && id.UUID == [16]byte{}
}

// Same tells whether both describe the same namespace: at least one identifier
// is known to both, and none that both know differs.
func (id *NamespaceIdentity) Same(other *NamespaceIdentity) bool {
	same := false
	for _, p := range [...][2][]byte{
		{id.EUI64[:], other.EUI64[:]},
		{id.NGUID[:], other.NGUID[:]},
		{id.UUID[:], other.UUID[:]},
	} {
		a, b := string(p[0]), string(p[1])
		if isZero(p[0]) || isZero(p[1]) {
			continue
		}
		if a != b {
			return false
		}
		same = true
	}
	return same
}

func isZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// String returns the best identifier in the kernel's form of a wwid: "uuid.",
// else "eui." with NGUID or EUI-64 in hexadecimal, else "none".
func (id *NamespaceIdentity) String() string {
	switch {
	case id.UUID != [16]byte{}:
		return "uuid." + FormatUUID(id.UUID)
	case id.NGUID != [16]byte{}:
		return fmt.Sprintf("eui.%x", id.NGUID)
	case id.EUI64 != [8]byte{}:
		return fmt.Sprintf("eui.%x", id.EUI64)
	}
	return "none"
}

// FormatUUID returns a UUID in its text form of 36 characters.
func FormatUUID(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
