package sys

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EpollWait waits for events, or for a timeout, rounded up to a millisecond; a
// negative one waits without end. It returns how many of events it filled in:
// 0 after the timeout and when a signal broke the wait off. It blocks, with
// the scheduler told.
func EpollWait(epfd int, events []EpollEvent, timeout time.Duration) (n int, err Errno) {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, e := unix.EpollWait(epfd, events, ms)
	if e == unix.EINTR {
		return 0, 0
	}
	return max(n, 0), errno(e)
}

// EpollTake returns the events that are there now, without waiting.
func EpollTake(epfd int, events []EpollEvent) (n int, err Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0, again(e)
	}
	return int(r), 0
}
