package tsc

import (
	"os"
	"strings"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
)

var system = clock{
	ticks:  Ticks,
	mono:   monotonic,
	stated: counterFrequency(),
	trust:  trusted,
}

func init() {
	alignMonotonic()
	system.begin()
}

// Invariant reports whether [Now] reads the processor's counter. If not, it
// reads CLOCK_MONOTONIC.
func Invariant() bool {
	system.ensure()
	return !system.refused.Load()
}

// Frequency returns the rate of [Ticks] in Hz: what the processor states if a
// measurement bears that out, else what was measured. It is 0 where
// [Invariant] is false.
func Frequency() uint64 {
	system.ensure()
	return system.freq.Load()
}

// Calibrate measures the rate once more, over all the time since the process
// started: 20 ppm at 2 ms becomes 0.04 ppm at a second. [Now] goes on from
// where it is, without a step. It takes some microseconds; call it before
// something long starts, as a poller or a measurement.
func Calibrate() {
	system.ensure()
	system.mu.Lock()
	defer system.mu.Unlock()
	system.calibrate()
}

// clockSources is where Linux lists the clock sources that passed its checks
// (Documentation/ABI/testing/sysfs-devices-system-cpu, clocksource). A TSC
// found unstable, or not in step between cores, is not among them.
const clockSources = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

// trusted combines the processor's promise with the kernel's experience.
func trusted() bool {
	if !counterInvariant() {
		return false
	}
	list, err := os.ReadFile(clockSources)
	return err != nil || kernelTrusts(string(list))
}

// kernelTrusts looks for the counter's name in a list of clock sources. An
// empty list says nothing.
func kernelTrusts(list string) bool {
	names := strings.Fields(list)
	for _, name := range names {
		if name == clockSource {
			return true
		}
	}
	return len(names) == 0
}

// The runtime's clock reads CLOCK_MONOTONIC through the vDSO, but counts from
// a start of its own; monotonicOffset is that start.
var (
	monotonicBase   = time.Now()
	monotonicOffset int64
)

func monotonic() int64 { return monotonicOffset + int64(time.Since(monotonicBase)) }

// alignMonotonic finds monotonicOffset from CLOCK_MONOTONIC read between two
// readings of the runtime's clock, keeping the tightest of a few tries.
func alignMonotonic() {
	best := time.Duration(1<<63 - 1)
	for range 8 {
		before := time.Since(monotonicBase)
		now := sys.Monotonic()
		width := time.Since(monotonicBase) - before
		if width < best {
			best, monotonicOffset = width, now-int64(before+width/2)
		}
	}
}
