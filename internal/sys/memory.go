package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Mmap maps length bytes of a file at an offset, or anonymous memory with
// MAP_ANONYMOUS and fd -1. The slice is the mapping's only root: keep it, and
// give that very slice to [Munmap].
func Mmap(fd int, off int64, length, prot, flags int) ([]byte, error) {
	b, err := unix.Mmap(fd, off, length, prot, flags)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	mapped(b)
	return b, nil
}

// Munmap ends a mapping made by [Mmap].
func Munmap(b []byte) error {
	unmapping(b)
	return os.NewSyscallError("munmap", unix.Munmap(b))
}

// Mlock keeps memory from being paged out.
func Mlock(b []byte) error { return os.NewSyscallError("mlock", unix.Mlock(b)) }

// Munlock undoes [Mlock].
func Munlock(b []byte) error { return os.NewSyscallError("munlock", unix.Munlock(b)) }

// Madvise tells the kernel how memory will be used (MADV_*).
func Madvise(b []byte, advice int) error {
	return os.NewSyscallError("madvise", unix.Madvise(b, advice))
}
