// Package poller runs code on one core without ever waiting: a [Poller] is one
// OS thread, pinned to a core, that calls its sources over and over. Queue
// pairs and connections are sources. Everything a source owns is touched by
// that thread alone, so that the path of an I/O has no lock, no atomic
// read-modify-write, no channel and no allocation.
//
// One turn of the loop is a pass: the clock is read once, then the mailbox,
// the timers that are due and every source have their turn, in this order.
// Other goroutines hand work to a poller with [Poller.Post], which does not
// wait, and [Poller.Call], which does.
//
// A poller that was not started may be stepped instead: its owner calls
// [Poller.Poll] with a clock of its own. Tests and simulations work this way,
// without threads and without real time.
//
// # Cores
//
// A busy poller uses all of its core, and one of the runtime's processors: let
// GOMAXPROCS be at least the number of pollers plus one, or the rest of the
// program, the garbage collector and the network poller with it, has to wait
// for the runtime to preempt a poller, which takes 10 ms. A warning goes to
// [Config.Logger] and [Events.Crowded] when there are fewer.
//
// # Rules for callbacks
//
// Whatever runs on the core (sources, timers, posted functions) must not
// block: nothing else happens on that core until it returns. A panic in it is
// not caught. It must not call [runtime.UnlockOSThread]; if it calls
// [runtime.Goexit], the poller ends and what was posted but not run is lost.
package poller
