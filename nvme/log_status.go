package nvme

import (
	"structs"
	"time"
)

// ReservationLog is the Reservation Notification log page, 64 bytes (Base
// Specification 2.1, figure of that name). Reading it takes it off the
// controller's queue.
type ReservationLog struct {
	_     structs.HostLayout
	LPC   uint64 // log page count; a gap tells of lost notifications
	RNLPT uint8  // ReservationNotice... type
	NALP  uint8  // further pages available, at most 255
	_     [2]byte
	NSID  uint32
	_     [48]byte
}

// Types of reservation notifications.
const (
	ReservationNoticeNone         uint8 = 0 // empty page
	ReservationNoticeRegistration uint8 = 1 // registration preempted
	ReservationNoticeReleased     uint8 = 2 // reservation released
	ReservationNoticePreempted    uint8 = 3 // reservation preempted
)

// AppendBinary appends the 64 bytes of the structure.
func (l *ReservationLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 64 bytes of b.
func (l *ReservationLog) UnmarshalBinary(b []byte) error { return decode("reservation log", b, l) }

// SanitizeLog is the Sanitize Status log page, 512 bytes (Base Specification
// 2.1, figure of that name). Estimates are in seconds; see SanitizeTime.
type SanitizeLog struct {
	_       structs.HostLayout
	SPROG   uint16 // progress in 1/65536
	SSTAT   uint16 // status; see State
	SCDW10  uint32 // CDW10 of the command that started it
	ETO     uint32 // overwrite
	ETBE    uint32 // block erase
	ETCE    uint32 // crypto erase
	ETODMM  uint32 // overwrite, with no-deallocate media modification
	ETBENMM uint32 // block erase, likewise
	ETCENMM uint32 // crypto erase, likewise
	ETPVDS  uint32 // post-verification deallocation
	SSI     uint8  // state in 3:0, failure state in 7:4
	_       [475]byte
}

// States of a sanitize operation.
const (
	SanitizeNever       uint8 = 0
	SanitizeDone        uint8 = 1
	SanitizeRunning     uint8 = 2
	SanitizeFailure     uint8 = 3
	SanitizeDeallocated uint8 = 4 // done, and deallocated though asked not to
)

// AppendBinary appends the 512 bytes of the structure.
func (l *SanitizeLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (l *SanitizeLog) UnmarshalBinary(b []byte) error { return decode("sanitize log", b, l) }

// State returns one of the Sanitize... states; others are reserved.
func (l *SanitizeLog) State() uint8 { return uint8(field(l.SSTAT, 0, 3)) }

// OverwritePasses returns the number of overwrite passes that are complete.
func (l *SanitizeLog) OverwritePasses() uint8 { return uint8(field(l.SSTAT, 3, 5)) }

// GlobalDataErased tells whether no user data has been written since the last
// sanitize operation, or since the subsystem was made.
func (l *SanitizeLog) GlobalDataErased() bool { return bit(l.SSTAT, 8) }

// SanitizeTime returns an estimate of SanitizeLog as a duration, and false when
// it is not told.
func SanitizeTime(estimate uint32) (time.Duration, bool) {
	return time.Duration(estimate) * time.Second, estimate != maxUint32
}
