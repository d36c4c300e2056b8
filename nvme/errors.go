package nvme

import (
	"errors"
	"fmt"
)

// Sentinel errors of the library. They come back wrapped; test with errors.Is.
var (
	// ErrQueueFull: every tracker (or every slot for split transfers) of the
	// queue is in use. Nothing was sent; try again after a completion.
	ErrQueueFull = errors.New("nvme: queue full")
	// ErrClosed: the queue, namespace or controller was closed.
	ErrClosed = errors.New("nvme: closed")
	// ErrDead: the controller was given up, for example because its loss
	// timeout passed; it will not come back.
	ErrDead = errors.New("nvme: controller is dead")
	// ErrNotLive: the controller is not connected now, and fast I/O fail is in
	// force or the operation does not wait for a reconnect.
	ErrNotLive = errors.New("nvme: controller is not live")
	// ErrOutOfRange: the LBA range reaches beyond the end of the namespace.
	ErrOutOfRange = errors.New("nvme: LBA range beyond the end of the namespace")
	// ErrLength: a buffer's length does not fit the number of blocks, or the
	// number of blocks is zero or too large.
	ErrLength = errors.New("nvme: buffer length does not match the transfer")
	// ErrNoNamespace: the namespace is not active on this controller, or went
	// away, or is another one now under the same NSID.
	ErrNoNamespace = errors.New("nvme: no such namespace")
	// ErrUnsupported: the controller does not offer what was asked for.
	ErrUnsupported = errors.New("nvme: not supported by the controller")
	// ErrTimeout: something took longer than it may.
	ErrTimeout = errors.New("nvme: timeout")
	// ErrProtocol: the controller violated the specification.
	ErrProtocol = errors.New("nvme: protocol violation by the controller")
	// ErrGone: the device that was the controller is not there any more. It is
	// not waited for.
	ErrGone = errors.New("nvme: device is gone")
	// ErrFatal: the controller reported a fatal status (CSTS.CFS).
	ErrFatal = errors.New("nvme: controller fatal status")
)

// OpError says what was attempted, where, and why it failed.
type OpError struct {
	Op         string // "connect", "identify controller", "enable", ...
	Controller string // transport address and subsystem, may be empty
	Queue      int    // queue identifier, -1 where no queue takes part
	Err        error
}

// Error implements error.
func (e *OpError) Error() string {
	s := "nvme: " + e.Op
	if e.Controller != "" {
		s += " (" + e.Controller
		if e.Queue >= 0 {
			s += fmt.Sprintf(", queue %d", e.Queue)
		}
		s += ")"
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was a timeout, in the manner of net.Error.
func (e *OpError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.Err, ErrTimeout) || errors.As(e.Err, &t) && t.Timeout()
}

// AlignmentError explains why a byte range cannot be transferred: offsets and
// lengths must be multiples of the block size, because a read-modify-write
// would not be atomic with other writers.
type AlignmentError struct {
	Offset    int64
	Length    int
	BlockSize int
}

// Error implements error.
func (e *AlignmentError) Error() string {
	what, v := "offset", e.Offset
	if e.Offset%int64(e.BlockSize) == 0 {
		what, v = "length", int64(e.Length)
	}
	return fmt.Sprintf("nvme: %s %d is not a multiple of the block size %d (qpoll does no read-modify-write)", what, v, e.BlockSize)
}
