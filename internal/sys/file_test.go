package sys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "data"))
	must(t, err)
	defer f.Close()
	fd := int(f.Fd())
	if n, err := Pwrite(fd, []byte("hello"), 4096); n != 5 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	must(t, Fsync(fd))
	b := make([]byte, 10)
	if n, err := Pread(fd, b, 4097); n != 4 || err != nil || string(b[:n]) != "ello" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if n, err := Pread(fd, b, 5000); n != 0 || err != nil {
		t.Errorf("past the end: %d, %v", n, err)
	}
}

func TestFileErrors(t *testing.T) {
	_, readErr := Pread(-1, make([]byte, 1), 0)
	_, writeErr := Pwrite(-1, make([]byte, 1), 0)
	for name, err := range map[string]error{"pread64": readErr, "pwrite64": writeErr, "fsync": Fsync(-1)} {
		if !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: %v, want EBADF", name, err)
		}
		var call *os.SyscallError
		if !errors.As(err, &call) || call.Syscall != name {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestMemory(t *testing.T) {
	const rw = unix.PROT_READ | unix.PROT_WRITE
	size := os.Getpagesize()
	b, err := Mmap(-1, 0, size, rw, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(t, err)
	if len(b) != size || b[0] != 0 || b[size-1] != 0 {
		t.Fatalf("%d bytes, first %d, last %d", len(b), b[0], b[size-1])
	}
	must(t, Mlock(b))
	b[0] = 1
	must(t, Munlock(b))
	must(t, Madvise(b, unix.MADV_DONTNEED))
	if b[0] != 0 {
		t.Error("MADV_DONTNEED kept the page")
	}
	must(t, Munmap(b))
}

func TestMemoryErrors(t *testing.T) {
	_, mapErr := Mmap(-1, 0, 0, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	heap := make([]byte, 64)
	for name, err := range map[string]error{
		"mmap of nothing":             mapErr,
		"munmap of the heap":          Munmap(heap),
		"advice that is none":         Madvise(nil, -1),
		"advice for half of the heap": Madvise(heap[1:1], -1),
	} {
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", name, err)
		}
	}
}

func TestMonotonic(t *testing.T) {
	first := Monotonic()
	if second := Monotonic(); first <= 0 || second < first {
		t.Errorf("%d, then %d", first, second)
	}
}
