package nvme

import (
	"encoding/binary"
	"structs"
)

// EnduranceGroupLog is the Endurance Group Information log page, 512 bytes
// (Base Specification 2.1, figure of that name). Data units are 10^9 bytes,
// rounded up, 0 when they are not told.
type EnduranceGroupLog struct {
	_                 structs.HostLayout
	CriticalWarning   uint8 // EnduranceWarning... bits
	Features          uint8 // bit 0: rotational media
	_                 [1]byte
	AvailableSpare    uint8  // percent
	SpareThreshold    uint8  // percent
	PercentageUsed    uint8  // percent; 255 for more than 254
	DID               uint16 // domain
	_                 [24]byte
	EnduranceEstimate Uint128 // data units that may be written over the lifetime
	DataUnitsRead     Uint128
	DataUnitsWritten  Uint128
	MediaUnitsWritten Uint128
	HostReads         Uint128 // commands
	HostWrites        Uint128 // commands
	MediaErrors       Uint128
	ErrorLogEntries   Uint128
	TotalCapacity     Uint128 // bytes
	UnallocCapacity   Uint128 // bytes
	_                 [320]byte
}

// Bits of EnduranceGroupLog.CriticalWarning.
const (
	EnduranceWarningSpare       uint8 = 1 << 0
	EnduranceWarningReliability uint8 = 1 << 2
	EnduranceWarningReadOnly    uint8 = 1 << 3
)

// AppendBinary appends the 512 bytes of the structure.
func (l *EnduranceGroupLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (l *EnduranceGroupLog) UnmarshalBinary(b []byte) error {
	return decode("endurance group log", b, l)
}

// PredictableLatencyLog is the Predictable Latency Per NVM Set log page, 512
// bytes (Base Specification 2.1, figure of that name). DTWIN is the
// deterministic window, NDWIN the non-deterministic one.
type PredictableLatencyLog struct {
	_                structs.HostLayout
	Window           uint8 // in 2:0: 0 not used, 1 DTWIN, 2 NDWIN
	_                [1]byte
	Events           uint16 // PredictableLatency... bits
	_                [28]byte
	ReadsTypical     uint64 // 4 KiB random reads in DTWIN
	WritesTypical    uint64 // writes of the optimal write size in DTWIN
	TimeMaximum      uint64 // ms in DTWIN
	NDWINTimeMinHigh uint64 // ms
	NDWINTimeMinLow  uint64 // ms
	_                [56]byte
	ReadsEstimate    uint64 // left in this DTWIN
	WritesEstimate   uint64 // left in this DTWIN
	TimeEstimate     uint64 // ms left in this DTWIN
	_                [360]byte
}

// Bits of PredictableLatencyLog.Events.
const (
	PredictableLatencyReads         uint16 = 1 << 0  // DTWIN reads warning
	PredictableLatencyWrites        uint16 = 1 << 1  // DTWIN writes warning
	PredictableLatencyTime          uint16 = 1 << 2  // DTWIN time warning
	PredictableLatencyExceeded      uint16 = 1 << 14 // transition: a value was exceeded
	PredictableLatencyDeterministic uint16 = 1 << 15 // transition: deterministic excursion
)

// AppendBinary appends the 512 bytes of the structure.
func (l *PredictableLatencyLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (l *PredictableLatencyLog) UnmarshalBinary(b []byte) error {
	return decode("predictable latency log", b, l)
}

// ParseEventAggregate reads the Predictable Latency Event Aggregate log page or
// the Endurance Group Event Aggregate log page: the identifiers of the NVM sets
// or endurance groups that have an event pending.
func ParseEventAggregate(b []byte) ([]uint16, error) {
	c := cursor{what: "event aggregate log", b: b}
	n := c.count(c.u64(), 2)
	ids := c.u16s(n)
	return ids, c.err
}

// AppendEventAggregate appends the bytes of an event aggregate log page.
func AppendEventAggregate(b []byte, ids []uint16) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint16(b, id)
	}
	return b
}
