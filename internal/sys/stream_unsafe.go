//qpoll:hot

package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	recvFlags = unix.MSG_DONTWAIT
	sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
)

// Recv reads from a socket what is there, up to len(b) bytes. It returns 0 and
// no error at the end of the stream (or for an empty b), and EAGAIN if nothing
// is there now.
func Recv(fd int, b []byte) (n int, err Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), recvFlags, 0, 0)
	if e != 0 {
		return 0, again(e)
	}
	return int(r), 0
}

// Readv reads what is there into the pieces of iovs, in order. Results are
// those of [Recv]. The descriptor must be non-blocking; at most [MaxIovecs]
// pieces.
func Readv(fd int, iovs []Iovec) (n int, err Errno) {
	r, _, e := unix.RawSyscall(unix.SYS_READV, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(iovs))), uintptr(len(iovs)))
	if e != 0 {
		return 0, again(e)
	}
	return int(r), 0
}

// Send writes to a socket what it has room for, up to len(b) bytes, and
// returns EAGAIN if it has none now. A broken connection is an error, never a
// signal.
func Send(fd int, b []byte) (n int, err Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), sendFlags, 0, 0)
	if e != 0 {
		return 0, again(e)
	}
	return int(r), 0
}

// Sendmsg writes the pieces of iovs, in order. Results are those of [Send]; at
// most [MaxIovecs] pieces.
func Sendmsg(fd int, iovs []Iovec) (n int, err Errno) {
	msg := unix.Msghdr{
		Iov:    (*unix.Iovec)(unsafe.Pointer(unsafe.SliceData(iovs))),
		Iovlen: uint64(len(iovs)),
	}
	r, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), sendFlags)
	if e != 0 {
		return 0, again(e)
	}
	return int(r), 0
}
