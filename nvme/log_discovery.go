package nvme

import (
	"math"
	"structs"
)

// Sizes of the Discovery log page in bytes.
const (
	DiscoveryHeaderSize = 1024
	DiscoveryEntrySize  = 1024
)

// DiscoveryHeader is the header of the Discovery log page, 1024 bytes (Base
// Specification 2.1, figure "Discovery Log Page").
type DiscoveryHeader struct {
	_      structs.HostLayout
	GENCTR uint64 // generation counter
	NUMREC uint64 // number of records
	RECFMT uint16 // record format: 0
	DLPF   uint8  // DiscoveryFlag... bits
	_      [1]byte
	TDLPL  uint32 // length of the log page in bytes; 0 not told
	_      [1000]byte
}

// Bits of DiscoveryHeader.DLPF.
const (
	DiscoveryFlagExtended  uint8 = 1 << 0
	DiscoveryFlagPortLocal uint8 = 1 << 1
	DiscoveryFlagAll       uint8 = 1 << 2
)

// AppendBinary appends the 1024 bytes of the header.
func (h *DiscoveryHeader) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the header from the first 1024 bytes of b. A record
// format other than 0 is a DecodeError.
func (h *DiscoveryHeader) UnmarshalBinary(b []byte) error {
	if err := decode("discovery log header", b, h); err != nil {
		return err
	}
	if h.RECFMT != 0 {
		return malformed("discovery log header", "record format %d", h.RECFMT)
	}
	return nil
}

// Size returns the size of the whole log page in bytes, or a DecodeError when
// it tells more than limit records.
func (h *DiscoveryHeader) Size(limit uint64) (uint64, error) {
	if h.NUMREC > limit || h.NUMREC > math.MaxInt64/DiscoveryEntrySize-1 {
		return 0, malformed("discovery log header", "%d records, at most %d", h.NUMREC, limit)
	}
	return DiscoveryHeaderSize + h.NUMREC*DiscoveryEntrySize, nil
}

// DiscoveryEntry is a Discovery Log Page Entry, 1024 bytes (figure "Discovery
// Log Page Entry Data Structure").
type DiscoveryEntry struct {
	_            structs.HostLayout
	TRTYPE       TRType
	ADRFAM       ADRFam
	SUBTYPE      SubType
	TREQ         uint8  // transport requirements; TREQ... bits
	PORTID       uint16 // subsystem port
	ControllerID uint16 // ControllerIDDynamic, ControllerIDStaticAny or one
	ASQSZ        uint16 // largest admin submission queue, entries
	EFLAGS       uint16 // EFLAG... bits
	_            [20]byte
	TRSVCID      [32]byte // see ServiceID
	_            [192]byte
	SUBNQN       [256]byte // see SubsystemNQN
	TRADDR       [256]byte // see TransportAddress
	TSAS         [256]byte // transport specific address subtype; for TCP byte 0 is a SecurityType
}

// AppendBinary appends the 1024 bytes of the entry.
func (e *DiscoveryEntry) AppendBinary(b []byte) ([]byte, error) { return encode(b, e) }

// UnmarshalBinary reads the entry from the first 1024 bytes of b.
func (e *DiscoveryEntry) UnmarshalBinary(b []byte) error { return decode("discovery log entry", b, e) }

// TransportAddress returns TRADDR without padding; bytes that do not print come
// as question marks.
func (e *DiscoveryEntry) TransportAddress() string { return ascii(e.TRADDR[:]) }

// ServiceID returns TRSVCID like TransportAddress.
func (e *DiscoveryEntry) ServiceID() string { return ascii(e.TRSVCID[:]) }

// SubsystemNQN returns the name of the subsystem, or a DecodeError when the
// field is empty or has no end within the allowed length.
func (e *DiscoveryEntry) SubsystemNQN() (string, error) {
	return getNQN(e.SUBNQN[:], "subsystem NQN")
}

// SetAddress fills TRADDR and TRSVCID, padded with blanks.
func (e *DiscoveryEntry) SetAddress(traddr, trsvcid string) error {
	if len(traddr) > len(e.TRADDR) || len(trsvcid) > len(e.TRSVCID) {
		return outOfRange("discovery log entry", "address of %d bytes, service of %d", len(traddr), len(trsvcid))
	}
	putASCII(e.TRADDR[:], traddr)
	putASCII(e.TRSVCID[:], trsvcid)
	return nil
}

// SetSubsystemNQN fills SUBNQN; see NewConnectData for what it refuses.
func (e *DiscoveryEntry) SetSubsystemNQN(nqn string) error {
	e.SUBNQN = [256]byte{}
	return putNQN(e.SUBNQN[:], "subsystem NQN", nqn)
}

// DiscoveryLog is a Discovery log page.
type DiscoveryLog struct {
	Generation uint64
	Flags      uint8 // DiscoveryFlag... bits
	Entries    []DiscoveryEntry
}

// AppendBinary appends the bytes of the log page.
func (l *DiscoveryLog) AppendBinary(b []byte) ([]byte, error) {
	h := DiscoveryHeader{
		GENCTR: l.Generation,
		NUMREC: uint64(len(l.Entries)),
		DLPF:   l.Flags,
		TDLPL:  uint32(DiscoveryHeaderSize + len(l.Entries)*DiscoveryEntrySize),
	}
	b, err := h.AppendBinary(b)
	for i := 0; err == nil && i < len(l.Entries); i++ {
		b, err = l.Entries[i].AppendBinary(b)
	}
	return b, err
}

// UnmarshalBinary reads a whole log page. Fewer bytes than the header tells are
// a DecodeError, as are extended entries, which a host gets only when it asks
// with LSPDiscoveryExtended.
func (l *DiscoveryLog) UnmarshalBinary(b []byte) error {
	var h DiscoveryHeader
	if err := h.UnmarshalBinary(b); err != nil {
		return err
	}
	if h.DLPF&DiscoveryFlagExtended != 0 {
		return malformed("discovery log", "extended entries")
	}
	c := cursor{what: "discovery log", b: b, offset: DiscoveryHeaderSize}
	n := c.count(h.NUMREC, DiscoveryEntrySize)
	if c.err != nil {
		return c.err
	}
	log := DiscoveryLog{Generation: h.GENCTR, Flags: h.DLPF, Entries: make([]DiscoveryEntry, n)}
	for i := range log.Entries {
		if err := log.Entries[i].UnmarshalBinary(c.take(DiscoveryEntrySize)); err != nil {
			return err
		}
	}
	*l = log
	return nil
}
