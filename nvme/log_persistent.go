package nvme

import (
	"encoding/binary"
	"structs"
)

// PersistentEventHeader is the header of the Persistent Event log page, 512
// bytes (Base Specification 2.1, figure "Persistent Event Log Page").
type PersistentEventHeader struct {
	_         structs.HostLayout
	LID       LogID // LogPersistentEvent
	_         [3]byte
	TNEV      uint32 // number of events
	TLL       uint64 // length of the log in bytes, with the header
	LREV      uint8  // log revision
	_         [1]byte
	LHL       uint16 // header length after this field in bytes
	Timestamp Timestamp
	POH       [16]byte // see PowerOnHours
	PWRCC     [8]byte  // see PowerCycles
	VID       uint16
	SSVID     uint16
	SN        [20]byte
	MN        [40]byte
	SUBNQN    [256]byte
	GNUM      uint16  // generation: the same before and after reading in pieces
	RCI       [4]byte // reporting context information
	_         [102]byte
	SEB       [32]byte // supported events, one bit for each type
}

// AppendBinary appends the 512 bytes of the header.
func (h *PersistentEventHeader) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the header from the first 512 bytes of b.
func (h *PersistentEventHeader) UnmarshalBinary(b []byte) error {
	if err := decode("persistent event header", b, h); err != nil {
		return err
	}
	if h.LID != LogPersistentEvent {
		return malformed("persistent event header", "log page identifier 0x%02x", uint8(h.LID))
	}
	return nil
}

// HeaderSize returns the length of the header in bytes; events follow it.
func (h *PersistentEventHeader) HeaderSize() int { return int(h.LHL) + 20 }

// PowerOnHours returns the power-on hours when the log was retrieved.
func (h *PersistentEventHeader) PowerOnHours() Uint128 {
	return Uint128{Lo: binary.LittleEndian.Uint64(h.POH[:]), Hi: binary.LittleEndian.Uint64(h.POH[8:])}
}

// PowerCycles returns the number of power cycles.
func (h *PersistentEventHeader) PowerCycles() uint64 { return binary.LittleEndian.Uint64(h.PWRCC[:]) }

// ContextExists tells whether a reporting context existed before the command.
func (h *PersistentEventHeader) ContextExists() bool {
	return bit(binary.LittleEndian.Uint32(h.RCI[:]), 18)
}

// Supports tells whether events of the type are supported.
func (h *PersistentEventHeader) Supports(t PersistentEventType) bool {
	return bit(h.SEB[t/8], uint(t%8))
}

// PersistentEventType is the type of a persistent event (figure "Persistent
// Event Log Event Types").
type PersistentEventType uint8

// The event types.
const (
	PersistentSMART              PersistentEventType = 0x01 // data: SMARTLog
	PersistentFirmwareCommit     PersistentEventType = 0x02
	PersistentTimestampChange    PersistentEventType = 0x03
	PersistentPowerOnOrReset     PersistentEventType = 0x04
	PersistentHardwareError      PersistentEventType = 0x05
	PersistentChangeNamespace    PersistentEventType = 0x06
	PersistentFormatStart        PersistentEventType = 0x07
	PersistentFormatCompletion   PersistentEventType = 0x08
	PersistentSanitizeStart      PersistentEventType = 0x09
	PersistentSanitizeCompletion PersistentEventType = 0x0a
	PersistentSetFeature         PersistentEventType = 0x0b
	PersistentTelemetryCreate    PersistentEventType = 0x0c // data: TelemetryHeader
	PersistentThermalExcursion   PersistentEventType = 0x0d
	PersistentMediaVerification  PersistentEventType = 0x0e
	PersistentVendor             PersistentEventType = 0xde
	PersistentTCG                PersistentEventType = 0xdf
)

