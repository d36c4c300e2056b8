package nvme

import "encoding/binary"

// ReachabilityLog is the Reachability Groups or the Reachability Associations
// log page, which have one form (Base Specification 2.1, figures "Reachability
// Groups Log Page" and "Reachability Associations Log Page").
type ReachabilityLog struct {
	ChangeCount uint64
	Items       []Reachability
}

// Reachability is a Reachability Group Descriptor, whose members are
// namespaces, or a Reachability Association Descriptor, whose members are
// reachability groups.
type Reachability struct {
	ID              uint32
	ChangeCount     uint64   // 0 when it is not told
	Characteristics uint8    // associations only: a Reachable... value
	Members         []uint32 // empty with LSPReachGroupsOnly
}

// Values of Reachability.Characteristics; others are reserved.
const (
	ReachableUnspecified uint8 = 1 // reachable, with no word on performance
	ReachableFastCopy    uint8 = 2 // fast copy operations are supported
	ReachableNoFastCopy  uint8 = 3 // fast copy operations are not supported
)

const reachabilityHeaderSize = 32

// UnmarshalBinary reads the log page. Counts that lead outside of b are a
// DecodeError.
func (l *ReachabilityLog) UnmarshalBinary(b []byte) error {
	c := cursor{what: "reachability log", b: b}
	log := ReachabilityLog{ChangeCount: c.u64()}
	n := c.u16()
	c.skip(6)
	for range c.count(uint64(n), reachabilityHeaderSize) {
		r := Reachability{ID: c.u32()}
		members := c.u32()
		r.ChangeCount = c.u64()
		r.Characteristics = c.u8()
		c.skip(15)
		r.Members = c.u32s(c.count(uint64(members), 4))
		if c.err != nil {
			return c.err
		}
		log.Items = append(log.Items, r)
	}
	if c.err == nil {
		*l = log
	}
	return c.err
}

// AppendBinary appends the bytes of the log page.
func (l *ReachabilityLog) AppendBinary(b []byte) ([]byte, error) {
	if len(l.Items) > 0xffff {
		return nil, outOfRange("reachability log", "%d descriptors", len(l.Items))
	}
	b = binary.LittleEndian.AppendUint64(b, l.ChangeCount)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(l.Items)))
	b = append(b, make([]byte, 6)...)
	for i := range l.Items {
		r := &l.Items[i]
		b = binary.LittleEndian.AppendUint32(b, r.ID)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Members)))
		b = binary.LittleEndian.AppendUint64(b, r.ChangeCount)
		b = append(b, r.Characteristics)
		b = append(b, make([]byte, 15)...)
		for _, m := range r.Members {
			b = binary.LittleEndian.AppendUint32(b, m)
		}
	}
	return b, nil
}
