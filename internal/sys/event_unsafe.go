package sys

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EventFD returns a non-blocking event counter (eventfd(2)) that starts at 0.
func EventFD() (fd int, err error) {
	fd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("eventfd2", err)
	}
	opened(fd)
	return fd, nil
}

// EventSignal adds one to an event counter. EAGAIN means that it is at its
// largest value, so its reader is due to wake all the same.
func EventSignal(fd int) Errno {
	one := uint64(1)
	for {
		_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), 8)
		if e != unix.EINTR {
			return e
		}
	}
}

// EventDrain takes the value of an event counter and sets it to 0. EAGAIN
// means that it was 0.
func EventDrain(fd int) (n uint64, err Errno) {
	_, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&n)), 8)
	return n, again(e)
}
