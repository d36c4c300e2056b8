package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenDevice opens a device file for reading and writing. It blocks, with the
// scheduler told. The error is an *os.PathError.
func OpenDevice(path string) (fd int, err error) {
	for {
		fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	opened(fd)
	return fd, nil
}

// Adopt takes note of a descriptor that the kernel made in a call of a package
// below this one. [Close] closes it.
func Adopt(fd int) { opened(fd) }

// MemlockLimit returns how many bytes the process may lock (RLIMIT_MEMLOCK), the
// largest number if there is no limit.
func MemlockLimit() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return 0, os.NewSyscallError("getrlimit RLIMIT_MEMLOCK", err)
	}
	return l.Cur, nil
}

// SetMemlockLimit sets how many bytes the process may lock, up to the hard
// limit. Processes with CAP_IPC_LOCK are not bound by it.
func SetMemlockLimit(bytes uint64) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return os.NewSyscallError("getrlimit RLIMIT_MEMLOCK", err)
	}
	l.Cur = bytes
	return os.NewSyscallError("setrlimit RLIMIT_MEMLOCK", unix.Setrlimit(unix.RLIMIT_MEMLOCK, &l))
}
