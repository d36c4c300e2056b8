package nvme

import (
	"encoding/binary"
	"structs"
)

// ErrorLogEntry is an Error Information Log Entry, 64 bytes (Base
// Specification 2.1, figure of that name). The log is a run of them, the most
// recent first.
type ErrorLogEntry struct {
	_           structs.HostLayout
	ECNT        uint64 // error count; 0 for an entry that is not valid
	SQID        uint16 // 0xffff when no command is meant, as are the two below
	CID         uint16
	StatusPhase uint16 // as in a completion queue entry; see Status
	PEL         uint16 // location of the error; see Location
	LBA         uint64
	NSID        uint32
	VSIA        uint8  // log page with vendor specific information; 0 none
	TRTYPE      TRType // transport of a transport error, else 0
	CSI         CSI    // with LPVER 1 and up
	OPC         Opcode // with LPVER 1 and up
	CSINFO      uint64 // command specific information
	TTSI        uint16 // transport type specific information
	_           [21]byte
	LPVER       uint8 // log page version
}

// AppendBinary appends the 64 bytes of the entry.
func (e *ErrorLogEntry) AppendBinary(b []byte) ([]byte, error) { return encode(b, e) }

// UnmarshalBinary reads the entry from the first 64 bytes of b.
func (e *ErrorLogEntry) UnmarshalBinary(b []byte) error { return decode("error log entry", b, e) }

// Status returns the status of the command.
func (e *ErrorLogEntry) Status() Status { return Status(e.StatusPhase >> 1) }

// Location returns the byte and bit of the command that the error is about,
// and false when it is about no command.
func (e *ErrorLogEntry) Location() (byteOffset, bitOffset uint8, ok bool) {
	return uint8(e.PEL), uint8(field(e.PEL, 8, 3)), e.PEL != 0xffff
}

// ParseErrorLog reads the entries of an Error Information log that are valid.
// A last entry that is cut off is left out.
func ParseErrorLog(b []byte) ([]ErrorLogEntry, error) {
	const size = 64
	var entries []ErrorLogEntry
	for ; len(b) >= size; b = b[size:] {
		var e ErrorLogEntry
		if err := e.UnmarshalBinary(b); err != nil {
			return nil, err
		}
		if e.ECNT != 0 {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// SMARTLog is the SMART / Health Information log page, 512 bytes (Base
// Specification 2.1, figure of that name).
type SMARTLog struct {
	_                  structs.HostLayout
	CriticalWarning    uint8   // SMARTWarning... bits
	CTEMP              [2]byte // see Temperature
	AvailableSpare     uint8   // percent
	SpareThreshold     uint8   // percent
	PercentageUsed     uint8   // percent; 255 for more than 254
	EnduranceWarning   uint8   // critical warnings of all endurance groups together
	_                  [25]byte
	DataUnitsRead      Uint128 // thousands of 512 bytes, rounded up; 0 not told
	DataUnitsWritten   Uint128 // thousands of 512 bytes, rounded up; 0 not told
	HostReads          Uint128 // commands
	HostWrites         Uint128 // commands
	BusyTime           Uint128 // minutes
	PowerCycles        Uint128
	PowerOnHours       Uint128
	UnsafeShutdowns    Uint128
	MediaErrors        Uint128
	ErrorLogEntries    Uint128   // over the life of the controller
	WarningTempTime    uint32    // minutes above WCTEMP
	CriticalTempTime   uint32    // minutes above CCTEMP
	TemperatureSensors [8]uint16 // kelvin; 0 for a sensor that is not there
	ThermalTransitions [2]uint32 // transitions by thermal management temperature 1 and 2
	ThermalTime        [2]uint32 // seconds by thermal management temperature 1 and 2
	_                  [280]byte
}

// Bits of SMARTLog.CriticalWarning, and of the feature and event that report
// them.
const (
	SMARTWarningSpare       uint8 = 1 << 0
	SMARTWarningTemperature uint8 = 1 << 1
	SMARTWarningReliability uint8 = 1 << 2
	SMARTWarningReadOnly    uint8 = 1 << 3
	SMARTWarningBackup      uint8 = 1 << 4
	SMARTWarningPMR         uint8 = 1 << 5
)

// AppendBinary appends the 512 bytes of the structure.
func (s *SMARTLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, s) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (s *SMARTLog) UnmarshalBinary(b []byte) error { return decode("SMART log", b, s) }

// Temperature returns the composite temperature in kelvin.
func (s *SMARTLog) Temperature() uint16 { return binary.LittleEndian.Uint16(s.CTEMP[:]) }

// SetTemperature sets the composite temperature in kelvin.
func (s *SMARTLog) SetTemperature(kelvin uint16) {
	binary.LittleEndian.PutUint16(s.CTEMP[:], kelvin)
}

// FirmwareSlotLog is the Firmware Slot Information log page, 512 bytes (Base
// Specification 2.1, figure of that name).
type FirmwareSlotLog struct {
	_   structs.HostLayout
	AFI uint8 // active slot in 2:0, the one after the next reset in 6:4
	_   [7]byte
	FRS [7][8]byte // revisions of slots 1 to 7, ASCII
	_   [448]byte
}

// AppendBinary appends the 512 bytes of the structure.
func (f *FirmwareSlotLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, f) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (f *FirmwareSlotLog) UnmarshalBinary(b []byte) error { return decode("firmware slot log", b, f) }

// Slots returns the active slot, and the slot that becomes active at the next
// reset, 0 when it is not told.
func (f *FirmwareSlotLog) Slots() (active, next uint8) {
	return field(f.AFI, 0, 3), field(f.AFI, 4, 3)
}

// Revision returns the firmware revision in a slot, 1 to 7; empty when there is
// none.
func (f *FirmwareSlotLog) Revision(slot int) string {
	if slot < 1 || slot > len(f.FRS) {
		return ""
	}
	return ascii(f.FRS[slot-1][:])
}

// ParseChangedNamespaces reads the Changed Attached (or Allocated) Namespace
// List log page, a namespace list. overflow tells that more than 1024
// namespaces have changed: all have to be looked at again.
func ParseChangedNamespaces(b []byte) (ids []uint32, overflow bool, err error) {
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) == NSIDAll {
		return nil, true, nil
	}
	ids, err = ParseNamespaceList(b, 0)
	return ids, false, err
}

// AppendChangedNamespaces appends the 4096 bytes of a Changed Namespace List.
// More than 1024 identifiers become the mark that says so.
func AppendChangedNamespaces(b []byte, ids []uint32) ([]byte, error) {
	if len(ids) <= maxNamespaceList {
		return AppendNamespaceList(b, ids)
	}
	b = binary.LittleEndian.AppendUint32(b, NSIDAll)
	return append(b, make([]byte, IdentifyDataSize-4)...), nil
}
