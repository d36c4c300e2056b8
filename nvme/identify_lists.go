package nvme

import "encoding/binary"

const (
	maxNamespaceList  = 1024
	maxIdentifierList = 2047
)

// ParseNamespaceList reads a namespace list (Base Specification 4.6.2), which
// is what Identify returns for CNSActiveNamespaces and its kin, up to its first
// zero. after is the NSID of the command: identifiers have to rise from there,
// as a host that continues with the last one would otherwise never finish. A
// full list of 1024 means that there may be more.
func ParseNamespaceList(b []byte, after uint32) ([]uint32, error) {
	if len(b) < IdentifyDataSize {
		return nil, malformed("namespace list", "%d bytes, want %d", len(b), IdentifyDataSize)
	}
	ids := make([]uint32, 0, maxNamespaceList)
	for i := range maxNamespaceList {
		id := binary.LittleEndian.Uint32(b[4*i:])
		switch {
		case id == 0:
			return ids, nil
		case id <= after || id >= NSIDAll-1:
			return nil, malformed("namespace list", "entry %d is 0x%x after 0x%x", i, id, after)
		}
		ids, after = append(ids, id), id
	}
	return ids, nil
}

// AppendNamespaceList appends the 4096 bytes of a namespace list. There may be
// at most 1024 identifiers, rising and not 0.
func AppendNamespaceList(b []byte, ids []uint32) ([]byte, error) {
	if len(ids) > maxNamespaceList {
		return nil, outOfRange("namespace list", "%d entries, at most %d", len(ids), maxNamespaceList)
	}
	last := uint32(0)
	for _, id := range ids {
		if id <= last || id >= NSIDAll-1 {
			return nil, outOfRange("namespace list", "0x%x after 0x%x", id, last)
		}
		b, last = binary.LittleEndian.AppendUint32(b, id), id
	}
	return append(b, make([]byte, IdentifyDataSize-4*len(ids))...), nil
}

// ParseIdentifierList reads a controller list (Base Specification 4.6.1) or an
// endurance group list, which have the same form: a count and up to 2047
// rising 16-bit identifiers.
func ParseIdentifierList(b []byte) ([]uint16, error) {
	if len(b) < IdentifyDataSize {
		return nil, malformed("identifier list", "%d bytes, want %d", len(b), IdentifyDataSize)
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n > maxIdentifierList {
		return nil, malformed("identifier list", "%d entries, at most %d", n, maxIdentifierList)
	}
	ids := make([]uint16, n)
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint16(b[2+2*i:])
		if i > 0 && ids[i] <= ids[i-1] {
			return nil, malformed("identifier list", "entry %d is 0x%x after 0x%x", i, ids[i], ids[i-1])
		}
	}
	return ids, nil
}

// AppendIdentifierList appends the 4096 bytes of a controller list or an
// endurance group list. There may be at most 2047 identifiers, rising.
func AppendIdentifierList(b []byte, ids []uint16) ([]byte, error) {
	if len(ids) > maxIdentifierList {
		return nil, outOfRange("identifier list", "%d entries, at most %d", len(ids), maxIdentifierList)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(ids)))
	for i, id := range ids {
		if i > 0 && id <= ids[i-1] {
			return nil, outOfRange("identifier list", "0x%x after 0x%x", id, ids[i-1])
		}
		b = binary.LittleEndian.AppendUint16(b, id)
	}
	return append(b, make([]byte, IdentifyDataSize-2-2*len(ids))...), nil
}

// ParseIOCommandSets reads the Identify I/O Command Set data structure (CNS
// 1Ch): up to 512 vectors, each with one bit for every CSI. The list ends at
// its first zero.
func ParseIOCommandSets(b []byte) ([]IOCommandSetVector, error) {
	if len(b) < IdentifyDataSize {
		return nil, malformed("I/O command sets", "%d bytes, want %d", len(b), IdentifyDataSize)
	}
	var vectors []IOCommandSetVector
	for i := range IdentifyDataSize / 8 {
		v := IOCommandSetVector(binary.LittleEndian.Uint64(b[8*i:]))
		if v == 0 {
			break
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}

// AppendIOCommandSets appends the 4096 bytes of the Identify I/O Command Set
// data structure, at most 512 vectors.
func AppendIOCommandSets(b []byte, vectors []IOCommandSetVector) ([]byte, error) {
	if len(vectors) > IdentifyDataSize/8 {
		return nil, outOfRange("I/O command sets", "%d vectors, at most %d", len(vectors), IdentifyDataSize/8)
	}
	for _, v := range vectors {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return append(b, make([]byte, IdentifyDataSize-8*len(vectors))...), nil
}

// IOCommandSetVector is a combination of I/O command sets that a controller
// supports together: bit n stands for CSI n.
type IOCommandSetVector uint64

// Has tells whether the combination has the command set.
func (v IOCommandSetVector) Has(c CSI) bool { return c < 64 && v>>c&1 != 0 }
