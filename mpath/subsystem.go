package mpath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Subsystem is an NVM subsystem as a host sees it: the controllers that it has
// there, and the namespaces that it reaches through them. Any goroutine.
type Subsystem struct {
	cfg    Config
	events dispatcher
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what heads, paths and members keep, too
	nqn     string     // of the first controller
	members []*member
	heads   []*Head
	news    chan struct{} // closed, and replaced, when heads or controllers were added
	named   int           // controllers, for their names
	poller  *poller.Poller
	closed  bool
	gone    chan struct{}
	closing sync.Once
}

// New makes a subsystem without any controller; cfg may be nil. The first that
// is added says which subsystem it is. The error is about cfg.
func New(cfg *Config) (*Subsystem, error) {
	full, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Subsystem{cfg: full, news: make(chan struct{}), gone: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// NQN returns the subsystem's name, empty before its first controller.
func (s *Subsystem) NQN() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nqn
}

// Controllers returns the controllers that have joined, in order.
func (s *Subsystem) Controllers() []*nvme.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*nvme.Controller
	for _, m := range s.members {
		if m.ctrl != nil && m.joined {
			all = append(all, m.ctrl)
		}
	}
	return all
}

// Heads returns the heads that there are, in the order in which their namespaces
// were found. Heads stay once they are there.
func (s *Subsystem) Heads() []*Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heads)
}

// Head returns the head of the namespace with any of the given identifiers, for
// which a head must be there.
func (s *Subsystem) Head(ids nvme.NamespaceIdentity) (*Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.heads {
		if h.ident.Same(&ids) {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%w: %v in %s", ErrNamespace, &ids, s.nqn)
}

// Add opens the controller at an address (see nvme.ParseAddress) and has it and
// its namespaces join. It returns when they have.
func (s *Subsystem) Add(ctx context.Context, address string) (*nvme.Controller, error) {
	a, err := nvme.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	return s.AddAddress(ctx, a)
}

// AddAddress is Add for an address in parts.
func (s *Subsystem) AddAddress(ctx context.Context, a nvme.Address) (*nvme.Controller, error) {
	a.Options = maps.Clone(a.Options)
	delete(a.Options, "ns") // which is for Open
	return s.add(ctx, a.String(), func(cfg *nvme.Config) (*nvme.Controller, error) {
		return nvme.OpenAddress(ctx, a, cfg)
	})
}

// AddTransport is Add for a transport that the caller made; see
// nvme.NewController.
func (s *Subsystem) AddTransport(ctx context.Context, t nvme.Transport) (*nvme.Controller, error) {
	return s.add(ctx, t.Address(), func(cfg *nvme.Config) (*nvme.Controller, error) {
		return nvme.NewController(ctx, t, cfg)
	})
}

func (s *Subsystem) add(ctx context.Context, name string, open func(*nvme.Config) (*nvme.Controller, error)) (*nvme.Controller, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.wg.Add(1) // Close waits
	s.mu.Unlock()
	defer s.wg.Done()
	m := newMember(s, name)
	c, err := open(m.config())
	if err != nil {
		m.end()
		return nil, err
	}
	m.ctrl = c
	if err = s.join(m); err == nil {
		err = m.firstScan(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(context.Background(), m, err))
	}
	return c, nil
}

// join makes a controller part of the subsystem, if it belongs there.
func (s *Subsystem) join(m *member) error {
	id := m.ctrl.Identify()
	nqn, err := id.SubsystemNQN()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSubsystem, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	for _, o := range s.members {
		if !o.joined {
			continue
		}
		other := o.ctrl.Identify()
		switch {
		case nqn != s.nqn:
			return fmt.Errorf("%w: %s has subsystem NQN %s, not %s", ErrSubsystem, m.address, nqn, s.nqn)
		case other.CNTLID == id.CNTLID:
			return fmt.Errorf("%w: %s has controller identifier %d, as has %s", ErrSubsystem, m.address, id.CNTLID, o.address)
		case (id.CMIC|other.CMIC)&nvme.CMICMultipleControllers == 0:
			return fmt.Errorf("%w: %s does not support several controllers (CMIC)", ErrSubsystem, nqn)
		}
	}
	s.nqn = nqn
	m.joined = true
	m.index = s.named
	s.named++
	m.node = s.cfg.NUMANode(m.ctrl)
	s.members = append(s.members, m)
	s.wg.Go(m.work)
	return nil
}

// announce wakes those who wait for heads or controllers. With the lock held.
func (s *Subsystem) announce() {
	close(s.news)
	s.news = make(chan struct{})
}

// Remove takes a controller out of the subsystem and closes it. Paths through it
// leave their heads; I/O goes on by others.
func (s *Subsystem) Remove(ctx context.Context, c *nvme.Controller) error {
	s.mu.Lock()
	var m *member
	for _, o := range s.members {
		if o.ctrl == c {
			m = o
		}
	}
	s.mu.Unlock()
	if m == nil {
		return fmt.Errorf("%w: %s is not part of %s", ErrSubsystem, c.Address(), s.NQN())
	}
	return s.drop(ctx, m, errRemoved)
}

var errRemoved = errors.New("mpath: controller was removed")

// drop takes out a member for the given reason, and closes its controller.
func (s *Subsystem) drop(ctx context.Context, m *member, why error) error {
	s.mu.Lock()
	m.leave(why)
	s.members = slices.DeleteFunc(s.members, func(o *member) bool { return o == m })
	s.mu.Unlock()
	m.end()
	return m.ctrl.Close(ctx)
}

// Close closes all channels of all heads, whose I/O completes with
// nvme.StatusCommandAbortedByHost, then the controllers. If ctx ends first, the
// rest goes on without it. Idempotent.
func (s *Subsystem) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		go s.shut()
	})
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Subsystem) shut() {
	defer close(s.gone)
	s.end()
	var wg sync.WaitGroup
	for _, h := range s.Heads() {
		for _, c := range h.open() {
			wg.Go(func() { _ = c.Close(context.Background()) })
		}
		s.mu.Lock()
		h.update() // stops its timers
		s.mu.Unlock()
	}
	wg.Wait()
	s.mu.Lock()
	members := slices.Clone(s.members)
	s.mu.Unlock()
	for _, m := range members {
		wg.Go(func() { _ = s.drop(context.Background(), m, ErrClosed) })
	}
	wg.Wait()
	s.wg.Wait()
	s.mu.Lock()
	p := s.poller
	s.mu.Unlock()
	if p != nil {
		_ = p.Close()
	}
}

// keepAdding opens a controller that could not be opened at first, until it can
// be, or there is no hope.
func (s *Subsystem) keepAdding(a nvme.Address, err error) {
	delay := s.cfg.Controller.ReconnectDelay
	if delay <= 0 {
		delay = 10 * time.Second
	}
	for s.life.Err() == nil && !hopeless(err) {
		s.cfg.Logger.Warn("controller", "address", a.String(), "error", err)
		if f := s.cfg.Events.Controller; f != nil {
			cause := err
			s.events.post(func() { f(s, a.String(), cause) })
		}
		pause(s.life, delay)
		if _, err = s.AddAddress(s.life, a); err == nil {
			return
		}
	}
}

// hopeless tells whether an address will not lead to a controller later.
func hopeless(err error) bool {
	var st nvme.Status
	return errors.Is(err, nvme.ErrAddress) || errors.Is(err, ErrSubsystem) || errors.Is(err, nvme.ErrUnsupported) ||
		errors.Is(err, ErrClosed) || errors.As(err, &st) && st.DNR()
}
