package mpath

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/qpoll/qpoll/nvme"
)

// Open opens the controllers at several addresses (see nvme.ParseAddress), which
// have to be of one subsystem, and returns the head of the namespace that they
// share. One of them has to be there; those that are not are tried again in the
// background. Where there are several namespaces, the option "ns" of an address
// says which by its NSID there. Closing the head closes all of it.
func Open(ctx context.Context, addresses ...string) (*Head, error) {
	return OpenConfig(ctx, nil, addresses...)
}

// OpenConfig is Open with a configuration; cfg may be nil.
func OpenConfig(ctx context.Context, cfg *Config, addresses ...string) (*Head, error) {
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address to open", nvme.ErrAddress)
	}
	var list []nvme.Address
	for _, text := range addresses {
		a, err := nvme.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return openAll(ctx, cfg, list)
}

// OpenDiscovery asks a discovery service, and those that it refers to, for the
// ports of a subsystem, and opens a controller at each, as OpenConfig does. nqn
// may be empty if the host is shown one subsystem alone.
func OpenDiscovery(ctx context.Context, cfg *Config, address, nqn string) (*Head, error) {
	var host *nvme.Config
	if cfg != nil {
		host = cfg.Controller
	}
	found, err := nvme.Discover(ctx, address, host)
	var list []nvme.Address
	seen := map[string]bool{}
	for _, d := range found {
		if d.Entry.SUBTYPE != nvme.SubTypeNVM || nqn != "" && d.Addr.SubNQN != nqn || seen[d.Addr.String()] {
			continue
		}
		seen[d.Addr.String()] = true
		if len(list) > 0 && list[0].SubNQN != d.Addr.SubNQN {
			return nil, fmt.Errorf("%w: %s knows several, of which are %s and %s: say which", ErrSubsystem, address, list[0].SubNQN, d.Addr.SubNQN)
		}
		list = append(list, d.Addr)
	}
	if len(list) == 0 {
		if err == nil {
			err = fmt.Errorf("%w: %s knows none that is called %q", ErrSubsystem, address, nqn)
		}
		return nil, err
	}
	return openAll(ctx, cfg, list)
}

func openAll(ctx context.Context, cfg *Config, list []nvme.Address) (*Head, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	h, err := s.openAll(ctx, list)
	if err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	h.owner = true
	return h, nil
}

// openAll adds all that can be, and finds the head.
func (s *Subsystem) openAll(ctx context.Context, list []nvme.Address) (*Head, error) {
	nsid, err := wanted(list)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() { _, errs[i] = s.AddAddress(ctx, a) })
	}
	wg.Wait()
	if len(s.Controllers()) == 0 {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		if err != nil && hopeless(err) {
			return nil, err
		}
	}
	h, err := s.choose(nsid)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			s.wg.Go(func() { s.keepAdding(list[i], err) })
		}
	}
	return h, nil
}

// wanted returns the NSID that addresses name, 0 if none does.
func wanted(list []nvme.Address) (nsid uint32, err error) {
	for i := range list {
		v, ok := list[i].Options["ns"]
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n == 0 || nsid != 0 && uint32(n) != nsid {
			return 0, fmt.Errorf("%w: ns %q", nvme.ErrAddress, v)
		}
		nsid = uint32(n)
	}
	return nsid, nil
}

// choose returns the head of the namespace nsid, or the only one.
func (s *Subsystem) choose(nsid uint32) (*Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Head
	for _, h := range s.heads {
		for _, p := range h.paths {
			if nsid != 0 && p.ns.ID() != nsid || found == h {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("%w: %s has several (%s and %s): say which by the option ns of an address",
					ErrNamespace, s.nqn, found.ident.String(), h.ident.String())
			}
			found = h
		}
	}
	switch {
	case found != nil:
		return found, nil
	case nsid != 0:
		return nil, fmt.Errorf("%w: %d in %s", ErrNamespace, nsid, s.nqn)
	}
	return nil, fmt.Errorf("%w: %s has none", ErrNamespace, s.nqn)
}
