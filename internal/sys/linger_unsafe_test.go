package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getLinger reads SO_LINGER, for which package unix has no call.
func getLinger(fd int) (l unix.Linger, err Errno) {
	size := uint32(unsafe.Sizeof(l))
	_, _, err = unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_LINGER,
		uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&size)), 0)
	return l, err
}
