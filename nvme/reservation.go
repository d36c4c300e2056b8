package nvme

// ReservationType is the kind of a reservation (Base Specification 2.1, figure
// "Reservation Type Encoding").
type ReservationType uint8

// The reservation types.
const (
	ReservationNone                           ReservationType = 0
	ReservationWriteExclusive                 ReservationType = 1
	ReservationExclusiveAccess                ReservationType = 2
	ReservationWriteExclusiveRegistrantsOnly  ReservationType = 3
	ReservationExclusiveAccessRegistrantsOnly ReservationType = 4
	ReservationWriteExclusiveAllRegistrants   ReservationType = 5
	ReservationExclusiveAccessAllRegistrants  ReservationType = 6
)

// String returns the specification's name of the type.
func (r ReservationType) String() string {
	switch r {
	case ReservationNone:
		return "none"
	case ReservationWriteExclusive:
		return "Write Exclusive"
	case ReservationExclusiveAccess:
		return "Exclusive Access"
	case ReservationWriteExclusiveRegistrantsOnly:
		return "Write Exclusive - Registrants Only"
	case ReservationExclusiveAccessRegistrantsOnly:
		return "Exclusive Access - Registrants Only"
	case ReservationWriteExclusiveAllRegistrants:
		return "Write Exclusive - All Registrants"
	case ReservationExclusiveAccessAllRegistrants:
		return "Exclusive Access - All Registrants"
	}
	return numbered("reservation type", uint32(r), false)
}

// Values of ReservationRegisterCommand.Action.
const (
	ReservationRegister   uint8 = 0
	ReservationUnregister uint8 = 1
	ReservationReplace    uint8 = 2
)

// Values of ReservationRegisterCommand.Persistence.
const (
	ReservationPersistSame  uint8 = 0 // no change
	ReservationPersistClear uint8 = 2 // reservations are released on power loss
	ReservationPersistSet   uint8 = 3 // reservations persist through power loss
)

// ReservationRegisterCommand is the Reservation Register command (Base
// Specification 7.6). Its data is ReservationKeys: current and new key.
type ReservationRegisterCommand struct {
	NSID        uint32
	Action      uint8 // ReservationRegister, ReservationUnregister or ReservationReplace
	IgnoreKey   bool  // the current key does not matter
	Dispersed   bool  // the host knows reservations on dispersed namespaces
	Persistence uint8 // a ReservationPersist... value
}

// Command returns the submission queue entry.
func (r ReservationRegisterCommand) Command() Command {
	return Command{
		Opcode: OpReservationRegister, NSID: r.NSID,
		CDW10: reservationBits(r.Action, r.IgnoreKey, r.Dispersed) | uint32(r.Persistence&3)<<30,
	}
}

// ParseReservationRegister reads a Reservation Register command.
func ParseReservationRegister(cmd *Command) (ReservationRegisterCommand, error) {
	if err := expectIO(cmd, OpReservationRegister); err != nil {
		return ReservationRegisterCommand{}, err
	}
	v := cmd.CDW10
	return ReservationRegisterCommand{
		NSID: cmd.NSID, Action: uint8(v & 7), IgnoreKey: bit(v, 3), Dispersed: bit(v, 4), Persistence: uint8(v >> 30),
	}, nil
}

// Values of ReservationAcquireCommand.Action.
const (
	ReservationAcquire      uint8 = 0
	ReservationPreempt      uint8 = 1
	ReservationPreemptAbort uint8 = 2
)

// ReservationAcquireCommand is the Reservation Acquire command (Base
// Specification 7.5). Its data is ReservationKeys: current key and the key to
// preempt.
type ReservationAcquireCommand struct {
	NSID      uint32
	Action    uint8 // ReservationAcquire, ReservationPreempt or ReservationPreemptAbort
	Type      ReservationType
	IgnoreKey bool // not allowed any more
	Dispersed bool // the host knows reservations on dispersed namespaces
}

