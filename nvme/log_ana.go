package nvme

import (
	"encoding/binary"
	"fmt"
)

// ANAState is the state of an ANA group as seen through one controller (Base
// Specification 8.1.1).
type ANAState uint8

// The ANA states.
const (
	ANAOptimized      ANAState = 0x1
	ANANonOptimized   ANAState = 0x2
	ANAInaccessible   ANAState = 0x3
	ANAPersistentLoss ANAState = 0x4
	ANAChange         ANAState = 0xf
)

// String returns the name that the Linux kernel gives the state in sysfs.
func (s ANAState) String() string {
	switch s {
	case ANAOptimized:
		return "optimized"
	case ANANonOptimized:
		return "non-optimized"
	case ANAInaccessible:
		return "inaccessible"
	case ANAPersistentLoss:
		return "persistent-loss"
	case ANAChange:
		return "change"
	}
	return fmt.Sprintf("reserved ANA state 0x%x", uint8(s))
}

// Valid tells whether the specification defines the state.
func (s ANAState) Valid() bool { return s >= ANAOptimized && s <= ANAPersistentLoss || s == ANAChange }

// Accessible tells whether namespaces in this state take I/O.
func (s ANAState) Accessible() bool { return s == ANAOptimized || s == ANANonOptimized }

// ANALog is the Asymmetric Namespace Access log page (Base Specification 2.1,
// figures "Asymmetric Namespace Access Log Page" and "ANA Group Descriptor
// format").
type ANALog struct {
	ChangeCount uint64
	Groups      []ANAGroup
}

// ANAGroup is an ANA group descriptor.
type ANAGroup struct {
	ID          uint32
	ChangeCount uint64 // 0 when it is not told
	State       ANAState
	NSIDs       []uint32 // empty with LSPANAGroupsOnly
}

const (
	anaHeaderSize = 16
	anaGroupSize  = 32
	anaWhat       = "ANA log"
)

// ANALogSize returns how many bytes the ANA log of a controller has at most,
// from the fields of Identify Controller: NANAGRPID groups, and one entry for
// each of MaxNamespaces.
func ANALogSize(groups, namespaces uint32) uint64 {
	return anaHeaderSize + uint64(groups)*anaGroupSize + uint64(namespaces)*4
}

// AppendBinary appends the bytes of the log page. Groups have to be in order
// of their identifiers, and namespaces within a group likewise.
func (l *ANALog) AppendBinary(b []byte) ([]byte, error) {
	if len(l.Groups) > 0xffff {
		return nil, outOfRange(anaWhat, "%d groups", len(l.Groups))
	}
	b = binary.LittleEndian.AppendUint64(b, l.ChangeCount)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(l.Groups)))
	b = append(b, make([]byte, 6)...)
	for i := range l.Groups {
		g := &l.Groups[i]
		b = binary.LittleEndian.AppendUint32(b, g.ID)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(g.NSIDs)))
		b = binary.LittleEndian.AppendUint64(b, g.ChangeCount)
		b = append(b, uint8(g.State&0xf))
		b = append(b, make([]byte, 15)...)
		for _, id := range g.NSIDs {
			b = binary.LittleEndian.AppendUint32(b, id)
		}
	}
	return b, nil
}

// UnmarshalBinary reads a whole log page; see ANADecoder for reading it in
// pieces. Bytes after the last group are ignored.
func (l *ANALog) UnmarshalBinary(b []byte) error {
	d := NewANADecoder(0, 0)
	if _, err := d.Write(b); err != nil {
		return err
	}
	log, err := d.Log()
	if err != nil {
		return err
	}
	*l = *log
	return nil
}
