// Package tcp is the NVMe/TCP initiator: it reaches controllers over TCP and
// registers itself with package nvme under the transport name "tcp", so that a
// blank import makes nvme.Open take addresses such as
//
//	trtype:tcp adrfam:ipv4 traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk
//
// Each queue pair is one connection on a raw non-blocking socket, owned by the
// poller of its queue pair. A pass of the poller does at most one large
// receive and one vectored send for a connection: what was submitted since the
// last pass goes out together, and the data of large reads is received
// straight into the reader's buffer.
//
// Names in comments are those of the NVMe TCP Transport Specification, revision
// 1.1, whose PDUs are those of revision 1.0, and sections and figures those of the
// NVM Express Base Specification, revision 2.1.
package tcp
