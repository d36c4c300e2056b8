package policy

import (
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
)

// Limits of a [Group].
const (
	MaxPaths  = 32   // paths of a head
	MaxCores  = 1024 // cores that share a head
	MaxWeight = 100  // largest relative throughput of a path
)

// DefaultWeight is the relative throughput of a path that nobody has set.
const DefaultWeight = 1

// Errors of this package; they are wrapped with what was asked for.
var (
	ErrUnknown = errors.New("unknown I/O policy")
	ErrName    = errors.New("bad name of an I/O policy")
	ErrWeight  = fmt.Errorf("relative_throughput is from 0 to %d", MaxWeight)
	ErrSlot    = fmt.Errorf("a path's slot is from 0 to %d", MaxPaths-1)
	ErrState   = errors.New("no such ANA state")
	ErrConfig  = errors.New("bad configuration of I/O policies")
)

// Dir is the kind of an I/O; policies may keep kinds apart.
type Dir uint8

// The kinds of I/O.
const (
	Read Dir = iota
	Write
	Other // Flush, Write Zeroes, Compare and all else
	Dirs  // how many there are
)

// String returns the kind as latency statistics name it.
func (d Dir) String() string {
	return [...]string{"read", "write", "other", "?"}[min(d, Dirs)]
}

// Path is what a [Set] is told of a path.
type Path struct {
	State    nvme.ANAState // of the namespace's ANA group, through this path
	Usable   bool          // controller live, namespace ready, no re-read of the ANA log pending
	Distance int           // from the core's NUMA node to the controller's; smaller is nearer
	Weight   int           // relative_throughput, 0 to MaxWeight; 0 is a standby path
}

// check tells what is wrong with a path.
func (p *Path) check() error {
	if p.Weight < 0 || p.Weight > MaxWeight {
		return fmt.Errorf("policy: relative_throughput %d: %w", p.Weight, ErrWeight)
	}
	if !p.State.Valid() {
		return fmt.Errorf("policy: %v: %w", p.State, ErrState)
	}
	return nil
}

// checkSlot tells whether a number is that of a slot.
func checkSlot(slot int) error {
	if slot < 0 || slot >= MaxPaths {
		return fmt.Errorf("policy: slot %d: %w", slot, ErrSlot)
	}
	return nil
}
