package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Pread reads from a file at an offset. It blocks, with the scheduler told.
// It may read less than asked for; 0 without an error is the end of the file.
func Pread(fd int, b []byte, off int64) (n int, err error) {
	for {
		n, err = unix.Pread(fd, b, off)
		if err != unix.EINTR {
			return max(n, 0), os.NewSyscallError("pread64", err)
		}
	}
}

// Pwrite writes to a file at an offset. It blocks, with the scheduler told. It
// may write less than asked for.
func Pwrite(fd int, b []byte, off int64) (n int, err error) {
	for {
		n, err = unix.Pwrite(fd, b, off)
		if err != unix.EINTR {
			return max(n, 0), os.NewSyscallError("pwrite64", err)
		}
	}
}

// Fsync makes what was written to a file durable. It blocks, with the
// scheduler told.
func Fsync(fd int) error {
	for {
		err := unix.Fsync(fd)
		if err != unix.EINTR {
			return os.NewSyscallError("fsync", err)
		}
	}
}
