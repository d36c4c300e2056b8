// Package tsc reads the processor's constant-rate counter and turns it into
// nanoseconds: the invariant time stamp counter on amd64 (Intel SDM volume 3,
// 19.17; AMD APM volume 2, 13.2.4), the virtual count of the generic timer on
// arm64 (Arm ARM D12.1.2).
//
// A poller reads the clock once per pass, so that reading is on the hot path:
// [Now] is one counter read, two loads and a multiplication. Where the counter
// cannot be trusted, Now reads CLOCK_MONOTONIC instead, on the same timeline.
package tsc
