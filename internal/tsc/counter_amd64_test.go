package tsc

import "testing"

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		crystal, num, den uint32
		want              uint64
	}{
		{24_000_000, 216, 2, 2_592_000_000},
		{25_000_000, 168, 2, 2_100_000_000},
		{38_400_000, 125, 3, 1_600_000_000},
		{19_200_000, 7, 3, 44_800_000},
		{1, 2, 3, 1},
		{0, 216, 2, 0},
		{24_000_000, 0, 2, 0},
		{24_000_000, 216, 0, 0},
		{1<<32 - 1, 1<<32 - 1, 1, 18446744065119617025},
	} {
		if got := ratio(c.crystal, c.num, c.den); got != c.want {
			t.Errorf("%d*%d/%d = %d Hz, want %d", c.crystal, c.num, c.den, got, c.want)
		}
	}
}

// The leaves are read through an assembly call: its results must not be mixed
// up.
func TestCPUIDVendor(t *testing.T) {
	max, b, c, d := cpuid(leafMax, 0)
	var vendor []byte
	for _, r := range []uint32{b, d, c} {
		vendor = append(vendor, byte(r), byte(r>>8), byte(r>>16), byte(r>>24))
	}
	for _, ch := range vendor {
		if ch < ' ' || ch > '~' {
			t.Fatalf("vendor %q", vendor)
		}
	}
	if max == 0 {
		t.Error("no leaves")
	}
}
