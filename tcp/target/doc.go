// Package target is an NVMe/TCP target to embed: for tests, for examples, for
// measuring an initiator, and for serving memory or files to any NVMe/TCP host.
//
//	t, err := target.New(target.Config{})
//	err = t.Start(p)               // p is a *poller.Poller
//	addr := t.Address("")          // for nvme.Open
//	defer t.Close()
//
// The zero [Config] is one subsystem with 64 MiB of memory, and a discovery
// service, on a free port of the loopback interface.
//
// A target runs on pollers, on one or on several, and spreads its connections
// over them. All that belongs to a connection is touched on its poller's core
// only. The methods of [Target], [Subsystem], [Namespace] and [Port] are for any
// goroutine, while hosts are connected as well. What they change holds for
// commands that arrive after they have returned; connections that they end, end
// in the next pass of their poller.
//
// What lies behind a namespace is a [backend.Backend]; package backend also has
// wrappers that delay, pace, stall and fail I/O.
//
// Sections, figures and names in comments are those of the NVM Express Base
// Specification, revision 2.1, the NVM Command Set Specification, revision 1.1,
// and the NVMe TCP Transport Specification, revision 1.1.
package target
