package vfiouser

import (
	"errors"
	"time"
)

// Config says how to talk to a server. The zero value works.
type Config struct {
	// Timeout bounds each request: a server that takes longer is taken for gone.
	// 0: 30 seconds.
	Timeout time.Duration
}

const defaultTimeout = 30 * time.Second

// Errors come back wrapped, with the socket's path; test with errors.Is.
// pcie.ErrGone is in all that happen because the server is lost, a refusal of the
// server's unwraps to the syscall.Errno that it gave.
var (
	// ErrTimeout: the server did not answer in time.
	ErrTimeout = errors.New("vfiouser: the server does not answer")
	// ErrProtocol: the server broke the protocol.
	ErrProtocol = errors.New("vfiouser: protocol violation by the server")
	// ErrVersion: the server speaks another version of the protocol.
	ErrVersion = errors.New("vfiouser: version of the protocol is not supported")
	// ErrDevice: the server's device is no NVMe controller.
	ErrDevice = errors.New("vfiouser: not an NVMe controller")
)
