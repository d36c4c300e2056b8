package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Names of the policies of this package.
const (
	NUMA          = "numa"
	RoundRobin    = "round-robin"
	QueueDepth    = "queue-depth"
	ServiceTime   = "service-time"
	Latency       = "latency"
	ExpectedDelay = "expected-delay"
)

// Default is the policy of a [Set] that was not told to use another.
const Default = ExpectedDelay

// Policy chooses among the paths of one [Set]. Each Set has a value of its own,
// and calls it on its core only, so a policy needs no locks. It must neither
// block nor allocate in Select, Dispatched and Completed, and reads of the Set
// what it needs: [Set.Candidates], [Set.InFlight], [Set.Others] and so on.
//
// Embedding [Base] leaves only Select to be written.
type Policy interface {
	// Select returns the slot of one of the candidates of s, of which there are
	// at least two. Anything else counts as the first candidate.
	Select(s *Set, now int64, bytes uint32, dir Dir) int

	// Dispatched is told of each I/O, when it has been counted. It may write
	// t.Word.
	Dispatched(s *Set, t *Ticket)

	// Completed is told of each I/O that was dispatched under this policy value,
	// when it is no longer counted. ok is false if it was ended by an error, an
	// abort or a failover, so that its latency says nothing.
	Completed(s *Set, t *Ticket, now int64, ok bool)

	// Changed is called when the policy is put in force, and whenever paths,
	// their states or weights changed or one was reset.
	Changed(s *Set)

	// Tick is called once per publish interval as long as the Set is used, with
	// the other cores' snapshots freshly read if Shared says so.
	Tick(s *Set, now int64)

	// Shared tells whether the policy looks at what other cores have in flight.
	Shared() bool
}

// Base has the methods of a [Policy] that needs none of them but Select.
type Base struct{}

// Dispatched does nothing.
func (Base) Dispatched(*Set, *Ticket) {}

// Completed does nothing.
func (Base) Completed(*Set, *Ticket, int64, bool) {}

// Changed does nothing.
func (Base) Changed(*Set) {}

// Tick does nothing.
func (Base) Tick(*Set, int64) {}

// Shared returns false.
func (Base) Shared() bool { return false }

// registry has the policies by name, those of this package first.
var registry = struct {
	sync.Mutex
	names []string
	make  map[string]func() Policy
}{
	names: []string{NUMA, RoundRobin, QueueDepth, ServiceTime, Latency, ExpectedDelay},
	make: map[string]func() Policy{
		NUMA:          func() Policy { return new(numa) },
		RoundRobin:    func() Policy { return new(roundRobin) },
		QueueDepth:    func() Policy { return new(queueDepth) },
		ServiceTime:   func() Policy { return new(serviceTime) },
		Latency:       func() Policy { return new(latency) },
		ExpectedDelay: func() Policy { return new(expectedDelay) },
	},
}

// maxName is the longest name of a policy.
const maxName = 32

// Register makes a policy known by a name: small letters, digits and '-', at
// most 32, beginning with a letter. create returns a value of its own for each
// Set. Any goroutine; usually from an init function. The error wraps [ErrName].
func Register(name string, create func() Policy) error {
	if err := checkName(name); err != nil {
		return err
	}
	if create == nil {
		return fmt.Errorf("policy: nothing creates policy %q: %w", name, ErrName)
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.make[name] != nil {
		return fmt.Errorf("policy: %q is taken: %w", name, ErrName)
	}
	registry.names = append(registry.names, name)
	registry.make[name] = create
	return nil
}

func checkName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if name == "" || len(name) > maxName || name[0] < 'a' || name[0] > 'z' || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("policy: %q: %w: small letters, digits and '-', at most %d, a letter first", name, ErrName, maxName)
	}
	return nil
}

// Names returns the names that [New] accepts, those of this package first. Any
// goroutine.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Clone(registry.names)
}

// New returns a new value of the named policy, for one Set. Any goroutine. The
// error wraps [ErrUnknown] and lists the names.
func New(name string) (Policy, error) {
	registry.Lock()
	create := registry.make[name]
	registry.Unlock()
	if create == nil {
		return nil, fmt.Errorf("policy: %q: %w: it is one of %s", name, ErrUnknown, strings.Join(Names(), ", "))
	}
	p := create()
	if p == nil {
		return nil, fmt.Errorf("policy: %q: %w: its function returned none", name, ErrUnknown)
	}
	return p, nil
}
