package poller

import (
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/sys"
)

// linePad keeps what one side writes out of the other side's cache lines, and
// out of the line that the adjacent-line prefetcher brings along.
const linePad = 128

// The runtime's allocator puts objects of this size at a multiple of a cache
// line, and begins them with a header of its own.
const (
	cacheLine    = 64
	mallocHeader = 8
)

// Poller runs sources, timers and posted functions on one core. Make one with
// [New], then either [Poller.Start] it or step it with [Poller.Poll].
//
// Methods are for the core only where they say so; what runs on the core never
// needs a lock. The others may be called from any goroutine.
type Poller struct {
	_ [cacheLine - mallocHeader]byte

	// The core's own, every pass.
	now       int64        // time of the current pass
	nextTimer int64        // when the first timer is due, noTimer if there is none
	publishAt int64        // when statistics are published again
	custom    func() int64 // Config.Clock
	sources   []Source
	worked    bool // the last pass found work
	dirty     bool // a source was removed meanwhile
	walking   bool // the sources are being walked
	begun     bool // the clock has a value

	mailbox  mailbox // its first line is the core's, the second the producers'
	counters counters
	_        [linePad]byte

	// Any goroutine's, rarely written.
	owner  atomic.Uintptr // goroutine on whose core this is, 0 if none
	mode   atomic.Uint32  // stepped, running or closing
	asleep atomic.Uint32  // awake, sleeping or waking
	_      [linePad]byte

	published published
	_         [linePad]byte

	// The core's own, less often.
	timers    []*Timer // a heap by due time
	timerSeq  uint64
	waiters   []Waiter // parallel to sources; nil for one that cannot sleep
	sleepless Source   // a source that is not a Waiter, if there is one
	fds       []sys.PollFd
	told      bool // Events.Sleepless was called
	inPoll    bool

	// Fixed.
	name   string
	cfg    Config
	events Events
	wakeFD int // event counter of an adaptive poller, else -1

	mu      sync.Mutex    // of Start and Close
	counted bool          // in crowd
	after   sync.Mutex    // whoever is the core when nothing runs any more
	done    chan struct{} // closed when nothing of the poller runs any more
}

// Values of Poller.mode.
const (
	stepped = iota // or not started yet
	running
	closing
)

// New returns a poller that is not running.
func New(cfg Config) (*Poller, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	p := &Poller{
		name:      cfg.Name,
		cfg:       cfg,
		custom:    cfg.Clock,
		nextTimer: noTimer,
		wakeFD:    -1,
		done:      make(chan struct{}),
	}
	if cfg.Events != nil {
		p.events = *cfg.Events
	}
	p.mailbox.init(cfg.Mailbox)
	if cfg.Idle == Adaptive {
		fd, err := sys.EventFD()
		if err != nil {
			return nil, fmt.Errorf("poller: %s: %w", p.name, err)
		}
		p.wakeFD = fd
	}
	p.sourcesChanged()
	return p, nil
}

// fill checks a configuration and sets what it leaves to defaults.
func (c *Config) fill() error {
	if c.Unpinned {
		c.Core = -1
	} else if c.Core < 0 || c.Core > maxCore {
		return fmt.Errorf("%w: core %d", ErrConfig, c.Core)
	}
	if c.Idle > Adaptive {
		return fmt.Errorf("%w: idle mode %d", ErrConfig, c.Idle)
	}
	if c.Mailbox < 0 || c.Mailbox > maxMailbox {
		return fmt.Errorf("%w: mailbox of %d slots", ErrConfig, c.Mailbox)
	}
	if c.PublishInterval < 0 {
		return fmt.Errorf("%w: publish interval %v", ErrConfig, c.PublishInterval)
	}
	if c.Mailbox == 0 {
		c.Mailbox = DefaultMailbox
	}
	c.Mailbox = 1 << bits.Len(uint(max(c.Mailbox, 2)-1)) // one slot could not tell full from empty
	if c.PublishInterval == 0 {
		c.PublishInterval = DefaultPublishInterval
	}
	if c.Spin == 0 {
		c.Spin = DefaultSpin
	}
	if c.Name == "" {
		c.Name = "unpinned"
		if !c.Unpinned {
			c.Name = "core " + strconv.Itoa(c.Core)
		}
	}
	return nil
}

// Name returns the name from the configuration, or the one made up for it.
func (p *Poller) Name() string { return p.name }

// Core returns the CPU that the poller is pinned to when it runs, -1 if it is
// not to be pinned.
func (p *Poller) Core() int { return p.cfg.Core }
