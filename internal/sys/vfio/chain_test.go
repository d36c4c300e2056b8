package vfio

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// raw turns little-endian fields, written as hexadecimal bytes, into bytes.
func raw(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	regionHead = `20000000 07000000 00000000 00000000 0040000000000000 0000000000000000 `
	sparseHead = `50000000 0f000000 00000000 20000000 0040000000000000 0000010000000000 `
)

func TestRegion(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Region
	}{
		{"all of it", regionHead, Region{7, 0x4000, 0, []Area{{0, 0x4000}}}},
		{"not mappable", `20000000 03000000 07000000 00000000 0010000000000000 0000000007000000`,
			Region{3, 0x1000, 7 << 32, nil}},
		{"sparse, after another capability", sparseHead +
			`0300 0100 28000000 0100 0100 00000000 02000000 00000000` +
			`0030000000000000 0010000000000000 0000000000000000 0020000000000000`,
			Region{15, 0x4000, 0x10000, []Area{{0, 0x2000}, {0x3000, 0x1000}}}},
		{"sparse, nothing", sparseHead + `0100 0100 00000000 00000000 00000000`, Region{15, 0x4000, 0x10000, nil}},
		{"a version that is not known", sparseHead + `0100 0200 00000000 ffffffff 00000000`,
			Region{15, 0x4000, 0x10000, []Area{{0, 0x4000}}}},
	} {
		got, err := decodeRegion(raw(t, c.in))
		if err != nil || got.Flags != c.want.Flags || got.Size != c.want.Size || got.Offset != c.want.Offset ||
			len(got.Mappable) != len(c.want.Mappable) || len(got.Mappable) > 0 && !reflect.DeepEqual(got.Mappable, c.want.Mappable) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestRegionMalformed(t *testing.T) {
	for name, in := range map[string]string{
		"short":                      `20000000 07000000`,
		"too large":                  `20000000 07000000 00000000 00000000 0000000000000080 0000000000000000`,
		"end beyond everything":      `20000000 07000000 00000000 00000000 0010000000000000 ffffffffffffff7f`,
		"chain beyond the end":       sparseHead,
		"chain that loops":           sparseHead + `0300 0100 20000000 0000000000000000`,
		"chain that goes back":       sparseHead + `0300 0100 08000000 0000000000000000`,
		"more areas than there is":   sparseHead + `0100 0100 00000000 02000000 00000000 0000000000000000 0010000000000000`,
		"count that overflows":       sparseHead + `0100 0100 00000000 ffffffff 00000000 0000000000000000 0010000000000000`,
		"area beyond the region":     sparseHead + `0100 0100 00000000 01000000 00000000 0030000000000000 0020000000000000`,
		"area whose end wraps":       sparseHead + `0100 0100 00000000 01000000 00000000 0010000000000000 00f0ffffffffffff`,
		"areas that overlap":         sparseHead + `0100 0100 00000000 02000000 00000000 0000000000000000 0020000000000000 0010000000000000 0010000000000000`,
		"capability without a count": sparseHead + `0100 0100 00000000`,
	} {
		if r, err := decodeRegion(raw(t, in)); !errors.Is(err, ErrInfo) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestIOMMU(t *testing.T) {
	const head = `60000000 03000000 00f0ffffffffffff 18000000 00000000 `
	got, err := decodeIOMMU(raw(t, head+
		`0100 0100 48000000 02000000 00000000 000000000000f0fe ffffffffffffffff 0000000000000000 ffffdffe00000000`+
		`0300 0100 00000000 ffff0000`))
	want := IOMMU{^uint64(0xfff), []Range{{0, 0xfedfffff}, {0xfef0 << 48, math.MaxUint64}}, 0xffff}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = decodeIOMMU(raw(t, `14000000 01000000 00f0ffffffffffff 00000000`))
	if err != nil || got.Ranges != nil || got.Avail != 0 {
		t.Errorf("an old kernel: %+v, %v", got, err)
	}
	for name, in := range map[string]string{
		"short":        `14000000 01000000`,
		"turned round": head + `0100 0100 00000000 01000000 00000000 0010000000000000 0000000000000000`,
		"overlap":      head + `0100 0100 00000000 02000000 00000000 0000000000000000 0010000000000000 0010000000000000 0020000000000000`,
		"cut":          head + `0300 0100 00000000 `,
	} {
		if i, err := decodeIOMMU(raw(t, in)); !errors.Is(err, ErrInfo) {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}

func FuzzRegion(f *testing.F) {
	f.Add(raw(f, regionHead))
	f.Add(raw(f, sparseHead+`0100 0100 00000000 01000000 00000000 0000000000000000 0020000000000000`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRegion(b)
		if err != nil {
			return
		}
		end := uint64(0)
		for _, a := range r.Mappable {
			if a.Size == 0 || a.Offset < end || a.Offset+a.Size > r.Size || a.Offset+a.Size < a.Offset {
				t.Fatalf("area %+v of %+v", a, r)
			}
			end = a.Offset + a.Size
		}
	})
}

func FuzzIOMMU(f *testing.F) {
	f.Add(raw(f, `14000000 01000000 00f0ffffffffffff 00000000`))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := decodeIOMMU(b)
		if err != nil {
			return
		}
		for k, r := range i.Ranges {
			if r.First > r.Last || k > 0 && r.First <= i.Ranges[k-1].Last {
				t.Fatalf("ranges %+v", i.Ranges)
			}
		}
	})
}