var persistentNames = map[PersistentEventType]string{
	PersistentSMART:              "SMART / Health Log Snapshot",
	PersistentFirmwareCommit:     "Firmware Commit",
	PersistentTimestampChange:    "Timestamp Change",
	PersistentPowerOnOrReset:     "Power-on or Reset",
	PersistentHardwareError:      "NVM Subsystem Hardware Error",
	PersistentChangeNamespace:    "Change Namespace",
	PersistentFormatStart:        "Format NVM Start",
	PersistentFormatCompletion:   "Format NVM Completion",
	PersistentSanitizeStart:      "Sanitize Start",
	PersistentSanitizeCompletion: "Sanitize Completion",
	PersistentSetFeature:         "Set Feature",
	PersistentTelemetryCreate:    "Telemetry Log Created",
	PersistentThermalExcursion:   "Thermal Excursion",
	PersistentMediaVerification:  "Sanitize Media Verification",
	PersistentVendor:             "Vendor Specific Event",
	PersistentTCG:                "TCG Defined",
}

// String returns the specification's name of the event type.
func (t PersistentEventType) String() string {
	if name, ok := persistentNames[t]; ok {
		return name
	}
	return numbered("persistent event type", uint32(t), false)
}

// PersistentEvent is one event of the log (figure "Persistent Event Format").
// Vendor and Data are slices of the log.
type PersistentEvent struct {
	Type         PersistentEventType
	Revision     uint8
	PortType     uint8 // 0 not told, 1 subsystem port, 2 management endpoint, 3 none
	ControllerID uint16
	Timestamp    Timestamp
	PortID       uint16
	Vendor       []byte // vendor specific information
	Data         []byte // event data, as the type defines it
}

const (
	persistentEventHeaderSize = 24
	persistentWhat            = "persistent event log"
)

// ParsePersistentEvents reads a Persistent Event log page. Events whose length
// leads outside of b or TLL, and fewer bytes than TLL, are a DecodeError; the
// events before it are returned with it.
func ParsePersistentEvents(b []byte) (*PersistentEventHeader, []PersistentEvent, error) {
	h := new(PersistentEventHeader)
	if err := h.UnmarshalBinary(b); err != nil {
		return nil, nil, err
	}
	if h.TLL > uint64(len(b)) || h.TLL < uint64(h.HeaderSize()) {
		return nil, nil, malformed(persistentWhat, "length %d, header %d, have %d bytes", h.TLL, h.HeaderSize(), len(b))
	}
	c := cursor{what: persistentWhat, b: b[:h.TLL], offset: h.HeaderSize()}
	n := c.count(uint64(h.TNEV), persistentEventHeaderSize)
	events := make([]PersistentEvent, 0, n)
	for range n {
		e := c.persistentEvent()
		if c.err != nil {
			break
		}
		events = append(events, e)
	}
	return h, events, c.err
}

func (c *cursor) persistentEvent() PersistentEvent {
	start := c.offset
	e := PersistentEvent{Type: PersistentEventType(c.u8()), Revision: c.u8()}
	headerSize := int(c.u8()) + 3
	e.PortType = c.u8() & 3
	e.ControllerID = c.u16()
	copy(e.Timestamp[:], c.take(8))
	e.PortID = c.u16()
	c.skip(4)
	vendor, length := int(c.u16()), int(c.u16())
	if c.err == nil && (headerSize < persistentEventHeaderSize || vendor > length) {
		c.err = malformed(c.what, "event at offset %d: header %d, vendor %d of %d bytes", start, headerSize, vendor, length)
	}
	c.skip(headerSize - persistentEventHeaderSize)
	e.Vendor = c.take(vendor)
	e.Data = c.take(length - vendor)
	return e
}

// AppendBinary appends the bytes of the event.
func (e *PersistentEvent) AppendBinary(b []byte) ([]byte, error) {
	if len(e.Vendor)+len(e.Data) > 0xffff {
		return nil, outOfRange("persistent event", "%d and %d bytes", len(e.Vendor), len(e.Data))
	}
	b = append(b, uint8(e.Type), e.Revision, persistentEventHeaderSize-3, e.PortType&3)
	b = binary.LittleEndian.AppendUint16(b, e.ControllerID)
	b = append(b, e.Timestamp[:]...)
	b = binary.LittleEndian.AppendUint16(b, e.PortID)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Vendor)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Vendor)+len(e.Data)))
	return append(append(b, e.Vendor...), e.Data...), nil
}
