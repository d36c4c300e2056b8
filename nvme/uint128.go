package nvme

import (
	"math"
	"math/big"
)

// Uint128 is a little-endian 128-bit unsigned number, which NVMe uses for
// capacities in bytes and for health counters.
type Uint128 struct {
	Lo, Hi uint64
}

// Uint64 returns the value, or the largest uint64 and false when it is larger.
func (u Uint128) Uint64() (uint64, bool) {
	if u.Hi != 0 {
		return math.MaxUint64, false
	}
	return u.Lo, true
}

// Float64 returns the value, rounded when it needs more than 53 bits.
func (u Uint128) Float64() float64 {
	return math.Ldexp(float64(u.Hi), 64) + float64(u.Lo)
}

// IsZero tells whether the value is 0.
func (u Uint128) IsZero() bool { return u == Uint128{} }

// String returns the value in decimal.
func (u Uint128) String() string {
	v := new(big.Int).SetUint64(u.Hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(u.Lo)).String()
}
