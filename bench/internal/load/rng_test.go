package load

import (
	"math"
	"testing"
)

// Positions must cover a namespace evenly: the chi-square statistic of 256
// cells stays within what chance gives but once in a million runs.
func TestUniform(t *testing.T) {
	for seed := range rng(20) {
		r := seed
		var cells [256]float64
		const n = 256 * 400
		for range n {
			cells[r.below(256)]++
		}
		chi := 0.0
		for _, c := range cells {
			chi += (c - n/256) * (c - n/256) / (n / 256)
		}
		if chi < 155 || chi > 380 {
			t.Errorf("seed %d: chi-square %.1f for 255 degrees of freedom", seed, chi)
		}
	}
}

func TestBelow(t *testing.T) {
	r := rng(1)
	for _, n := range []uint64{1, 2, 3, 1000, 1 << 40, math.MaxUint64} {
		for range 1000 {
			if v := r.below(n); v >= n {
				t.Fatalf("%d is not below %d", v, n)
			}
		}
	}
}

// Jobs whose states lie close together go different ways.
func TestSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range rng(1000) {
		for r, i := seed<<32, 0; i < 10; i++ {
			seen[r.next()] = true
		}
	}
	if len(seen) != 10000 {
		t.Errorf("%d different numbers of 10000", len(seen))
	}
}
