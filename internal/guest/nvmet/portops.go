package nvmet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/qpoll/qpoll/internal/guest"
)

func (p *Port) link(nqn string) string { return p.dir() + "/subsystems/" + nqn }

// Link offers the subsystem on the port. The first one makes it listen.
func (p *Port) Link(ctx context.Context, s *Subsystem) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up {
		var b guest.Batch
		b.Symlink(s.dir(), p.link(s.nqn))
		if err := p.t.g.Apply(ctx, &b); err != nil {
			return fmt.Errorf("nvmet: port %d: %w", p.cfg.ID, err)
		}
	}
	p.subs[s.nqn] = true
	return nil
}

// Unlink takes the subsystem from the port, and ends its controllers there.
// After the last one the port does not listen any more.
func (p *Port) Unlink(ctx context.Context, s *Subsystem) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up && p.subs[s.nqn] {
		var b guest.Batch
		b.Remove(p.link(s.nqn))
		if err := p.t.g.Apply(ctx, &b); err != nil {
			return fmt.Errorf("nvmet: port %d: %w", p.cfg.ID, err)
		}
	}
	delete(p.subs, s.nqn)
	return nil
}

// Stop closes the port: connections end, and new ones are refused. It keeps all
// of its settings.
func (p *Port) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.up {
		return nil
	}
	if !p.cfg.Internal {
		if err := p.t.g.Unforward(ctx, p.cfg.NIC, p.cfg.Trsvcid); err != nil {
			return err
		}
	}
	var b guest.Batch
	for _, nqn := range slices.Sorted(maps.Keys(p.subs)) {
		b.Remove(p.link(nqn))
	}
	if err := p.t.g.Apply(ctx, &b); err != nil {
		return fmt.Errorf("nvmet: stop port %d: %w", p.cfg.ID, err)
	}
	p.up = false
	return nil
}

// Start opens the port again after Stop, at the same address.
func (p *Port) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up {
		return nil
	}
	var b guest.Batch
	for _, nqn := range slices.Sorted(maps.Keys(p.subs)) {
		b.Symlink(subsystemDir(nqn), p.link(nqn))
	}
	if err := p.t.g.Apply(ctx, &b); err != nil {
		return fmt.Errorf("nvmet: start port %d: %w", p.cfg.ID, err)
	}
	if !p.cfg.Internal {
		if err := p.t.g.ForwardFrom(ctx, p.cfg.Trsvcid, p.cfg.NIC, loopback, p.cfg.Trsvcid); err != nil {
			return err
		}
	}
	p.up = true
	return nil
}

// Remove stops the port and removes it. A port with the same PortConfig, and the
// ID and the Trsvcid of this one, may be added afterwards: a target that restarts.
func (p *Port) Remove(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	refs, err := p.t.g.Glob(ctx, p.dir()+"/referrals/*")
	if err != nil {
		return err
	}
	var b guest.Batch
	for _, r := range slices.Sorted(maps.Keys(refs)) {
		b.Remove(r)
	}
	for _, g := range slices.Sorted(maps.Keys(p.groups)) {
		if g != 1 {
			b.Remove(anaDir(p.cfg.ID, g))
		}
	}
	b.Remove(p.dir())
	return p.t.g.Apply(ctx, &b)
}

// SetANA changes the state of an ANA group on this port and makes the group
// where it is missing. Hosts get an asynchronous event.
func (p *Port) SetANA(ctx context.Context, group uint32, s ANAState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b guest.Batch
	if !p.groups[group] {
		b.Mkdir(anaDir(p.cfg.ID, group))
	}
	b.Write(anaDir(p.cfg.ID, group)+"/ana_state", string(s))
	if err := p.t.g.Apply(ctx, &b); err != nil {
		return fmt.Errorf("nvmet: port %d: %w", p.cfg.ID, err)
	}
	p.groups[group] = true
	return nil
}

// ANA returns the state of an ANA group on this port.
func (p *Port) ANA(ctx context.Context, group uint32) (ANAState, error) {
	s, err := p.t.g.ReadAttr(ctx, anaDir(p.cfg.ID, group)+"/ana_state")
	return ANAState(s), err
}

// Referral is an entry of the discovery log that leads to another discovery
// service.
type Referral struct {
	PortID  uint16
	Traddr  string // IPv4
	Trsvcid int
}

// AddReferral adds a referral to the discovery log of this port.
func (p *Port) AddReferral(ctx context.Context, name string, r Referral) error {
	dir := p.dir() + "/referrals/" + name
	var b guest.Batch
	b.Mkdir(dir)
	b.Write(dir+"/addr_trtype", "tcp")
	b.Write(dir+"/addr_adrfam", "ipv4")
	b.Write(dir+"/addr_traddr", r.Traddr)
	b.Write(dir+"/addr_trsvcid", strconv.Itoa(r.Trsvcid))
	if r.PortID != 0 {
		b.Write(dir+"/addr_portid", strconv.Itoa(int(r.PortID)))
	}
	b.Write(dir+"/enable", "1")
	return p.t.g.Apply(ctx, &b)
}

// RemoveReferral removes what AddReferral added.
func (p *Port) RemoveReferral(ctx context.Context, name string) error {
	var b guest.Batch
	b.Remove(p.dir() + "/referrals/" + name)
	return p.t.g.Apply(ctx, &b)
}
