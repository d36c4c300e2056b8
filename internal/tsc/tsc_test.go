package tsc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
)

func TestTicksAdvance(t *testing.T) {
	start := Ticks()
	for range 1_000_000 {
		if Ticks() != start {
			return
		}
		Pause()
	}
	t.Errorf("the counter stands at %d", start)
}

func TestNowIsMonotonicClock(t *testing.T) {
	Now()
	before := sys.Monotonic()
	now := Now()
	after := sys.Monotonic()
	// What the measured rate may be off by, over all of the process's time.
	slack := int64(time.Millisecond) + (after-system.anchorNS)/1000
	if now < before-slack || now > after+slack {
		t.Errorf("Now is %d between %d and %d of CLOCK_MONOTONIC", now, before, after)
	}
}

func TestInvariantAndFrequency(t *testing.T) {
	if hz := Frequency(); Invariant() != (hz != 0) || hz != 0 && (hz < minFrequency || hz > maxFrequency) {
		t.Errorf("invariant %v at %d Hz", Invariant(), hz)
	}
}

func TestNowOnOneThread(t *testing.T) {
	last := Now()
	for n := range 100_000 {
		if n%1000 == 0 {
			Calibrate()
		}
		now := Now()
		if now < last {
			t.Fatalf("%d was read after %d", now, last)
		}
		last = now
	}
}

// reordering is more than the processor may read the counter ahead of a load
// that comes first in the program.
const reordering = int64(5 * time.Microsecond)

// What one thread has read and told to another, that one must not read below,
// calibration or not.
func TestNowBetweenThreads(t *testing.T) {
	var latest atomic.Int64
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for !stop.Load() {
				seen := latest.Load()
				now := Now()
				if now < seen-reordering {
					t.Errorf("%d was read before %d", seen, now)
					return
				}
				if now > seen {
					latest.CompareAndSwap(seen, now)
				}
				runtime.Gosched()
			}
		})
	}
	for range 500 {
		Calibrate()
		runtime.Gosched()
	}
	stop.Store(true)
	readers.Wait()
	if latest.Load() == 0 {
		t.Error("nothing was read")
	}
}

func TestNoAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Now(); Ticks(); Pause() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKernelTrusts(t *testing.T) {
	for _, c := range []struct {
		list string
		want bool
	}{
		{clockSource + " hpet acpi_pm \n", true},
		{"kvm-clock " + clockSource + "\n", true},
		{"hpet acpi_pm \n", false},
		{clockSource + "-early\n", false},
		{"\n", true},
		{"", true},
	} {
		if got := kernelTrusts(c.list); got != c.want {
			t.Errorf("%q: %v, want %v", c.list, got, c.want)
		}
	}
}
