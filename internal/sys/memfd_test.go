package sys

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemfd(t *testing.T) {
	fd, err := Memfd("test", 8192, 0)
	must(t, err)
	closeAfter(t, fd)
	if n, err := FileSize(fd); n != 8192 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	a, err := Mmap(fd, 4096, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	b, err := Mmap(fd, 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	if a[7] = 42; b[4096+7] != 42 {
		t.Error("two mappings of one file differ")
	}
	must(t, Munmap(a))
	must(t, Munmap(b))
	if _, err := Memfd("test", -1, 0); !errors.Is(err, unix.EINVAL) {
		t.Errorf("negative size: %v", err)
	}
	if _, err := FileSize(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no file: %v", err)
	}
}
