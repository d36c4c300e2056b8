package target

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
)

// Subsystem is an NVM subsystem of a target, or its discovery service.
type Subsystem struct {
	t         *Target
	cfg       SubsystemConfig
	discovery bool

	// gen changes with everything that a view shows.
	gen atomic.Uint64

	// Under the target's lock.
	namespaces  []*Namespace // by rising NSID
	controllers map[uint16]*controller
	nextID      uint16
	hosts       map[string]bool // nil: any
	anaChanges  uint64
	totals      []*totals // one for each worker that has had connections
	removed     bool
}

func newSubsystem(t *Target, cfg SubsystemConfig) *Subsystem {
	s := &Subsystem{t: t, cfg: cfg, controllers: map[uint16]*controller{}, nextID: cfg.FirstController}
	s.gen.Store(1)
	s.setHosts(cfg.Hosts)
	return s
}

// serialOf makes a serial number from a name.
func serialOf(nqn string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(nqn))
	return fmt.Sprintf("QP%016X", h.Sum64())
}

// NQN returns the name of the subsystem.
func (s *Subsystem) NQN() string { return s.cfg.NQN }

// SetHosts changes who may connect: hosts by their NQNs, or any if hosts is
// nil. Those that are connected and may not be any more stay until they go, as
// with Linux's target; see [Subsystem.KillHost].
func (s *Subsystem) SetHosts(hosts []string) error {
	for _, h := range hosts {
		if err := checkNQN(h); err != nil {
			return err
		}
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.setHosts(hosts)
	s.t.discoveryChanged()
	return nil
}

func (s *Subsystem) setHosts(hosts []string) {
	s.hosts = nil
	if hosts == nil {
		return
	}
	s.hosts = map[string]bool{}
	for _, h := range hosts {
		s.hosts[h] = true
	}
}

func (s *Subsystem) allows(host string) bool { return s.hosts == nil || s.hosts[host] }

// changed has everybody look at the subsystem anew.
func (s *Subsystem) changed() { s.gen.Add(1) }

// AddNamespace adds a namespace. Hosts are told.
func (s *Subsystem) AddNamespace(cfg NamespaceConfig) (*Namespace, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.removed || s.t.state == targetClosed {
		return nil, ErrClosed
	}
	n, err := s.add(cfg)
	if err != nil {
		return nil, err
	}
	s.namespaceChanged(n.nsid)
	return n, nil
}

// add adds a namespace without telling anybody.
func (s *Subsystem) add(cfg NamespaceConfig) (*Namespace, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	switch {
	case len(s.namespaces) >= s.cfg.MaxNamespaces:
		return nil, fmt.Errorf("%w: there are %d namespaces", ErrConfig, len(s.namespaces))
	case cfg.ANAGroup > s.cfg.ANAGroups:
		return nil, bad("ANA group %d of %d", cfg.ANAGroup, s.cfg.ANAGroups)
	}
	if cfg.NSID == 0 {
		cfg.NSID = s.freeNSID()
	}
	at, found := s.search(cfg.NSID)
	switch {
	case found:
		return nil, fmt.Errorf("%w: namespace %d", ErrExists, cfg.NSID)
	case cfg.NSID > s.cfg.MaxNSID:
		return nil, bad("NSID %d, at most %d", cfg.NSID, s.cfg.MaxNSID)
	}
	n := &Namespace{sub: s, cfg: cfg, nsid: cfg.NSID}
	n.identify()
	n.measure()
	if n.blocks == 0 {
		return nil, bad("namespace %d of no blocks", cfg.NSID)
	}
	s.namespaces = slices.Insert(s.namespaces, at, n)
	s.t.backends[cfg.Backend]++
	s.changed()
	return n, nil
}

func (s *Subsystem) search(nsid uint32) (at int, found bool) {
	return slices.BinarySearchFunc(s.namespaces, nsid, func(n *Namespace, id uint32) int { return cmp.Compare(n.nsid, id) })
}

func (s *Subsystem) find(nsid uint32) *Namespace {
	if at, ok := s.search(nsid); ok {
		return s.namespaces[at]
	}
	return nil
}

func (s *Subsystem) freeNSID() uint32 {
	id := uint32(1)
	for _, n := range s.namespaces {
		if n.nsid != id {
			break
		}
		id++
	}
	return id
}

// Namespace returns the namespace of an NSID, or nil.
func (s *Subsystem) Namespace(nsid uint32) *Namespace {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return s.find(nsid)
}

// Namespaces returns the namespaces by rising NSID.
func (s *Subsystem) Namespaces() []*Namespace {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return slices.Clone(s.namespaces)
}

// removeAll removes all namespaces without telling anybody.
func (s *Subsystem) removeAll() {
	for len(s.namespaces) > 0 {
		s.remove(len(s.namespaces) - 1)
	}
}

// remove takes a namespace out. Its backend is closed when nothing uses it any
// more.
func (s *Subsystem) remove(at int) {
	n := s.namespaces[at]
	s.namespaces = slices.Delete(s.namespaces, at, at+1)
	n.removed = true
	s.changed()
	for _, w := range s.t.workers {
		w.post(w.retire)
	}
	s.t.closeUnused(n)
}

// disown forgets the namespaces of a subsystem that nobody has seen yet, and
// leaves their backends to the caller.
func (s *Subsystem) disown() {
	for _, n := range s.namespaces {
		n.removed, n.disowned = true, true
		if s.t.backends[n.cfg.Backend]--; s.t.backends[n.cfg.Backend] == 0 {
			delete(s.t.backends, n.cfg.Backend)
		}
	}
	s.namespaces = nil
}

// closeUnused closes the backend of a namespace that is gone, if nothing uses
// it any more. A backend may take its time for it.
func (t *Target) closeUnused(n *Namespace) {
	if !n.removed || n.channels > 0 || n.disowned {
		return
	}
	n.disowned = true
	b := n.cfg.Backend
	if t.backends[b]--; t.backends[b] > 0 {
		return
	}
	delete(t.backends, b)
	t.closers.Go(func() {
		if err := b.Close(); err != nil {
			t.log("closing a backend", "namespace", n.nsid, "error", err)
		}
	})
}

// Notify reports an asynchronous event to all controllers of the subsystem,
// whatever it means, and returns how many they are. It stays pending in a
// controller until its host has an Asynchronous Event Request outstanding; at
// most 16 do.
func (s *Subsystem) Notify(e nvme.AsyncEvent) int {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	for _, c := range s.controllers {
		c.notify(e)
	}
	return len(s.controllers)
}
