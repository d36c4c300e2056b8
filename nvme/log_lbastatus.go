package nvme

import "encoding/binary"

// LBAStatusLog is the LBA Status Information log page (NVM Command Set
// Specification 1.1, figure of that name): ranges of logical blocks that are
// potentially unrecoverable, for each namespace.
type LBAStatusLog struct {
	Length     uint32 // of the whole log page in bytes
	Estimate   uint32 // estimated number of unrecoverable blocks
	Generation uint16 // generation counter
	Namespaces []LBAStatusNamespace
}

// LBAStatusNamespace is an LBA Status Log Namespace Element.
type LBAStatusNamespace struct {
	NSID   uint32
	Action uint8 // recommended action type: 0x10 or 0x11, see GetLBAStatusCommand
	// Whole tells that the controller gives no ranges: the host has to look at
	// the whole namespace.
	Whole  bool
	Ranges []LBARange
}

// LBARange is a range of logical blocks.
type LBARange struct {
	SLBA   uint64
	Blocks uint64 // 1 to 2^32
}

const (
	lbaStatusWhat      = "LBA status log"
	lbaStatusElement   = 16
	lbaStatusRange     = 16
	lbaStatusAllRanges = 0xffffffff
)

// UnmarshalBinary reads the log page. Counts and a length that lead outside of
// b are a DecodeError.
func (l *LBAStatusLog) UnmarshalBinary(b []byte) error {
	c := cursor{what: lbaStatusWhat, b: b}
	log := LBAStatusLog{Length: c.u32()}
	elements := c.u32()
	log.Estimate = c.u32()
	c.skip(2)
	log.Generation = c.u16()
	n := c.count(uint64(elements), lbaStatusElement)
	for range n {
		log.Namespaces = append(log.Namespaces, c.lbaStatusNamespace())
		if c.err != nil {
			break
		}
	}
	if c.err == nil {
		*l = log
	}
	return c.err
}

func (c *cursor) lbaStatusNamespace() LBAStatusNamespace {
	e := LBAStatusNamespace{NSID: c.u32()}
	ranges := c.u32()
	e.Action = c.u8()
	c.skip(7)
	if ranges == lbaStatusAllRanges {
		e.Whole = true
		return e
	}
	for range c.count(uint64(ranges), lbaStatusRange) {
		e.Ranges = append(e.Ranges, LBARange{SLBA: c.u64(), Blocks: uint64(c.u32()) + 1})
		c.skip(4)
	}
	return e
}

// AppendBinary appends the bytes of the log page; Length is computed.
func (l *LBAStatusLog) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.Namespaces)))
	b = binary.LittleEndian.AppendUint32(b, l.Estimate)
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, l.Generation)
	for _, e := range l.Namespaces {
		n := uint32(len(e.Ranges))
		if e.Whole {
			n = lbaStatusAllRanges
		}
		b = binary.LittleEndian.AppendUint32(b, e.NSID)
		b = binary.LittleEndian.AppendUint32(b, n)
		b = append(b, e.Action, 0, 0, 0, 0, 0, 0, 0)
		if e.Whole {
			continue
		}
		for _, r := range e.Ranges {
			if r.Blocks == 0 || r.Blocks > 1<<32 {
				return nil, outOfRange(lbaStatusWhat, "range of %d blocks", r.Blocks)
			}
			b = binary.LittleEndian.AppendUint64(b, r.SLBA)
			b = binary.LittleEndian.AppendUint32(b, uint32(r.Blocks-1))
			b = append(b, 0, 0, 0, 0)
		}
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b, nil
}
