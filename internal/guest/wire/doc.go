// Package wire is the protocol between the guest harness on the host and the
// agent that runs as init in the guest.
//
// Each request has a stream of its own inside a multiplexed session on a
// virtio-serial port. The host opens the stream and sends a KindRequest frame.
// What follows depends on the operation:
//
//	OpHello   guest sends KindResult
//	OpExec    host sends KindData, KindEOF (standard input) and KindSignal;
//	          guest sends KindData (standard output), KindStderr, then KindResult
//	OpSteps   guest sends KindResult
//	OpUpload  host sends KindData and KindEOF; guest sends KindResult
//	OpFetch   guest sends KindData, then KindResult
//
// A stream that the host closes before the result cancels the operation; for
// OpExec the guest kills the whole process group.
package wire
