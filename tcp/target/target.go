package target

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// acceptPause is how long a listener rests after accept has failed.
const acceptPause = 100 * time.Millisecond

// Errors of this package; they come back wrapped.
var (
	// ErrConfig means that a configuration makes no sense.
	ErrConfig = errors.New("nvme/tcp target: bad configuration")

	// ErrExists means that there is one already of what was to be added.
	ErrExists = errors.New("nvme/tcp target: already there")

	// ErrNotFound means that there is no such thing.
	ErrNotFound = errors.New("nvme/tcp target: not found")

	// ErrState means that the target has not been started, or has been.
	ErrState = errors.New("nvme/tcp target: in the wrong state")
)

// targetState is where a target is in its life.
type targetState uint8

const (
	targetNew targetState = iota
	targetRunning
	targetStopped
	targetClosed
)

// Target is an NVMe/TCP target.
type Target struct {
	cfg     Config
	events  Events
	workers []*worker // fixed by Start
	closers sync.WaitGroup
	closed  chan struct{} // closed when nothing of the target is left
	made    time.Time

	// mu guards all that is not a worker's. It is held for short, and never
	// while anything is waited for.
	mu          sync.Mutex
	state       targetState
	subsystems  []*Subsystem // in the order in which they were added
	discovery   *Subsystem   // nil without
	ports       []*Port
	referrals   []Referral
	generation  uint64 // of the discovery log
	backends    map[backend.Backend]int
	connections int
	handshakes  int
	nextWorker  int // of ports
}

// New returns a target that is not started. The backends in cfg belong to it
// from then on; if New fails, they do not.
func New(cfg Config) (*Target, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	t := &Target{cfg: cfg, made: time.Now(), closed: make(chan struct{}), backends: map[backend.Backend]int{}, referrals: cfg.Referrals}
	if cfg.Events != nil {
		t.events = *cfg.Events
	}
	if !cfg.NoDiscovery {
		t.discovery = newDiscovery(t)
	}
	for _, s := range cfg.Subsystems {
		if _, err := t.AddSubsystem(s); err != nil {
			return nil, err
		}
	}
	for _, p := range cfg.Ports {
		if _, err := t.AddPort(p); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Start lets the target listen and serve on the given pollers, which may run
// already, be started later, or be stepped. It fails without effect if one of
// the addresses cannot be listened at, or if the target was started before.
func (t *Target) Start(pollers ...*poller.Poller) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != targetNew {
		return fmt.Errorf("%w: Start of a target that was started before", ErrState)
	}
	if len(pollers) == 0 {
		return fmt.Errorf("%w: no poller to run on", ErrConfig)
	}
	if err := t.openAll(); err != nil {
		return err
	}
	if err := t.makeWorkers(pollers); err != nil {
		t.closeAll()
		return fmt.Errorf("nvme/tcp target: %w", err)
	}
	t.state = targetRunning
	t.serveAll()
	for _, w := range t.workers {
		w.post(nothing) // makes it a source of its poller
	}
	return nil
}

func nothing() {}

func (t *Target) makeWorkers(pollers []*poller.Poller) error {
	share := max(t.cfg.Limits.BufferMemory/int64(len(pollers)), 2*maxMaxTransfer)
	workers := make([]*worker, 0, len(pollers))
	for _, p := range pollers {
		w, err := newWorker(t, p, share)
		if err != nil {
			for _, w := range workers {
				w.discard()
			}
			return err
		}
		workers = append(workers, w)
	}
	t.workers = workers
	return nil
}

// openAll opens the sockets of all ports, or of none.
func (t *Target) openAll() error {
	for _, p := range t.ports {
		if err := p.open(); err != nil {
			t.closeAll()
			return err
		}
	}
	return nil
}

// closeAll closes sockets that no worker has yet.
func (t *Target) closeAll() {
	for _, p := range t.ports {
		p.discard()
	}
}

// serveAll gives the sockets to workers.
func (t *Target) serveAll() {
	for _, p := range t.ports {
		p.serve()
	}
}

// Stop closes all ports and ends all connections, as a target that crashes
// does. What is configured and stored stays. It does not wait.
func (t *Target) Stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != targetRunning {
		return fmt.Errorf("%w: Stop of a target that is not running", ErrState)
	}
	t.state = targetStopped
	t.stopPorts()
	return nil
}

