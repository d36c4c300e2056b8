// Package hist counts latencies on a hot path. A [Histogram] has the buckets
// of an HDR histogram with three significant digits, so that it turns into one
// without loss, but it records at a quarter of the cost, and without a way to
// fail.
package hist
