package sys

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PollFd is struct pollfd: a descriptor, the events to wait for, and those
// that came. A negative descriptor is left out.
type PollFd = unix.PollFd

// Ppoll waits until a descriptor is ready, or for a timeout; a negative one
// waits without end. It returns how many are ready: 0 after the timeout, and
// also when a signal broke the wait off. It blocks, with the scheduler told.
func Ppoll(fds []PollFd, timeout time.Duration) (n int, err Errno) {
	var ts *unix.Timespec
	if timeout >= 0 {
		t := unix.NsecToTimespec(int64(timeout))
		ts = &t
	}
	n, e := unix.Ppoll(fds, ts, nil)
	if e == unix.EINTR {
		return 0, 0
	}
	return max(n, 0), errno(e)
}

// EpollEvent is struct epoll_event.
type EpollEvent = unix.EpollEvent

// EpollCreate returns an empty epoll instance.
func EpollCreate() (epfd int, err error) {
	epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("epoll_create1", err)
	}
	opened(epfd)
	return epfd, nil
}

// EpollAdd watches fd for events; what it finds carries fd in its Fd field.
func EpollAdd(epfd, fd int, events uint32) error {
	ev := EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl add", unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// EpollModify changes the events that fd is watched for.
func EpollModify(epfd, fd int, events uint32) error {
	ev := EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl mod", unix.EpollCtl(epfd, unix.EPOLL_CTL_MOD, fd, &ev))
}

// EpollDelete stops watching fd.
func EpollDelete(epfd, fd int) error {
	return os.NewSyscallError("epoll_ctl del", unix.EpollCtl(epfd, unix.EPOLL_CTL_DEL, fd, nil))
}
