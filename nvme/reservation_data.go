package nvme

import (
	"encoding/binary"
	"structs"
)

// ReservationKeys is the data of Reservation Register and Reservation Acquire,
// 16 bytes (Base Specification 2.1, figures "Reservation Register Data
// Structure" and "Reservation Acquire Data Structure").
type ReservationKeys struct {
	_       structs.HostLayout
	Current uint64 // CRKEY
	Other   uint64 // NRKEY: the new key; PRKEY: the key to preempt
}

// AppendBinary appends the 16 bytes of the structure.
func (k *ReservationKeys) AppendBinary(b []byte) ([]byte, error) { return encode(b, k) }

// UnmarshalBinary reads the structure from the first 16 bytes of b.
func (k *ReservationKeys) UnmarshalBinary(b []byte) error { return decode("reservation keys", b, k) }

// Values of Registrant.ControllerID for a registrant without a controller in
// this subsystem.
const (
	RegistrantNoController uint16 = 0xffff
	RegistrantDispersed    uint16 = 0xfffd // a controller of another subsystem
)

// ReservationStatus is the data of Reservation Report (Base Specification 2.1,
// figures "Reservation Status Data Structure" and "Reservation Status Extended
// Data Structure").
type ReservationStatus struct {
	Generation  uint32
	Type        ReservationType // ReservationNone when none is held
	Persist     bool            // persists through power loss
	Count       int             // registrants that there are; more than Registrants when cut off
	Registrants []Registrant
}

// Registrant is one registrant of a namespace.
type Registrant struct {
	ControllerID uint16
	Holder       bool // holds the reservation
	Key          uint64
	HostID       [16]byte // 64-bit host identifiers have the first 8 bytes
}

const (
	reservationHeader         = 24
	reservationExtendedHeader = 64
	registrantSize            = 24
	registrantExtendedSize    = 64
)

// Size returns the size of the data in bytes for Count registrants.
func (s *ReservationStatus) Size(extended bool) int {
	if extended {
		return reservationExtendedHeader + s.Count*registrantExtendedSize
	}
	return reservationHeader + s.Count*registrantSize
}

// ParseReservationStatus reads the data of Reservation Report, extended or not
// as the command asked. A host may ask for less than there is: the registrants
// that are there whole are returned, and Count tells how many there are. Less
// than a header is a DecodeError.
func ParseReservationStatus(b []byte, extended bool) (*ReservationStatus, error) {
	c := cursor{what: "reservation status", b: b}
	s := &ReservationStatus{Generation: c.u32(), Type: ReservationType(c.u8()), Count: int(c.u16())}
	c.skip(2)
	s.Persist = bit(c.u8(), 0)
	c.skip(14)
	size := registrantSize
	if extended {
		c.skip(reservationExtendedHeader - reservationHeader)
		size = registrantExtendedSize
	}
	if c.err != nil {
		return nil, c.err
	}
	for range min(s.Count, c.rest()/size) {
		s.Registrants = append(s.Registrants, parseRegistrant(c.take(size), extended))
	}
	return s, c.err
}

func parseRegistrant(b []byte, extended bool) Registrant {
	le := binary.LittleEndian
	r := Registrant{ControllerID: le.Uint16(b), Holder: bit(b[2], 0)}
	if extended {
		r.Key = le.Uint64(b[8:])
		copy(r.HostID[:], b[16:32])
		return r
	}
	copy(r.HostID[:8], b[8:16])
	r.Key = le.Uint64(b[16:])
	return r
}

// Append appends the data of Reservation Report with all Registrants; Count is
// not looked at.
func (s *ReservationStatus) Append(b []byte, extended bool) ([]byte, error) {
	if len(s.Registrants) > 0xffff {
		return nil, outOfRange("reservation status", "%d registrants", len(s.Registrants))
	}
	b = binary.LittleEndian.AppendUint32(b, s.Generation)
	b = append(b, uint8(s.Type))
	b = appendU16(b, uint16(len(s.Registrants)))
	b = append(b, 0, 0, flag[uint8](s.Persist, 0))
	b = append(b, make([]byte, 14)...)
	if extended {
		b = append(b, make([]byte, reservationExtendedHeader-reservationHeader)...)
	}
	for i := range s.Registrants {
		b = s.Registrants[i].append(b, extended)
	}
	return b, nil
}

func (r *Registrant) append(b []byte, extended bool) []byte {
	b = appendU16(b, r.ControllerID)
	b = append(b, flag[uint8](r.Holder, 0), 0, 0, 0, 0, 0)
	if extended {
		b = binary.LittleEndian.AppendUint64(b, r.Key)
		b = append(b, r.HostID[:]...)
		return append(b, make([]byte, 32)...)
	}
	b = append(b, r.HostID[:8]...)
	return binary.LittleEndian.AppendUint64(b, r.Key)
}
