package nvme

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// DecodeError reports bytes or a command from a peer that do not form what
// they should: too short, of another kind, or with a length or count that
// leads outside of the data.
type DecodeError struct {
	What   string // the structure or command, for example "identify controller"
	Reason string
}

func (e *DecodeError) Error() string { return "nvme: malformed " + e.What + ": " + e.Reason }

func malformed(what, format string, args ...any) error {
	return &DecodeError{What: what, Reason: fmt.Sprintf(format, args...)}
}

// RangeError reports a value that does not fit the field it is meant for.
type RangeError struct {
	What   string // the structure or command
	Reason string
}

func (e *RangeError) Error() string { return "nvme: cannot encode " + e.What + ": " + e.Reason }

func outOfRange(what, format string, args ...any) error {
	return &RangeError{What: what, Reason: fmt.Sprintf(format, args...)}
}

// decode fills the fixed-size structure v from the start of b. Bytes past the
// structure are the caller's business: a data buffer is often larger.
func decode(what string, b []byte, v any) error {
	if want := binary.Size(v); len(b) < want {
		return malformed(what, "%d bytes, want %d", len(b), want)
	}
	_, err := binary.Decode(b, binary.LittleEndian, v)
	return err
}

// encode appends the fixed-size structure v to b, reserved fields zero.
func encode(b []byte, v any) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, v)
}

// bit returns v's bit n as a bool.
func bit[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T, n uint) bool { return v>>n&1 != 0 }

// field returns the n bits of v from bit lo up.
func field[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T, lo, n uint) T {
	return v >> lo & (1<<n - 1)
}

// withField returns v with the n bits from lo up replaced by x's n low bits.
func withField[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T, lo, n uint, x T) T {
	mask := T(1<<n - 1)
	return v&^(mask<<lo) | (x&mask)<<lo
}

// flag returns 1<<n when set, else 0.
func flag[T ~uint8 | ~uint16 | ~uint32 | ~uint64](set bool, n uint) T {
	if set {
		return 1 << n
	}
	return 0
}

// units converts d to a count of unit, rounding up so that a timeout never
// gets shorter, and keeping within 0 and limit.
func units(d, unit time.Duration, limit uint32) uint32 {
	if d <= 0 {
		return 0
	}
	n := uint64(d-1)/uint64(unit) + 1
	return uint32(min(n, uint64(limit)))
}

const maxUint32 = math.MaxUint32
