// Package lab compares the I/O policies of qpoll on paths that differ: by
// delay, rate, loss and service time, and over time.
//
// [Run] simulates a [Scenario] in virtual time: cores that send I/Os through the
// selection code of package policy, the very code that real I/O goes through,
// to models of paths. The same scenario and seed give the same result, to the
// last digit, on every machine.
//
// [Scenarios] has those that the policies were proposed upstream with, as ratios
// to reproduce, and those that tell the policies apart. [Main] runs them and
// writes tables, CSV, JSON and a page with plots.
package lab
