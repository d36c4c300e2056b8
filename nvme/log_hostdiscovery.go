package nvme

import "encoding/binary"

// HostDiscoveryLog is the Host Discovery log page (Base Specification 2.1,
// figures "Host Discovery Log Page" and "Host Extended Discovery Log Page
// Entry").
type HostDiscoveryLog struct {
	Generation uint64
	AllHosts   bool
	Hosts      []HostDiscovery
}

// HostDiscovery is a Host Extended Discovery Log Page Entry.
type HostDiscovery struct {
	TRTYPE     TRType
	ADRFAM     ADRFam
	EFLAGS     uint16 // EFLAGNoCDC
	HostNQN    string
	TRADDR     string // bytes that do not print come as question marks
	TSAS       [256]byte
	Attributes []ExtendedAttribute
}

// ExtendedAttribute is an extended attribute of a discovery entry (figure
// "Extended Attribute").
type ExtendedAttribute struct {
	Type  uint16 // ExtendedAttribute... type
	Value []byte // a slice of the log
}

// Types of extended attributes.
const (
	ExtendedAttributeHostID     uint16 = 1 // 16 bytes
	ExtendedAttributeLabelASCII uint16 = 2 // admin label
	ExtendedAttributeLabelUTF8  uint16 = 3 // admin label
)

const (
	hostDiscoveryWhat   = "host discovery log"
	hostDiscoveryHeader = 1024
	hostDiscoveryEntry  = 1032
)

// UnmarshalBinary reads the log page. Counts and lengths that lead outside of b
// are a DecodeError.
func (l *HostDiscoveryLog) UnmarshalBinary(b []byte) error {
	c := cursor{what: hostDiscoveryWhat, b: b}
	log := HostDiscoveryLog{Generation: c.u64()}
	n := c.u64()
	if format := c.u16(); format != 0 {
		return malformed(c.what, "record format %d", format)
	}
	log.AllHosts = bit(c.u8(), 0)
	c.skip(hostDiscoveryHeader - 19)
	for range c.count(n, hostDiscoveryEntry) {
		h, err := c.hostDiscovery()
		if err != nil {
			return err
		}
		log.Hosts = append(log.Hosts, h)
	}
	if c.err == nil {
		*l = log
	}
	return c.err
}

func (c *cursor) hostDiscovery() (HostDiscovery, error) {
	fixed := c.take(hostDiscoveryEntry)
	if c.err != nil {
		return HostDiscovery{}, c.err
	}
	nqn, err := getNQN(fixed[256:512], "host NQN")
	if err != nil {
		return HostDiscovery{}, err
	}
	h := HostDiscovery{
		TRTYPE: TRType(fixed[0]), ADRFAM: ADRFam(fixed[1]), EFLAGS: binary.LittleEndian.Uint16(fixed[10:]),
		HostNQN: nqn, TRADDR: ascii(fixed[512:768]), TSAS: [256]byte(fixed[768:1024]),
	}
	size, n := binary.LittleEndian.Uint32(fixed[1024:]), binary.LittleEndian.Uint16(fixed[1028:])
	if uint64(size) < hostDiscoveryEntry || uint64(size)-hostDiscoveryEntry > uint64(c.rest()) {
		return HostDiscovery{}, malformed(c.what, "entry of %d bytes, %d left", size, c.rest()+hostDiscoveryEntry)
	}
	attributes := cursor{what: c.what, b: c.take(int(size) - hostDiscoveryEntry)}
	for range attributes.count(uint64(n), 4) {
		a := ExtendedAttribute{Type: attributes.u16()}
		a.Value = attributes.take(int(attributes.u16()))
		h.Attributes = append(h.Attributes, a)
	}
	return h, attributes.err
}

// AppendBinary appends the bytes of the log page.
func (l *HostDiscoveryLog) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, hostDiscoveryHeader)...)
	le := binary.LittleEndian
	le.PutUint64(b[start:], l.Generation)
	le.PutUint64(b[start+8:], uint64(len(l.Hosts)))
	b[start+18] = flag[uint8](l.AllHosts, 0)
	for i := range l.Hosts {
		var err error
		if b, err = l.Hosts[i].append(b); err != nil {
			return nil, err
		}
	}
	le.PutUint32(b[start+20:], uint32(len(b)-start))
	return b, nil
}

func (h *HostDiscovery) append(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, hostDiscoveryEntry)...)
	e := b[start:]
	e[0], e[1] = uint8(h.TRTYPE), uint8(h.ADRFAM)
	binary.LittleEndian.PutUint16(e[10:], h.EFLAGS)
	if err := putNQN(e[256:512], "host NQN", h.HostNQN); err != nil {
		return nil, err
	}
	putASCII(e[512:768], h.TRADDR)
	copy(e[768:], h.TSAS[:])
	binary.LittleEndian.PutUint16(e[1028:], uint16(len(h.Attributes)))
	for _, a := range h.Attributes {
		if len(a.Value) > 0xffff {
			return nil, outOfRange(hostDiscoveryWhat, "attribute of %d bytes", len(a.Value))
		}
		b = appendU16(b, a.Type, uint16(len(a.Value)))
		b = append(b, a.Value...)
	}
	binary.LittleEndian.PutUint32(b[start+1024:], uint32(len(b)-start))
	return b, nil
}