// Command returns the submission queue entry.
func (r ReservationAcquireCommand) Command() Command {
	return Command{
		Opcode: OpReservationAcquire, NSID: r.NSID,
		CDW10: reservationBits(r.Action, r.IgnoreKey, r.Dispersed) | uint32(r.Type)<<8,
	}
}

// ParseReservationAcquire reads a Reservation Acquire command.
func ParseReservationAcquire(cmd *Command) (ReservationAcquireCommand, error) {
	if err := expectIO(cmd, OpReservationAcquire); err != nil {
		return ReservationAcquireCommand{}, err
	}
	v := cmd.CDW10
	return ReservationAcquireCommand{
		NSID: cmd.NSID, Action: uint8(v & 7), Type: ReservationType(v >> 8), IgnoreKey: bit(v, 3), Dispersed: bit(v, 4),
	}, nil
}

// Values of ReservationReleaseCommand.Action.
const (
	ReservationRelease uint8 = 0
	ReservationClear   uint8 = 1
)

// ReservationReleaseCommand is the Reservation Release command (Base
// Specification 7.7). Its data is the current key, 8 bytes; ReservationKeys
// serves, its second key left out.
type ReservationReleaseCommand struct {
	NSID      uint32
	Action    uint8           // ReservationRelease or ReservationClear
	Type      ReservationType // to release: the present type
	IgnoreKey bool            // not allowed any more
	Dispersed bool            // the host knows reservations on dispersed namespaces
}

// Command returns the submission queue entry.
func (r ReservationReleaseCommand) Command() Command {
	return Command{
		Opcode: OpReservationRelease, NSID: r.NSID,
		CDW10: reservationBits(r.Action, r.IgnoreKey, r.Dispersed) | uint32(r.Type)<<8,
	}
}

// ParseReservationRelease reads a Reservation Release command.
func ParseReservationRelease(cmd *Command) (ReservationReleaseCommand, error) {
	if err := expectIO(cmd, OpReservationRelease); err != nil {
		return ReservationReleaseCommand{}, err
	}
	v := cmd.CDW10
	return ReservationReleaseCommand{
		NSID: cmd.NSID, Action: uint8(v & 7), Type: ReservationType(v >> 8), IgnoreKey: bit(v, 3), Dispersed: bit(v, 4),
	}, nil
}

func reservationBits(action uint8, ignoreKey, dispersed bool) uint32 {
	return uint32(action&7) | flag[uint32](ignoreKey, 3) | flag[uint32](dispersed, 4)
}

// ReservationReportCommand is the Reservation Report command (Base
// Specification 7.8). Its data is a ReservationStatus.
type ReservationReportCommand struct {
	NSID      uint32
	Length    uint64 // of the data in bytes, a multiple of 4 from 4 to 16 GiB
	Extended  bool   // 128-bit host identifiers, else 64-bit
	Dispersed bool   // the host knows reservations on dispersed namespaces
}

// Command returns the submission queue entry.
func (r ReservationReportCommand) Command() (Command, error) {
	if r.Length == 0 || r.Length%4 != 0 || r.Length/4 > 1<<32 {
		return Command{}, outOfRange("reservation report command", "length %d", r.Length)
	}
	return Command{
		Opcode: OpReservationReport, NSID: r.NSID, CDW10: uint32(r.Length/4 - 1),
		CDW11: flag[uint32](r.Extended, 0) | flag[uint32](r.Dispersed, 1),
	}, nil
}

// ParseReservationReport reads a Reservation Report command.
func ParseReservationReport(cmd *Command) (ReservationReportCommand, error) {
	if err := expectIO(cmd, OpReservationReport); err != nil {
		return ReservationReportCommand{}, err
	}
	return ReservationReportCommand{
		NSID: cmd.NSID, Length: (uint64(cmd.CDW10) + 1) * 4, Extended: bit(cmd.CDW11, 0), Dispersed: bit(cmd.CDW11, 1),
	}, nil
}
