package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPUTime returns the processor time that all threads of the process
// have used (CLOCK_PROCESS_CPUTIME_ID).
func ProcessCPUTime() time.Duration { return cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPUTime returns the processor time that the calling thread has used
// (CLOCK_THREAD_CPUTIME_ID). The goroutine must be locked to its thread.
func ThreadCPUTime() time.Duration { return cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) }

func cpuTime(clock int32) time.Duration {
	var ts unix.Timespec
	// The call cannot fail: the clocks exist and ts is valid memory.
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}
