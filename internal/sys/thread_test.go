package sys

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own, which ends after it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func TestAffinity(t *testing.T) {
	all, err := GetAffinity()
	must(t, err)
	if len(all) == 0 || !slices.IsSorted(all) {
		t.Fatalf("allowed CPUs are %v", all)
	}
	for _, cpu := range all {
		onThread(func() {
			if err := SetAffinity(cpu); err != nil {
				t.Error(err)
			}
			if got, err := GetAffinity(); err != nil || !slices.Equal(got, []int{cpu}) {
				t.Errorf("pinned to %d, the mask is %v, %v", cpu, got, err)
			}
		})
	}
	onThread(func() {
		if err := SetAffinityMask(0, all); err != nil {
			t.Error(err)
		}
		if got, err := GetAffinity(); err != nil || !slices.Equal(got, all) {
			t.Errorf("the mask is %v, %v; want %v", got, err, all)
		}
	})
}

func TestAffinityErrors(t *testing.T) {
	for _, cpu := range []int{-1, maxCPUs - 1, maxCPUs} {
		onThread(func() {
			if err := SetAffinity(cpu); !errors.Is(err, unix.EINVAL) {
				t.Errorf("CPU %d: %v, want EINVAL", cpu, err)
			}
		})
	}
}

func TestTimerSlack(t *testing.T) {
	for _, d := range []time.Duration{1, 1000} {
		onThread(func() {
			if err := SetTimerSlack(d); err != nil {
				t.Fatal(err)
			}
			slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
			if err != nil || slack != int(d) {
				t.Errorf("slack is %d ns, %v; want %d", slack, err, d)
			}
		})
	}
}

func TestGettid(t *testing.T) {
	onThread(func() {
		if tid := Gettid(); tid <= 0 || tid != Gettid() {
			t.Errorf("thread %d", tid)
		}
		outer := Gettid()
		onThread(func() {
			if Gettid() == outer {
				t.Errorf("two threads are %d", outer)
			}
		})
	})
}
