package mpath

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Config holds what can be chosen about a subsystem and its heads. The zero
// value works.
type Config struct {
	// Controller is how controllers are opened. Its events are called as
	// documented there. Nil: the defaults.
	Controller *nvme.Config

	// Policy is the name of the I/O policy that heads begin with. Empty:
	// policy.Default.
	Policy string
	// PolicyConfig tunes the policies of all heads.
	PolicyConfig policy.Config

	// FastIOFailTimeout is how long an I/O waits while a head has no usable path,
	// though some may come back, before it fails (Linux fast_io_fail_tmo). 0 or
	// nvme.Forever: as long as a controller tries to reconnect
	// (nvme.Config.CtrlLossTimeout).
	FastIOFailTimeout time.Duration
	// DelayedRemoval is how long I/O waits after a head has lost its last path
	// for good, for one that joins anew (Linux delayed_removal_secs). 0: it fails
	// at once.
	DelayedRemoval time.Duration

	// Channels is how many channels a head may have at a time; 0 is the number of
	// cores and 16 more. At most policy.MaxCores.
	Channels int
	// Trackers is how many I/Os a channel may have under way, those that wait for
	// a path included; 0 is 1024. At most 65536.
	Trackers int
	// Poller runs the blocking calls of heads. It must be running. Nil: one
	// unpinned adaptive poller for the subsystem.
	Poller *poller.Poller
	// NUMANode returns the NUMA node of a controller, -1 if unknown. Nil: what
	// Linux says of a PCI function, and -1 for all else.
	NUMANode func(c *nvme.Controller) int

	// Logger takes notable events. Nil: none.
	Logger *slog.Logger
	// Events are called on notable events. Nil: none.
	Events *Events

	// ghosts lets tests send again what a lost path may still execute.
	ghosts bool
}

const (
	extraChannels   = 16
	defaultTrackers = 1024
	maxTrackers     = 1 << 16
)

// complete fills in defaults and checks what was given.
func (c *Config) complete() (Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	if d.Controller == nil {
		d.Controller = &nvme.Config{}
	}
	if d.Policy == "" {
		d.Policy = policy.Default
	}
	if _, err := policy.New(d.Policy); err != nil {
		return d, fmt.Errorf("mpath: %w", err)
	}
	if d.Channels == 0 {
		d.Channels = min(runtime.NumCPU()+extraChannels, policy.MaxCores)
	}
	if d.Trackers == 0 {
		d.Trackers = defaultTrackers
	}
	if d.Trackers < 1 || d.Trackers > maxTrackers {
		return d, fmt.Errorf("%w: Trackers %d, it is from 1 to %d", ErrAttribute, d.Trackers, maxTrackers)
	}
	if _, err := policy.NewGroup(d.Channels, d.PolicyConfig); err != nil {
		return d, fmt.Errorf("mpath: %w", err)
	}
	if d.NUMANode == nil {
		d.NUMANode = nodeOf
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Events == nil {
		d.Events = &Events{}
	}
	return d, nil
}
