package sys

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSealSize(t *testing.T) {
	fd, err := Memfd("test", 4096, unix.MFD_ALLOW_SEALING)
	must(t, err)
	closeAfter(t, fd)
	must(t, SealSize(fd))
	for _, size := range []int64{0, 8192} {
		if err := unix.Ftruncate(fd, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("sealed, and set to %d bytes: %v", size, err)
		}
	}
	if err := SealSize(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no file: %v", err)
	}
}

func TestSetNonblock(t *testing.T) {
	fds := make([]int, 2)
	must(t, unix.Pipe2(fds, unix.O_CLOEXEC))
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	must(t, SetNonblock(fds[0]))
	if _, err := unix.Read(fds[0], make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("read of nothing: %v", err)
	}
	if err := SetNonblock(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no file: %v", err)
	}
}

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
