package nvme

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// Forever disables a timeout that would otherwise end something.
const Forever time.Duration = -1

// Config holds what can be chosen about a controller. The zero value works.
// Where the address string names the same thing, the address wins.
type Config struct {
	// Poller runs the admin queue and the blocking calls. If nil, one
	// unpinned adaptive poller is shared by all controllers of the process.
	// It must be running (or stepped by another goroutine) while methods that
	// take a context are used. Close the controller first: what is under way
	// when its poller goes ends only with the controller.
	Poller *poller.Poller

	// HostNQN names this host to fabrics controllers. Empty: the contents of
	// /etc/nvme/hostnqn, else a random one for the process.
	HostNQN string
	// HostID is the host identifier. Zero: /etc/nvme/hostid if HostNQN came
	// from its file, else the UUID in HostNQN, else a hash of it.
	HostID [16]byte

	// KeepAlive is the keep-alive timeout KATO; a command is sent every half
	// of it. 0: 5 s. Negative: no keep-alive. The controller may round it up
	// (KAS, units of 100 ms); beyond twice the value it is not followed.
	KeepAlive time.Duration
	// ReconnectDelay is the pause between attempts to reconnect. 0 or
	// negative: 10 s.
	// The first attempt follows a loss at once unless the connection had
	// lived for less than this, or the controller reports a Command Quiesce
	// Time (CQT): that is waited for, and before it the keep-alive timeout if
	// the controller was silent, so that no command is executed twice with
	// another between.
	ReconnectDelay time.Duration
	// CtrlLossTimeout is how long reconnects go on before the controller is
	// given up (Linux ctrl_loss_tmo). 0: 600 s. Forever: never.
	CtrlLossTimeout time.Duration
	// FastIOFailTimeout is how long after a loss commands wait for the
	// reconnect before they fail (Linux fast_io_fail_tmo). 0 or Forever: they
	// wait until CtrlLossTimeout.
	FastIOFailTimeout time.Duration
	// QuiesceTime is the command quiesce time of controllers that do not report
	// one (CQT of Identify Controller is 0): how long after the loss of an
	// association they may go on executing its commands. 0: such controllers are
	// taken to have stopped by the time the connections are closed.
	QuiesceTime time.Duration
	// ConnectTimeout bounds one attempt to connect and initialise, opening
	// included, beside the time that the controller asks for to get ready
	// (CAP.TO). 0: 15 s. Forever: no bound.
	ConnectTimeout time.Duration
	// AdminTimeout is when an admin command is overdue and the controller
	// gets reset. 0: 60 s. Forever: never.
	AdminTimeout time.Duration
	// IOTimeout is when an I/O command is overdue: it is aborted first; after
	// as long again, the controller is reset. 0: 30 s. Forever: never.
	IOTimeout time.Duration
	// Retries is how often one command may be sent again after reconnects. 0:
	// 5, as Linux' nvme_core.max_retries. Negative: never; commands in flight
	// at a loss then complete with StatusCommandAbortedByHost.
	Retries int

	// IOQueues is the number of I/O queues asked from the controller, which may
	// grant fewer. 0: the number of cores and one for the blocking calls, but 16
	// at least. Asking costs nothing: a queue takes memory once it is opened.
	IOQueues int
	// QueueSize is the size in entries of an I/O queue where QueueConfig does
	// not say; one less can be in flight. 0: 256. The controller's limit
	// (CAP.MQES) applies.
	QueueSize int
	// AdminQueueSize is the size of the admin queue. 0: 32. At least 16.
	AdminQueueSize int

	// Logger takes notable events of connection handling. Nil: none.
	Logger *slog.Logger
	// Events are called on notable events. Nil: none.
	Events *Events
	// Transport is what the transport's own package documents (tcp.Config,
	// for example), or nil for its defaults.
	Transport any
}

// leastIOQueues lets a program on few cores open several queues on each.
const leastIOQueues = 16

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	def := func(v *time.Duration, to time.Duration) {
		if *v == 0 {
			*v = to
		}
	}
	def(&d.KeepAlive, 5*time.Second)
	d.ReconnectDelay = max(d.ReconnectDelay, 0)
	def(&d.ReconnectDelay, 10*time.Second)
	def(&d.CtrlLossTimeout, 600*time.Second)
	def(&d.FastIOFailTimeout, Forever)
	def(&d.ConnectTimeout, 15*time.Second)
	def(&d.AdminTimeout, 60*time.Second)
	def(&d.IOTimeout, 30*time.Second)
	switch {
	case d.Retries == 0:
		d.Retries = 5
	case d.Retries < 0:
		d.Retries = 0
	}
	d.Retries = min(d.Retries, 255)
	if d.IOQueues <= 0 {
		d.IOQueues = max(runtime.NumCPU()+1, leastIOQueues)
	}
	d.IOQueues = min(d.IOQueues, 65534)
	if d.QueueSize <= 0 {
		d.QueueSize = 256
	}
	if d.AdminQueueSize <= 0 {
		d.AdminQueueSize = 32
	}
	d.AdminQueueSize = min(max(d.AdminQueueSize, 16), 4096)
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Events == nil {
		d.Events = &Events{}
	}
	return d
}
