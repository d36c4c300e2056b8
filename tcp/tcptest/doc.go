// Package tcptest provides an NVMe/TCP peer for tests, in the manner of
// net/http/httptest: a [Server] that listens on the loopback interface and
// plays a [Script] to every connection that it accepts.
//
// A script is a function with a [Conn]. It expects PDUs, sends them, whole, in
// pieces, late or damaged, and closes or resets the connection when it likes:
//
//	srv := tcptest.New(t, func(c *tcptest.Conn) {
//		c.Handshake(pdu.ICRespFields{MAXH2CDATA: 4096})
//		r := c.ExpectCommand(nvme.OpFabrics)
//		c.SendSplit(c.CapsuleResp(&nvme.Completion{CID: r.Cmd.CID}), 7, 9)
//		c.Reset()
//	}, nil)
//
// Most tests want a controller that behaves well but for one thing.
// [Controller] is one: it connects, has properties, identifies itself, knows
// features, asynchronous events and namespaces in memory, and offers its
// handling of connections as the script [Controller.Serve]. Every answer of it
// can be replaced, either in the fields of the Controller or, command by
// command, in its Override.
//
// A Server made with [New] reports what went wrong in a script as an error of
// the test, and is closed when the test ends; nothing of it is left then. It
// uses ordinary goroutines and net.Conn: it is no measure of speed.
package tcptest
