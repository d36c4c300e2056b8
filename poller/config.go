package poller

import (
	"errors"
	"log/slog"
	"time"
)

// IdleMode says what a running poller does while there is no work.
type IdleMode uint8

const (
	// Busy polls on, pass after pass.
	Busy IdleMode = iota

	// Adaptive polls on for Config.Spin, then sleeps in the kernel until
	// something is posted, a descriptor of a source is ready, or a timer or a
	// source's deadline is due. Sources must be Waiters; one that is not keeps
	// the poller from sleeping.
	Adaptive
)

func (m IdleMode) String() string {
	switch m {
	case Busy:
		return "busy"
	case Adaptive:
		return "adaptive"
	}
	return "unknown"
}

// Defaults of Config.
const (
	DefaultSpin            = 50 * time.Microsecond
	DefaultMailbox         = 1024
	DefaultPublishInterval = time.Millisecond
)

// maxMailbox bounds Config.Mailbox: 16 MiB of slots.
const maxMailbox = 1 << 20

// Config describes a poller. The zero value is a busy poller on core 0.
type Config struct {
	// Name appears in errors, logs and profiles; "core N" by default, or
	// "unpinned".
	Name string

	// Core is the CPU that the poller's thread is pinned to by Start.
	Core int

	// Unpinned leaves the placing of the thread to the kernel.
	Unpinned bool

	// Idle is what to do while there is no work.
	Idle IdleMode

	// Spin is how long an adaptive poller finds no work before it sleeps.
	// 0 is DefaultSpin; a negative one sleeps at the first idle pass.
	Spin time.Duration

	// Mailbox is the number of posted functions that may wait to run, rounded
	// up to a power of two, at most 1<<20; 0 is DefaultMailbox.
	Mailbox int

	// PublishInterval is how old the published Stats of a running poller may
	// get; 0 is DefaultPublishInterval.
	PublishInterval time.Duration

	// Logger receives warnings; nothing is logged without one.
	Logger *slog.Logger

	// Clock replaces the clock of a running poller, in tests: nanoseconds on
	// a timeline that does not go back. It is called on the core.
	Clock func() int64

	// Events is told what happens to the poller.
	Events *Events
}

// Events are calls for what happens to a poller; any may be nil. They run on
// the core, unless said otherwise, and must not block.
type Events struct {
	// Start is called before the first pass of a running poller.
	Start func(p *Poller)

	// Stop is called after the last pass of a running poller.
	Stop func(p *Poller)

	// Sleepless is called when an adaptive poller first finds that it cannot
	// sleep because of s, which is not a Waiter.
	Sleepless func(p *Poller, s Source)

	// Crowded is called by Start, on its caller's goroutine, when busy
	// pollers begin to leave no processor (GOMAXPROCS) to the rest of the
	// program. It is called again only after that has changed for the better.
	Crowded func(p *Poller, busy, gomaxprocs int)
}

// Errors of this package.
var (
	// ErrMailboxFull means that as many functions as the mailbox holds are
	// waiting already. What was posted is not run.
	ErrMailboxFull = errors.New("poller: mailbox full")

	// ErrClosed means that the poller was closed, or began to be.
	ErrClosed = errors.New("poller: closed")

	// ErrStarted means that the poller is running already.
	ErrStarted = errors.New("poller: already started")

	// ErrOnCore means that the call would wait for its own caller.
	ErrOnCore = errors.New("poller: called on the poller's own core")

	// ErrNilFunc means that there was no function to run.
	ErrNilFunc = errors.New("poller: nil function")

	// ErrCoreNotAllowed means that this process may not run on a core.
	ErrCoreNotAllowed = errors.New("poller: core not allowed")

	// ErrConfig means that a Config or a list of cores makes no sense.
	ErrConfig = errors.New("poller: bad configuration")
)
