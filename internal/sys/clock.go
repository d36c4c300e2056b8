package sys

import "golang.org/x/sys/unix"

// Monotonic reads CLOCK_MONOTONIC in nanoseconds with a system call. Package
// tsc is the clock to use; this is what it is aligned with.
func Monotonic() int64 {
	var ts unix.Timespec
	// The call cannot fail: the clock exists and ts is valid memory.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
