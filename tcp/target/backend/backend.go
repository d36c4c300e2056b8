package backend

import "github.com/qpoll/qpoll/poller"

// Backend stores the data of a namespace. Its methods may be called from any
// goroutine.
type Backend interface {
	// Info tells how the backend behaves. All but Size is the same at any time.
	Info() Info

	// Open returns a channel for what the given poller submits. It is called on
	// that poller's core, and must not call the target that calls it.
	Open(p *poller.Poller) (Channel, error)

	// Close releases what the backend holds, after all of its channels were
	// closed and nothing refers to the data of their reads any more.
	Close() error
}

// Resizer is a Backend whose size can be changed while it is in use. What lies
// beyond a smaller size is lost; what a larger size adds reads as zeros.
type Resizer interface {
	// Resize changes the size to so many bytes.
	Resize(size int64) error
}

// Info tells how a Backend behaves.
type Info struct {
	// Size is the capacity in bytes.
	Size int64

	// Inline: every operation is done when Submit returns, and the channel need
	// not be polled.
	Inline bool

	// Views: a read sets Op.Data to memory of the backend. Without, the
	// submitter provides memory that the read fills in.
	Views bool

	// Stable: what a view shows never changes.
	Stable bool

	// Discards: the data of writes is not looked at, so Op.Data may be nil.
	Discards bool

	// Zeroes: what was deallocated reads as zeros.
	Zeroes bool

	// VolatileCache: writes without Op.FUA are durable only after a Flush.
	VolatileCache bool
}

// Channel is the way from one poller to a Backend. All methods are for that
// poller's core, or for while it does not run.
type Channel interface {
	// Submit begins an operation. It returns true if op is done, and
	// otherwise calls op.Finish later, from Poll. A channel that does not
	// finish a write or a compare at once calls op.Keep before it returns.
	Submit(op *Op) bool

	// Poll finishes what is due and returns how much that was.
	Poll(now int64) int

	// Arm tells when Poll has to be called next, on the poller's clock (0: not
	// before something else wakes the poller, which the channel may do
	// itself), and whether the poller may sleep at all.
	Arm(now int64) (deadline int64, ok bool)

	// Cancel takes back an operation that has not begun yet, and reports
	// whether it has; op.Finish is not called then.
	Cancel(op *Op) bool

	// Close ends the channel. Nothing is under way by then.
	Close()
}
