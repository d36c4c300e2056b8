package nvme

import (
	"encoding/binary"
	"structs"
)

// FDPConfiguration is an FDP Configuration Descriptor of the FDP Configurations
// log page (Base Specification 2.1, figures "FDP Configurations Log Page" and
// "FDP Configuration Descriptor").
type FDPConfiguration struct {
	Attributes      uint8  // bit 7 valid, bit 4 volatile write cache, 3:0 reclaim group identifier bits
	ReclaimGroups   uint32 //
	MaxPlacementIDs uint16 // minus one, as on the wire
	MaxNamespaces   uint32 //
	UnitSize        uint64 // nominal size of a reclaim unit, bytes
	UnitTimeLimit   uint32 // estimated, s; 0 not told
	Handles         []uint8
	Vendor          []byte // vendor specific, a slice of the log; at most 255 bytes
}

// Types of reclaim unit handles, in FDPConfiguration.Handles.
const (
	FDPInitiallyIsolated    uint8 = 1
	FDPPersistentlyIsolated uint8 = 2
)

const (
	fdpWhat       = "FDP configurations log"
	fdpHeaderSize = 16
	fdpConfigSize = 64
)

// Valid tells whether the configuration is available.
func (f *FDPConfiguration) Valid() bool { return bit(f.Attributes, 7) }

