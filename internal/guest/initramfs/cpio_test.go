package initramfs

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// header is a header of the newc format with the given fields.
func header(ino, mode, nlink, size, major, minor, namesize string) string {
	const zero = "00000000"
	return "070701" + ino + mode + zero + zero + nlink + zero + size + zero + zero + major + minor + namesize + zero
}

const z = "00000000"

const trailerEntry = "TRAILER!!!\x00\x00\x00\x00"

func TestWriterGolden(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, err := range []error{
		w.Dir("/bin", 0o755),
		w.File("bin/x", 0o700, []byte("12345")),
		w.Symlink("/bin/sh", "x"),
		w.CharDevice("/dev/console", 0o600, 5, 1),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := header("00000001", "000041ED", "00000002", z, z, z, "00000004") + "bin\x00\x00\x00" +
		header("00000002", "000081C0", "00000001", "00000005", z, z, "00000006") + "bin/x\x00" + "12345\x00\x00\x00" +
		header("00000003", "0000A1FF", "00000001", "00000001", z, z, "00000007") + "bin/sh\x00\x00\x00\x00" + "x\x00\x00\x00" +
		header("00000004", "00002180", "00000001", z, "00000005", "00000001", "0000000C") + "dev/console\x00\x00\x00" +
		header(z, z, "00000001", z, z, z, "0000000B") + trailerEntry
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWriterNames(t *testing.T) {
	for _, bad := range []string{"", "/", "a\x00b", "../x", "a/../b", "TRAILER!!!"} {
		if err := NewWriter(&bytes.Buffer{}).File(bad, 0o644, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	for _, good := range []string{"a", "/a/b", "..a", "a..b/c"} {
		if err := NewWriter(&bytes.Buffer{}).File(good, 0o644, nil); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// failing fails after some bytes.
type failing struct{ room int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

func TestWriterErrorStays(t *testing.T) {
	w := NewWriter(&failing{room: 150})
	if err := w.File("a", 0o644, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.File("b", 0o644, nil); !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

// names returns the names in an archive, in order.
func names(t *testing.T, archive []byte) []string {
	t.Helper()
	var out []string
	for len(archive) > 0 {
		if len(archive) < 110 || string(archive[:6]) != "070701" {
			t.Fatalf("bad header %.120q", archive)
		}
		hex := func(field int) int {
			n := 0
			for _, c := range string(archive[6+8*field : 14+8*field]) {
				n = n*16 + strings.IndexRune("0123456789ABCDEF", c)
			}
			return n
		}
		nameEnd := 110 + hex(11)
		out = append(out, string(archive[110:nameEnd-1]))
		end := (nameEnd+3)&^3 + hex(6)
		archive = archive[(end+3)&^3:]
	}
	return out
}

func TestTree(t *testing.T) {
	tree := Tree{
		"/init":      {Data: []byte("x"), Perm: 0o755},
		"usr/lib/b/": {Dir: true},
		"/usr/bin/a": {Link: "b"},
		"/dev/null":  {Char: true, Major: 1, Minor: 3},
	}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := tree.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of one tree differ")
	}
	want := "dev dev/null init usr usr/bin usr/bin/a usr/lib usr/lib/b TRAILER!!!"
	if got := strings.Join(names(t, first.Bytes()), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTreeErrors(t *testing.T) {
	for _, bad := range []Tree{
		{"/a": {}, "a": {}},
		{"/a": {}, "/a/b": {}},
		{"/a": {Link: "c"}, "/a/b/c": {}},
	} {
		if err := bad.Write(&bytes.Buffer{}); !errors.Is(err, ErrName) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}
