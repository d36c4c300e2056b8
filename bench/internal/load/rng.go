//qpoll:hot

package load

import "math/bits"

// rng is a generator of 64-bit random numbers, of the multiply-and-fold kind:
// a counter goes up by an odd constant, and a 128-bit product of it is folded.
// Any state will do, but equal ones give equal sequences.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	hi, lo := bits.Mul64(uint64(*r), uint64(*r)^0xd1342543de82ef95)
	return hi ^ lo
}

// below returns a number from 0 to n-1. For n far below 2^64, as slots are,
// none is likelier than another by more than n/2^64.
func (r *rng) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}
