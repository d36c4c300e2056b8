package sys

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func setInt(fd, level, opt int, name string, v int) error {
	return os.NewSyscallError("setsockopt "+name, unix.SetsockoptInt(fd, level, opt, v))
}

func getInt(fd, level, opt int, name string) (int, error) {
	v, err := unix.GetsockoptInt(fd, level, opt)
	return v, os.NewSyscallError("getsockopt "+name, err)
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// SetNoDelay sends small segments at once (TCP_NODELAY).
func SetNoDelay(fd int, on bool) error {
	return setInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, "TCP_NODELAY", flag(on))
}

// NoDelay reports whether small segments are sent at once.
func NoDelay(fd int) (bool, error) {
	v, err := getInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, "TCP_NODELAY")
	return v != 0, err
}

// SetQuickAck acknowledges at once, until the kernel thinks otherwise again
// (TCP_QUICKACK).
func SetQuickAck(fd int, on bool) error {
	return setInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, "TCP_QUICKACK", flag(on))
}

// SetUserTimeout bounds how long sent data may stay unacknowledged before the
// connection is dropped (TCP_USER_TIMEOUT), in steps of a millisecond; 0 is
// the system's default.
func SetUserTimeout(fd int, d time.Duration) error {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return setInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT", int(ms))
}

// SetCongestion chooses the congestion control algorithm by name
// (TCP_CONGESTION).
func SetCongestion(fd int, name string) error {
	return os.NewSyscallError("setsockopt TCP_CONGESTION",
		unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name))
}

// Congestion returns the name of the congestion control algorithm.
func Congestion(fd int) (string, error) {
	s, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	return s, os.NewSyscallError("getsockopt TCP_CONGESTION", err)
}

// SetPriority sets the queueing priority of what is sent (SO_PRIORITY): 0 to 6
// without CAP_NET_ADMIN.
func SetPriority(fd, priority int) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, "SO_PRIORITY", priority)
}

// Priority returns the queueing priority.
func Priority(fd int) (int, error) {
	return getInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, "SO_PRIORITY")
}

// SetTOS sets the type of service octet (DSCP in its upper six bits) of what
// is sent: IP_TOS, or IPV6_TCLASS for family AF_INET6. IP_TOS sets the priority
// as well, so [SetPriority] comes after it.
func SetTOS(fd, family int, tos uint8) error {
	if family == unix.AF_INET6 {
		return setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, "IPV6_TCLASS", int(tos))
	}
	return setInt(fd, unix.IPPROTO_IP, unix.IP_TOS, "IP_TOS", int(tos))
}

// TOS returns the type of service octet, or the traffic class for family
// AF_INET6.
func TOS(fd, family int) (int, error) {
	if family == unix.AF_INET6 {
		return getInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, "IPV6_TCLASS")
	}
	return getInt(fd, unix.IPPROTO_IP, unix.IP_TOS, "IP_TOS")
}

// SetRecvBuffer sets the receive buffer in bytes (SO_RCVBUF), which the kernel
// doubles and bounds, and stops it from growing by itself.
func SetRecvBuffer(fd, bytes int) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, "SO_RCVBUF", bytes)
}

// SetSendBuffer is [SetRecvBuffer] for the send buffer (SO_SNDBUF).
func SetSendBuffer(fd, bytes int) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, "SO_SNDBUF", bytes)
}

// RecvBuffer returns the size of the receive buffer in bytes.
func RecvBuffer(fd int) (int, error) {
	return getInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, "SO_RCVBUF")
}

// SendBuffer returns the size of the send buffer in bytes.
func SendBuffer(fd int) (int, error) {
	return getInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, "SO_SNDBUF")
}

// SetReuseAddr lets a listener bind to an address with old connections in
// TIME_WAIT (SO_REUSEADDR).
func SetReuseAddr(fd int, on bool) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, "SO_REUSEADDR", flag(on))
}

// SetBusyPoll makes blocking calls and poll spin on the device's queue this
// long, in microseconds (SO_BUSY_POLL). More than the system's value needs
// CAP_NET_ADMIN.
func SetBusyPoll(fd int, d time.Duration) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, "SO_BUSY_POLL", int(d/time.Microsecond))
}

// SetLinger says what close does with data not sent yet (SO_LINGER): nothing
// special if d is negative, reset the connection if it is 0, else keep at it
// for d, in seconds.
func SetLinger(fd int, d time.Duration) error {
	l := unix.Linger{}
	if d >= 0 {
		l.Onoff = 1
		l.Linger = int32((d + time.Second - 1) / time.Second)
	}
	return os.NewSyscallError("setsockopt SO_LINGER",
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &l))
}
