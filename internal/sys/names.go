package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Error numbers and flags that callers of this package need.
const (
	EAGAIN      = unix.EAGAIN
	EINPROGRESS = unix.EINPROGRESS

	POLLIN  = unix.POLLIN
	POLLOUT = unix.POLLOUT

	SHUT_RD   = unix.SHUT_RD
	SHUT_WR   = unix.SHUT_WR
	SHUT_RDWR = unix.SHUT_RDWR
)

// BindToDevice makes a socket send and receive through one network interface
// only (SO_BINDTODEVICE).
func BindToDevice(fd int, iface string) error {
	return os.NewSyscallError("setsockopt SO_BINDTODEVICE", unix.BindToDevice(fd, iface))
}
