package mpath

import (
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
)

// Errors of this package; they come back wrapped.
var (
	// ErrNoPath: there is no path that takes I/O, and none is waited for.
	ErrNoPath = errors.New("mpath: no path to the namespace")
	// ErrSubsystem: a controller cannot join a subsystem, since it belongs to
	// another, or that has one of its identifier, or may have only one.
	ErrSubsystem = errors.New("mpath: controller does not belong to the subsystem")
	// ErrIdentity: a namespace cannot join a head: another one, which it is not
	// shared with, has the same identity, or part of it, or another format.
	ErrIdentity = errors.New("mpath: conflicting identity of namespaces")
	// ErrNamespace: no head, or more than one, is what was asked for.
	ErrNamespace = errors.New("mpath: no such namespace")
	// ErrAttribute: there is no such attribute, or it cannot be set to that.
	ErrAttribute = errors.New("mpath: bad attribute")
	// ErrPaths: a head has as many paths as policies can choose from, or as many
	// channels as it was made for.
	ErrPaths = errors.New("mpath: too many")
	// ErrANATT: a path was in the ANA change state for longer than the controller
	// says that it takes (ANATT).
	ErrANATT = errors.New("mpath: ANA state changes for longer than ANATT")
	// ErrClosed: the head, channel or subsystem was closed. It is
	// [nvme.ErrClosed].
	ErrClosed = nvme.ErrClosed
)

// errNoPath is what submissions get; one value, since a core may meet it often.
var errNoPath = fmt.Errorf("%w: %w", ErrNoPath, nvme.StatusHostPathError)

// statusOf returns the status of an I/O that waited for a path and is refused
// there: the namespace may have changed since it was checked.
func statusOf(err error) nvme.Status {
	var st nvme.Status
	switch {
	case errors.Is(err, nvme.ErrOutOfRange):
		return nvme.StatusLBAOutOfRange
	case errors.Is(err, nvme.ErrNoNamespace):
		return nvme.StatusInvalidNamespace
	case errors.Is(err, nvme.ErrUnsupported):
		return nvme.StatusInvalidOpcode
	case errors.As(err, &st):
		return st
	}
	return nvme.StatusInvalidField
}
