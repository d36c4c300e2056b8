// Package mpath joins the controllers of an NVM subsystem, and the namespaces
// that they share into heads. I/O to a head takes the path that a policy chooses
// (see package policy), and another one when that fails.
//
//	h, err := mpath.Open(ctx, "traddr:192.0.2.5 trsvcid:4420 subnqn:nqn...", "traddr:192.0.2.6 ...")
//	q, err := h.Channel(ctx, p, nvme.QueueConfig{}) // polled, on the core of p
//	n, err := h.ReadAt(buf, 0)                      // blocking
//
// A [Channel] is an [nvme.Queue], as the queue of a single namespace is. It has
// a queue pair per path on its poller, and touches nothing that another core
// writes.
//
// # Paths
//
// Controllers may be reached by any transport, and come and go at run time.
// Namespaces join a head by what identifies them (NGUID, EUI64, UUID), never by
// NSID. Each path has the ANA state of its namespace's group there.
//
// # Failover
//
// An I/O that ends with a path related status, or whose queue is lost, is sent
// again on another path, or waits while one may come back: see
// [Config.FastIOFailTimeout] and [Config.DelayedRemoval]. All other errors, and
// those that forbid a retry, go to the caller.
//
// What may still be executed on a lost path is not sent down another one before
// the lost one is known quiet (see [nvme.Controller.Quiet]), unless it only
// reads: an earlier copy of a write, executed late, could undo a newer write.
// Controllers that tell their command quiesce time (CQT) make that certain; for
// others, see QuiesceTime of [nvme.Config].
package mpath
