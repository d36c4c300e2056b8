package tsc

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
)

func BenchmarkTicks(b *testing.B) {
	for b.Loop() {
		Ticks()
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		Pause()
	}
}

// The clocks that Now competes with.

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		time.Now()
	}
}

func BenchmarkTimeSince(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		time.Since(start)
	}
}

func BenchmarkClockGettime(b *testing.B) {
	for b.Loop() {
		sys.Monotonic()
	}
}
