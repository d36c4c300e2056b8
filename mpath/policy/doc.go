// Package policy chooses the path of each I/O to a multipath namespace: which
// of up to [MaxPaths] paths, on one core, without asking another.
//
// A [Group] belongs to a namespace head and has one [Set] per core. A Set holds
// what that core knows of every path: its state, the I/Os of this core that are
// in flight on it, and what the other cores last published of theirs. It is
// touched by its core alone. Selecting, dispatching and completing an I/O cost
// neither an atomic read-modify-write nor an allocation, and no cache line that
// another core writes, but for a look at the snapshots once per
// [Config.PublishInterval].
//
//	slot := set.Select(now, bytes, policy.Read)
//	if slot < 0 {
//		... // no path is usable
//	}
//	var t policy.Ticket // kept with the I/O
//	set.Dispatch(&t, slot, now, bytes, policy.Read)
//	...
//	set.Complete(&t, now, true)
//
// # Which paths
//
// Every policy obeys ANA (Asymmetric Namespace Access, Base Specification
// 8.1): as long as a usable path is optimized, only such are chosen, else the
// usable non-optimized ones. Paths that are inaccessible, in persistent loss or
// in change are never chosen.
//
// # The policies
//
// They carry the names of the Linux host where it has them: numa, round-robin
// and queue-depth are in its kernel, service-time and latency have been proposed
// for it and are not merged. expected-delay is qpoll's own and the default. [Register]
// adds others.
//
// # Accounting
//
// What a [Ticket] took from the counters at dispatch is what its completion,
// failover or abort gives back, once, whatever policy is in force by then. A
// reset of a path's queue forgets what is in flight on it; tickets from before
// give nothing back.
package policy
