package nvme

import (
	"encoding"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// hexBytes turns "7f 00 | 01" into bytes; spaces and bars are for the reader.
func hexBytes(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func commandBytes(t testing.TB, cmd Command) []byte {
	t.Helper()
	b, err := encode(nil, &cmd)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantCommand compares a command with its 64 golden bytes.
func wantCommand(t testing.TB, cmd Command, golden string) {
	t.Helper()
	if got, want := hex.EncodeToString(commandBytes(t, cmd)), hex.EncodeToString(hexBytes(t, golden)); got != want {
		t.Errorf("command\n got %s\nwant %s", got, want)
	}
}

func wantDecodeError(t testing.TB, err error, what string) {
	t.Helper()
	var d *DecodeError
	if !errors.As(err, &d) {
		t.Errorf("error %v, want a DecodeError", err)
	} else if !strings.Contains(d.Error(), what) {
		t.Errorf("error %q does not speak of %q", d, what)
	}
}

func wantRangeError(t testing.TB, err error) {
	t.Helper()
	var r *RangeError
	if !errors.As(err, &r) {
		t.Errorf("error %v, want a RangeError", err)
	}
}

// image is a data structure's bytes with some of them set.
type image []byte

func newImage(size int) image { return make(image, size) }

func (m image) put(t testing.TB, offset int, hexes string) image {
	t.Helper()
	copy(m[offset:], hexBytes(t, hexes))
	return m
}

// structure is what every fixed-size data structure of this package offers.
type structure interface {
	encoding.BinaryUnmarshaler
	encoding.BinaryAppender
}

// roundTrip encodes want, compares with the golden image, decodes the image
// into got, and compares again; then it checks that one byte less is refused.
func roundTrip(t *testing.T, golden image, want, got structure) {
	t.Helper()
	b, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, golden)
	if err := got.UnmarshalBinary(golden); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T decodes to something else than it was encoded from", got)
	}
	wantDecodeError(t, got.UnmarshalBinary(golden[:len(golden)-1]), "bytes, want")
	b, err = want.AppendBinary([]byte{0xee})
	if err != nil || b[0] != 0xee {
		t.Fatalf("AppendBinary: %v", err)
	}
	wantImage(t, b[1:], golden)
}

func wantImage(t *testing.T, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("byte %d (0x%x) is 0x%02x, want 0x%02x", i, i, got[i], want[i])
		}
	}
}