func (t *Target) stopPorts() {
	for _, p := range t.ports {
		p.shut()
		p.kill(ErrClosed)
	}
}

// Restart listens again, at the addresses as before, after Stop.
func (t *Target) Restart() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != targetStopped {
		return fmt.Errorf("%w: Restart of a target that was not stopped", ErrState)
	}
	if err := t.openAll(); err != nil {
		return err
	}
	t.state = targetRunning
	t.serveAll()
	return nil
}

// Close ends the target and everything that it has: it returns when nothing of
// it is left, and its backends are closed. It has to be called from another
// goroutine than those that run or step the pollers, unless the pollers were
// closed before. Closing again waits for the same.
func (t *Target) Close() error {
	t.mu.Lock()
	was := t.state
	t.state = targetClosed
	if was == targetClosed {
		t.mu.Unlock()
		<-t.closed
		return nil
	}
	if was == targetRunning {
		t.stopPorts()
	}
	for _, s := range t.subsystems {
		s.removeAll()
	}
	t.mu.Unlock()
	for _, w := range t.workers {
		w.post(w.close)
	}
	for _, w := range t.workers {
		w.await()
	}
	t.closers.Wait()
	close(t.closed)
	return nil
}

// AddSubsystem adds a subsystem.
func (t *Target) AddSubsystem(cfg SubsystemConfig) (*Subsystem, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	s := newSubsystem(t, cfg)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state == targetClosed:
		return nil, ErrClosed
	case t.subsystem(cfg.NQN) != nil:
		return nil, fmt.Errorf("%w: subsystem %q", ErrExists, cfg.NQN)
	}
	for _, n := range cfg.Namespaces {
		if _, err := s.add(n); err != nil {
			s.disown()
			return nil, err
		}
	}
	t.subsystems = append(t.subsystems, s)
	t.discoveryChanged()
	return s, nil
}

// RemoveSubsystem removes a subsystem, its controllers and its namespaces.
func (t *Target) RemoveSubsystem(nqn string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range t.subsystems {
		if s.cfg.NQN != nqn {
			continue
		}
		t.subsystems = append(t.subsystems[:i:i], t.subsystems[i+1:]...)
		s.removed = true
		s.killControllers(ErrClosed)
		s.removeAll()
		t.discoveryChanged()
		return nil
	}
	return fmt.Errorf("%w: subsystem %q", ErrNotFound, nqn)
}

// Subsystem returns the subsystem of a name, or nil. An empty name is the
// first subsystem.
func (t *Target) Subsystem(nqn string) *Subsystem {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.subsystem(nqn)
}

func (t *Target) subsystem(nqn string) *Subsystem {
	for _, s := range t.subsystems {
		if s.cfg.NQN == nqn || nqn == "" {
			return s
		}
	}
	return nil
}

// Ports returns the ports, in the order in which they were added.
func (t *Target) Ports() []*Port {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*Port(nil), t.ports...)
}

// Addr returns the address of the first port, the zero value without ports. A
// port that was to be free is known after Start.
func (t *Target) Addr() netip.AddrPort {
	ports := t.Ports()
	if len(ports) == 0 {
		return netip.AddrPort{}
	}
	return ports[0].Addr()
}

// Address returns the address of a subsystem at the first port in the form that
// nvme.Open takes. An empty name is the first subsystem. If the port listens at
// all addresses, it is that of the loopback interface.
func (t *Target) Address(nqn string) string {
	if s := t.Subsystem(nqn); s != nil {
		nqn = s.cfg.NQN
	}
	return address(t.Addr(), nqn)
}

// DiscoveryAddress is Address of the discovery service.
func (t *Target) DiscoveryAddress() string { return address(t.Addr(), nvme.DiscoveryNQN) }

func address(a netip.AddrPort, nqn string) string {
	if ip := a.Addr(); ip.IsUnspecified() {
		local := netip.IPv6Loopback()
		if ip.Is4() {
			local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		a = netip.AddrPortFrom(local, a.Port())
	}
	return fmt.Sprintf("trtype:tcp traddr:%s trsvcid:%d subnqn:%s", a.Addr(), a.Port(), nqn)
}
