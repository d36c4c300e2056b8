package nvme

import "time"

// Timestamp is the Timestamp data structure, 8 bytes, of the Timestamp feature
// and of events in logs (Base Specification 2.1, figure "Timestamp – Data
// Structure for Get Features"): 48 bits of milliseconds and the attributes.
type Timestamp [8]byte

// Bits of Timestamp.Attributes.
const (
	TimestampStopped    uint8 = 1 << 0 // SYNCH: the count may have stopped at times
	TimestampOriginMask uint8 = 7 << 1
	TimestampOriginHost uint8 = 1 << 1 // set by the host, else zero at reset
)

// MakeTimestamp returns the timestamp that a host sets: milliseconds since the
// epoch, cut off at 48 bits.
func MakeTimestamp(t time.Time) Timestamp {
	var ts Timestamp
	ms := uint64(max(t.UnixMilli(), 0))
	for i := range 6 {
		ts[i] = uint8(ms >> (8 * i))
	}
	return ts
}

// Milliseconds returns the count: since the epoch when the host has set it,
// since the reset of the controller when not.
func (t Timestamp) Milliseconds() uint64 {
	var ms uint64
	for i := range 6 {
		ms |= uint64(t[i]) << (8 * i)
	}
	return ms
}

// Attributes returns the Timestamp... bits.
func (t Timestamp) Attributes() uint8 { return t[6] }

// FromHost tells whether the host has set the timestamp, so that Time means
// something.
func (t Timestamp) FromHost() bool { return t[6]&TimestampOriginMask == TimestampOriginHost }

// Time returns the point in time.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t.Milliseconds())) }
