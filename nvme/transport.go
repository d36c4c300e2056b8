package nvme

import (
	"context"

	"github.com/qpoll/qpoll/poller"
)

// QueueTransport moves the commands of one queue pair between host and
// controller. A transport implements it; the QueuePair calls it, always on
// the core of the queue pair's poller.
type QueueTransport interface {
	// Submit posts r: r.Cmd and r.Data are final but for the fields that the
	// transport sets. It must not call back into the queue pair; errors show
	// later through QueuePair.Lost. Nothing need be sent before Poll.
	Submit(r *Request)
	// Poll reaps completions, gives each to QueuePair.Complete, then rings or
	// sends what was posted, and returns the work done.
	Poll(now int64) int
	// Arm says what may wake a sleeping poller; see poller.Waiter.
	Arm(now int64) (fd int, events int16, deadline int64, ok bool)
}

// Transport reaches one controller. All methods may block and are called from
// the controller's own goroutine, one at a time, except where noted.
type Transport interface {
	// Name is the transport's short name: "tcp", "pcie". Any goroutine.
	Name() string
	// Address names the controller for messages, for example
	// "tcp 10.0.0.5:4420 nqn.2014-08.org.example:disk". Any goroutine.
	Address() string
	// Connect makes qp usable for PostInternal: queue 0 first, which starts a
	// new association, then I/O queues. It may be called for several I/O
	// queues at once, from any goroutine, and again for a queue that was
	// disconnected, but for one queue not beside another Connect or Disconnect.
	Connect(ctx context.Context, qp *QueuePair) error
	// Disconnect takes qp off the controller. When it returns, the transport
	// touches neither its commands nor their memory, and has called
	// QueuePair.Quiesced. It may be called at any time, also for a queue that
	// is not connected, for several queues at once, from any goroutine, and is
	// bounded in time even if the controller is silent.
	Disconnect(ctx context.Context, qp *QueuePair) error
	// Property reads a controller property (register) of size 4 or 8 bytes.
	// Valid once queue 0 was connected; it may have been lost since. A user
	// may read and write properties while the controller's goroutine does, but
	// not while queue 0 connects.
	Property(ctx context.Context, offset uint32, size int) (uint64, error)
	// SetProperty writes a controller property.
	SetProperty(ctx context.Context, offset uint32, size int, v uint64) error
	// Limits tells what the transport allows. Valid once queue 0 is connected;
	// id is nil before the controller was identified.
	Limits(id *IdentifyController) Limits
	// Close frees what the transport holds. All queues are disconnected, and
	// nothing else is called any more.
	Close() error
}

// Limits is what a transport, as opposed to the controller, allows.
type Limits struct {
	// MaxTransfer is the largest transfer of one command in bytes; 0 means
	// that the transport sets no limit.
	MaxTransfer uint32
	// Stripe is a length in bytes: commands are faster if they do not cross a
	// multiple of it. For controllers known to have one and not to say so by
	// NOIOB, which comes first. 0: none.
	Stripe uint32
	// Fabrics is set where the controller is reached over fabrics: queues are
	// made by Connect, and a keep-alive timer runs.
	Fabrics bool
	// Arbitration is the arbitration mechanism to enable the controller with, a
	// CCAMS... value, where CAP.AMS offers it. It is asked for with a nil id.
	Arbitration uint8
	// ControllerID is the controller identifier that the fabrics Connect
	// returned; 0xffff where unknown.
	ControllerID uint16
}

// poll sources register with a poller through these faces.
var _ poller.Waiter = (*QueuePair)(nil)
