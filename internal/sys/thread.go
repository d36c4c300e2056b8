package sys

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxCPUs bounds the CPU numbers of an affinity mask.
const maxCPUs = 1 << 16

// Gettid returns the kernel's number of the calling thread. It means something
// to a goroutine locked to its thread only.
func Gettid() int { return unix.Gettid() }

// SetAffinity lets the calling thread run on one CPU only. The goroutine must
// be locked to its thread, and should end locked, so that no other goroutine
// is left with the thread.
func SetAffinity(cpu int) error {
	if cpu < 0 || cpu >= maxCPUs {
		return os.NewSyscallError("sched_setaffinity", unix.EINVAL)
	}
	return SetAffinityMask(0, []int{cpu})
}

// SetAffinityMask lets a thread run on the given CPUs only; tid 0 is the
// calling thread, as for [SetAffinity].
func SetAffinityMask(tid int, cpus []int) error {
	set := unix.NewCPUSet(maxCPUs)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinityDynamic(tid, set))
}

// SetTimerSlack bounds how late the kernel may end a timed wait of the calling
// thread for the sake of others (PR_SET_TIMERSLACK), 50 us by default. The
// goroutine must be locked to its thread, and should end locked.
func SetTimerSlack(d time.Duration) error {
	return os.NewSyscallError("prctl PR_SET_TIMERSLACK",
		unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(max(d, 1)), 0, 0, 0))
}

// GetAffinity returns the CPUs that the calling thread may run on, in rising
// order.
func GetAffinity() ([]int, error) {
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	cpus := make([]int, 0, set.Count())
	for cpu := 0; len(cpus) < cap(cpus); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