// ParseFDPConfigurations reads the FDP Configurations log page. Counts and
// sizes that lead outside of b are a DecodeError.
func ParseFDPConfigurations(b []byte) ([]FDPConfiguration, error) {
	c := cursor{what: fdpWhat, b: b}
	n := c.u16() // minus one
	c.skip(2)
	size := c.u32()
	c.skip(8)
	if c.err == nil && (uint64(size) > uint64(len(b)) || size < fdpHeaderSize) {
		return nil, malformed(fdpWhat, "size %d, have %d bytes", size, len(b))
	}
	c.b = c.b[:min(int(size), len(b))]
	var list []FDPConfiguration
	for range c.count(uint64(n)+1, fdpConfigSize) {
		list = append(list, c.fdpConfiguration())
		if c.err != nil {
			break
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return list, nil
}

func (c *cursor) fdpConfiguration() FDPConfiguration {
	size := int(c.u16())
	body := cursor{what: c.what, b: c.take(size - 2)}
	if c.err != nil {
		return FDPConfiguration{}
	}
	f := FDPConfiguration{Attributes: body.u8()}
	vendor := int(body.u8())
	f.ReclaimGroups = body.u32()
	handles := int(body.u16())
	f.MaxPlacementIDs = body.u16()
	f.MaxNamespaces = body.u32()
	f.UnitSize = body.u64()
	f.UnitTimeLimit = body.u32()
	body.skip(36)
	for range body.count(uint64(handles), 4) {
		f.Handles = append(f.Handles, body.u8())
		body.skip(3)
	}
	if vendor > 0 {
		f.Vendor = body.take(vendor)
	}
	c.err = body.err
	return f
}

// AppendFDPConfigurations appends the bytes of an FDP Configurations log page
// with 1 to 65536 configurations.
func AppendFDPConfigurations(b []byte, list []FDPConfiguration) ([]byte, error) {
	if len(list) == 0 || len(list) > 1<<16 {
		return nil, outOfRange(fdpWhat, "%d configurations", len(list))
	}
	start := len(b)
	b = appendU16(b, uint16(len(list)-1))
	b = append(b, make([]byte, fdpHeaderSize-2)...)
	for i := range list {
		f := &list[i]
		size := (fdpConfigSize + 4*len(f.Handles) + len(f.Vendor) + 7) &^ 7
		if size > 0xffff || len(f.Vendor) > 0xff {
			return nil, outOfRange(fdpWhat, "%d handles, %d vendor bytes", len(f.Handles), len(f.Vendor))
		}
		at := len(b)
		b = append(b, make([]byte, size)...)
		f.put(b[at:])
	}
	binary.LittleEndian.PutUint32(b[start+4:], uint32(len(b)-start))
	return b, nil
}

func (f *FDPConfiguration) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint16(b, uint16(len(b)))
	b[2], b[3] = f.Attributes, uint8(len(f.Vendor))
	le.PutUint32(b[4:], f.ReclaimGroups)
	le.PutUint16(b[8:], uint16(len(f.Handles)))
	le.PutUint16(b[10:], f.MaxPlacementIDs)
	le.PutUint32(b[12:], f.MaxNamespaces)
	le.PutUint64(b[16:], f.UnitSize)
	le.PutUint32(b[24:], f.UnitTimeLimit)
	for i, h := range f.Handles {
		b[fdpConfigSize+4*i] = h
	}
	copy(b[fdpConfigSize+4*len(f.Handles):], f.Vendor)
}

// Uses of a reclaim unit handle, in ParseFDPHandleUsage.
const (
	FDPHandleUnused     uint8 = 0
	FDPHandleHost       uint8 = 1 // asked for by a host
	FDPHandleController uint8 = 2 // chosen by the controller
)

// ParseFDPHandleUsage reads the Reclaim Unit Handle Usage log page: the use of
// each handle.
func ParseFDPHandleUsage(b []byte) ([]uint8, error) {
	c := cursor{what: "FDP handle usage log", b: b}
	n := c.u16()
	c.skip(6)
	var use []uint8
	for range c.count(uint64(n), 8) {
		use = append(use, c.u8())
		c.skip(7)
	}
	return use, c.err
}

// AppendFDPHandleUsage appends the bytes of a Reclaim Unit Handle Usage log
// page.
func AppendFDPHandleUsage(b []byte, use []uint8) ([]byte, error) {
	if len(use) > 0xffff {
		return nil, outOfRange("FDP handle usage log", "%d handles", len(use))
	}
	b = appendU16(b, uint16(len(use)), 0, 0, 0)
	for _, u := range use {
		b = append(b, u, 0, 0, 0, 0, 0, 0, 0)
	}
	return b, nil
}

// FDPStatisticsLog is the FDP Statistics log page, 64 bytes (figure of that
// name).
type FDPStatisticsLog struct {
	_    structs.HostLayout
	HBMW Uint128 // host bytes with metadata written
	MBMW Uint128 // media bytes with metadata written
	MBE  Uint128 // media bytes erased
	_    [16]byte
}

// AppendBinary appends the 64 bytes of the structure.
func (l *FDPStatisticsLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 64 bytes of b.
func (l *FDPStatisticsLog) UnmarshalBinary(b []byte) error { return decode("FDP statistics log", b, l) }

// FDPEvent is an FDP Event of the FDP Events log page, 64 bytes (figure "FDP
// Event").
type FDPEvent struct {
	_           structs.HostLayout
	ETYP        uint8  // FDPEvent... type
	Flags       uint8  // FDPEventValid... bits
	PID         uint16 // placement identifier
	Timestamp   Timestamp
	NSID        uint32
	Specific    [16]byte // event type specific
	RGID        uint16   // reclaim group
	RUHID       uint16   // reclaim unit handle
	_           [4]byte
	VendorBytes [24]byte // vendor specific
}

// Types of FDP events.
const (
	FDPEventNotFull          uint8 = 0x00 // reclaim unit not fully written
	FDPEventTimeLimit        uint8 = 0x01 // reclaim unit time limit exceeded
	FDPEventReset            uint8 = 0x02 // controller level reset modified handles
	FDPEventInvalidPlacement uint8 = 0x03 // invalid placement identifier
	FDPEventReallocated      uint8 = 0x80 // media reallocated
	FDPEventImplicit         uint8 = 0x81 // implicitly modified reclaim unit handle
)

// Bits of FDPEvent.Flags: fields that are valid.
const (
	FDPEventValidPlacement uint8 = 1 << 0
	FDPEventValidNSID      uint8 = 1 << 1
	FDPEventValidLocation  uint8 = 1 << 2
)

const fdpEventSize = 64

// AppendBinary appends the 64 bytes of the structure.
func (e *FDPEvent) AppendBinary(b []byte) ([]byte, error) { return encode(b, e) }

// UnmarshalBinary reads the structure from the first 64 bytes of b.
func (e *FDPEvent) UnmarshalBinary(b []byte) error { return decode("FDP event", b, e) }

// ParseFDPEvents reads the FDP Events log page, the oldest event first.
func ParseFDPEvents(b []byte) ([]FDPEvent, error) {
	c := cursor{what: "FDP events log", b: b}
	n := c.u32()
	c.skip(60)
	events := make([]FDPEvent, c.count(uint64(n), fdpEventSize))
	for i := range events {
		if err := events[i].UnmarshalBinary(c.take(fdpEventSize)); err != nil {
			return nil, err
		}
	}
	return events, c.err
}

// AppendFDPEvents appends the bytes of an FDP Events log page.
func AppendFDPEvents(b []byte, events []FDPEvent) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(events)))
	b = append(b, make([]byte, 60)...)
	var err error
	for i := 0; err == nil && i < len(events); i++ {
		b, err = events[i].AppendBinary(b)
	}
	return b, err
}
