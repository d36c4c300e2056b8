// Package sys is the only place in this module that makes system calls.
//
// Calls for the poll loop (streams, event counters) are raw: they keep the
// processor from the Go scheduler, so they are made on non-blocking descriptors
// only, never allocate, and return a plain [Errno]. A call that a signal broke
// off (EINTR; the runtime preempts by signal) moved nothing and reports EAGAIN,
// so that callers have one case less. Calls that may block tell the scheduler.
//
// Set-up calls return an error that names the system call and unwraps to an
// Errno. The names and constants are those of the Linux system call interface.
package sys

import "golang.org/x/sys/unix"

// Errno is a system error number; 0 is success.
type Errno = unix.Errno

// again is what a call broken off by a signal reports.
func again(e Errno) Errno {
	if e == unix.EINTR {
		return unix.EAGAIN
	}
	return e
}
