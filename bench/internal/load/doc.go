// Package load generates I/O on queues and measures it: on each queue a fixed
// number of jobs, each of which has one I/O outstanding and begins the next
// when that completes.
//
// A [Run] has the cores and queues, a window of time, and the results. An I/O
// counts if it completed successfully within the window; its latency is the
// time from when its job wanted it to its completion callback. The clock is
// read once per completion, for the end of one I/O and the beginning of the
// next.
package load
