package policy

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The comparison by products is that of the quotients, up to what the shift of
// very large counts drops.
func TestSooner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := func(name string) *stRow {
			shift := rapid.IntRange(0, 63).Draw(t, name+" shift")
			return &stRow{
				bytes:  rapid.Uint64().Draw(t, name) >> shift,
				weight: uint32(rapid.IntRange(1, MaxWeight).Draw(t, name+" weight")),
			}
		}
		a, b := row("a"), row("b")
		x := new(big.Rat).SetFrac(new(big.Int).SetUint64(a.bytes), big.NewInt(int64(a.weight)))
		y := new(big.Rat).SetFrac(new(big.Int).SetUint64(b.bytes), big.NewInt(int64(b.weight)))
		if max(a.bytes, b.bytes) < manyBytes {
			want := x.Cmp(y) < 0 || x.Cmp(y) == 0 && a.weight > b.weight
			if got := a.sooner(b); got != want {
				t.Fatalf("%+v before %+v: %v, want %v", a, b, got, want)
			}
			return
		}
		if slack := big.NewRat(1<<weightBits, 1); new(big.Rat).Add(x, slack).Cmp(y) < 0 && !a.sooner(b) {
			t.Fatalf("%+v is not before %+v", a, b)
		}
	})
	zero := &stRow{bytes: 1}
	if !(&stRow{}).sooner(zero) || zero.sooner(&stRow{}) || zero.sooner(zero) {
		t.Error("without throughputs, fewer bytes do not win")
	}
	many := &stRow{bytes: ^uint64(0), weight: MaxWeight}
	if many.sooner(&stRow{bytes: ^uint64(0) >> 1, weight: MaxWeight}) {
		t.Error("the product of many bytes overflowed")
	}
}
