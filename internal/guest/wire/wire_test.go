package wire

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestFrameGolden(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFrame(&b, KindData, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	if want := "\x03\x03\x00\x00\x00abc"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	var b bytes.Buffer
	sizes := []int{0, 1, 100, MaxData, MaxPayload}
	for i, n := range sizes {
		if err := WriteFrame(&b, Kind(i+1), bytes.Repeat([]byte{byte(n)}, n)); err != nil {
			t.Fatal(err)
		}
	}
	var buf []byte
	for i, n := range sizes {
		k, p, err := ReadFrame(&b, buf)
		if err != nil || k != Kind(i+1) || !bytes.Equal(p, bytes.Repeat([]byte{byte(n)}, n)) {
			t.Fatalf("frame %d: kind %d, %d bytes, %v", i, k, len(p), err)
		}
		buf = p
	}
	if _, _, err := ReadFrame(&b, buf); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestFrameErrors(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     error
	}{
		{"nothing", "", io.EOF},
		{"half a header", "\x01\x00", io.ErrUnexpectedEOF},
		{"no payload", "\x01\x02\x00\x00\x00", io.ErrUnexpectedEOF},
		{"half a payload", "\x01\x02\x00\x00\x00x", io.ErrUnexpectedEOF},
		{"kind 0", "\x00\x00\x00\x00\x00", ErrKind},
		{"kind too high", "\x07\x00\x00\x00\x00", ErrKind},
		{"too large", "\x01\x01\x00\x10\x00", ErrTooLarge},
		{"far too large", "\x01\xff\xff\xff\xff", ErrTooLarge},
	} {
		if _, _, err := ReadFrame(strings.NewReader(c.in), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if err := WriteFrame(io.Discard, KindData, make([]byte, MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestDecodeRequest(t *testing.T) {
	for _, good := range []string{
		`{"op":"hello"}`, `{"op":"exec","exec":{"argv":["x"]}}`, `{"op":"steps"}`, `{"op":"fetch","path":"/x"}`,
	} {
		if _, err := DecodeRequest([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, `{}`, `{"op":"dance"}`, `{"op":"exec"}`, `{"op":"exec","exec":{"argv":[]}}`, `{"op":"upload"}`, `{"op":"fetch"}`, `[]`,
	} {
		if r, err := DecodeRequest([]byte(bad)); err == nil {
			t.Errorf("%s: got %+v", bad, r)
		}
	}
}

func TestErrorUnpack(t *testing.T) {
	var none *Error
	if err := none.Unpack(); err != nil {
		t.Errorf("got %v", err)
	}
	err := (&Error{Op: "open", Path: "/x", Errno: int(syscall.ENOENT), Msg: "m"}).Unpack()
	var pe *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pe) || pe.Path != "/x" || pe.Op != "open" {
		t.Errorf("got %#v", err)
	}
	if err := (&Error{Op: "kill", Errno: int(syscall.EPERM)}).Unpack(); !errors.Is(err, syscall.EPERM) {
		t.Errorf("got %v", err)
	}
	if err := (&Error{Msg: "out of luck"}).Unpack(); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x03\x03\x00\x00\x00abc"))
	f.Add([]byte("\x01\x0e\x00\x00\x00{\"op\":\"hello\"}"))
	f.Add([]byte("\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var buf []byte
		for {
			at := len(in) - r.Len()
			k, p, err := ReadFrame(r, buf)
			if err != nil {
				return
			}
			var out bytes.Buffer
			if err := WriteFrame(&out, k, p); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), in[at:len(in)-r.Len()]) {
				t.Fatalf("frame at %d does not round-trip", at)
			}
			if k == KindRequest {
				_, _ = DecodeRequest(p)
			} else if k == KindResult {
				_, _ = DecodeResult(p)
			}
			buf = p
		}
	})
}
