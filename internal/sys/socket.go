package sys

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Socket returns a non-blocking TCP socket of a family, AF_INET or AF_INET6.
func Socket(family int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	opened(fd)
	return fd, nil
}

// Connect begins to connect. On a non-blocking socket it returns an error that
// is EINPROGRESS, or nil if that was quick; the outcome is [SockError]'s once
// the socket is writable. A signal does not break off what was begun.
func Connect(fd int, to netip.AddrPort) error {
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	err = unix.Connect(fd, sa)
	if err == unix.EINTR {
		err = unix.EINPROGRESS
	}
	return os.NewSyscallError("connect", err)
}

// SockError takes the pending error of a socket (SO_ERROR), 0 if there is
// none.
func SockError(fd int) (Errno, error) {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt SO_ERROR", err)
	}
	return Errno(v), nil
}

// Bind gives a socket its local address; port 0 takes a free one.
func Bind(fd int, local netip.AddrPort) error {
	sa, err := sockaddr(local)
	if err != nil {
		return err
	}
	return os.NewSyscallError("bind", unix.Bind(fd, sa))
}

// Listen makes a bound socket accept up to backlog pending connections.
func Listen(fd, backlog int) error {
	return os.NewSyscallError("listen", unix.Listen(fd, backlog))
}

// Accept4 takes a pending connection as a non-blocking socket. EAGAIN means
// that there is none now.
func Accept4(fd int) (nfd int, peer netip.AddrPort, err Errno) {
	nfd, sa, e := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if e != nil {
		return -1, netip.AddrPort{}, again(errno(e))
	}
	opened(nfd)
	return nfd, addrPort(sa), 0
}

// LocalAddr returns the address that a socket is bound to (getsockname).
func LocalAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	return addrPort(sa), nil
}

// PeerAddr returns the address that a socket is connected to (getpeername).
func PeerAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getpeername", err)
	}
	return addrPort(sa), nil
}

// Shutdown ends one or both directions: SHUT_RD, SHUT_WR, SHUT_RDWR.
func Shutdown(fd, how int) error {
	return os.NewSyscallError("shutdown", unix.Shutdown(fd, how))
}

// Close closes a descriptor. Linux has closed it even when it reports an
// error, so a descriptor is never closed twice.
func Close(fd int) error {
	closing(fd)
	return os.NewSyscallError("close", unix.Close(fd))
}

// errno is the number within an error of package unix, which returns nothing
// else from a system call.
func errno(err error) Errno {
	e, ok := err.(Errno)
	if !ok && err != nil {
		return unix.EINVAL
	}
	return e
}
