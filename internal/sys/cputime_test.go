package sys

import (
	"runtime"
	"testing"
)

func TestCPUTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, process := ThreadCPUTime(), ProcessCPUTime()
	if thread <= 0 || process <= 0 {
		t.Fatalf("thread %v, process %v", thread, process)
	}
	// Both clocks advance by what this loop uses, and by nothing else that it
	// could wait for.
	for ThreadCPUTime() == thread || ProcessCPUTime() == process {
	}
	if now := ThreadCPUTime(); now < thread {
		t.Errorf("thread time went from %v to %v", thread, now)
	}
}
