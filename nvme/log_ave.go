package nvme

import (
	"encoding/binary"
	"net/netip"
)

// AVEDiscoveryLog is the AVE Discovery log page (figures "Get Log Page – AVE
// Discovery Log Page" to "AVE Transport Record").
type AVEDiscoveryLog struct {
	Generation uint64
	Entries    []AVEDiscovery
}

// AVEDiscovery is an AVE Discovery Log Page Entry: an authentication
// verification entity and where it is reached.
type AVEDiscovery struct {
	NQN       string
	Addresses []netip.AddrPort
}

const (
	aveWhat      = "AVE discovery log"
	aveHeader    = 1024
	aveEntry     = 232
	aveRecord    = 20
	aveNQNLength = 224
)

// UnmarshalBinary reads the log page. Counts and lengths that lead outside of b
// are a DecodeError.
func (l *AVEDiscoveryLog) UnmarshalBinary(b []byte) error {
	c := cursor{what: aveWhat, b: b}
	log := AVEDiscoveryLog{Generation: c.u64()}
	n := c.u64()
	if format := c.u16(); format != 0 {
		return malformed(c.what, "record format %d", format)
	}
	c.skip(aveHeader - 18)
	for range c.count(n, aveEntry) {
		e, err := c.aveDiscovery()
		if err != nil {
			return err
		}
		log.Entries = append(log.Entries, e)
	}
	if c.err == nil {
		*l = log
	}
	return c.err
}

func (c *cursor) aveDiscovery() (AVEDiscovery, error) {
	start := c.offset
	size := c.u32()
	nqn, err := getNQN(c.take(aveNQNLength), aveWhat)
	if err != nil {
		return AVEDiscovery{}, err
	}
	e := AVEDiscovery{NQN: nqn}
	n := c.u8()
	c.skip(3)
	for range c.count(uint64(n), aveRecord) {
		family := ADRFam(c.u8())
		c.skip(1)
		port := c.u16()
		addr := c.take(16)
		switch family {
		case ADRFamIPv4:
			e.Addresses = append(e.Addresses, netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr)), port))
		case ADRFamIPv6:
			e.Addresses = append(e.Addresses, netip.AddrPortFrom(netip.AddrFrom16([16]byte(addr)), port))
		default:
			return AVEDiscovery{}, malformed(c.what, "%v", family)
		}
	}
	used := c.offset - start
	if c.err == nil && uint64(size) < uint64(used) {
		return AVEDiscovery{}, malformed(c.what, "entry of %d bytes, told %d", used, size)
	}
	c.skip(int(min(uint64(size)-uint64(used), uint64(len(c.b)+1))))
	return e, c.err
}

// AppendBinary appends the bytes of the log page.
func (l *AVEDiscoveryLog) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, aveHeader)...)
	le := binary.LittleEndian
	le.PutUint64(b[start:], l.Generation)
	le.PutUint64(b[start+8:], uint64(len(l.Entries)))
	for i := range l.Entries {
		e := &l.Entries[i]
		if len(e.Addresses) > 0xff {
			return nil, outOfRange(aveWhat, "%d addresses", len(e.Addresses))
		}
		var fixed [aveEntry]byte
		le.PutUint32(fixed[:], uint32(aveEntry+aveRecord*len(e.Addresses)))
		if err := putNQN(fixed[4:228], aveWhat, e.NQN); err != nil {
			return nil, err
		}
		fixed[228] = uint8(len(e.Addresses))
		b = append(b, fixed[:]...)
		for _, a := range e.Addresses {
			b = appendAVERecord(b, a)
		}
	}
	le.PutUint32(b[start+20:], uint32(len(b)-start))
	return b, nil
}

func appendAVERecord(b []byte, a netip.AddrPort) []byte {
	var r [aveRecord]byte
	r[0] = uint8(ADRFamIPv6)
	if a.Addr().Is4() {
		r[0] = uint8(ADRFamIPv4)
	}
	binary.LittleEndian.PutUint16(r[2:], a.Port())
	copy(r[4:], a.Addr().AsSlice())
	return append(b, r[:]...)
}

// Operations that a pull model DDC asks for.
const (
	PullModelGetZoneGroup     uint8 = 1
	PullModelAddZoneGroup     uint8 = 2
	PullModelRemoveZoneGroup  uint8 = 3
	PullModelDiscoveryLogPage uint8 = 4
)

// ParsePullModelRequest reads the Pull Model DDC Request log page: one of the
// PullModel... operations and its parameters, a slice of b.
func ParsePullModelRequest(b []byte) (operation uint8, parameters []byte, err error) {
	c := cursor{what: "pull model DDC request log", b: b}
	operation = c.u8()
	c.skip(3)
	size := c.u32()
	if c.err == nil && size < 8 {
		return 0, nil, malformed(c.what, "length %d", size)
	}
	parameters = c.take(int(min(uint64(size)-8, uint64(len(b)))))
	return operation, parameters, c.err
}

// AppendPullModelRequest appends the bytes of a Pull Model DDC Request log
// page.
func AppendPullModelRequest(b []byte, operation uint8, parameters []byte) []byte {
	b = append(b, operation, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(8+len(parameters)))
	return append(b, parameters...)
}
