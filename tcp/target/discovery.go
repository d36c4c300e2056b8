package target

import (
	"net/netip"
	"strconv"

	"github.com/qpoll/qpoll/nvme"
)

// newDiscovery makes the discovery service.
func newDiscovery(t *Target) *Subsystem {
	cfg := SubsystemConfig{NQN: "nqn"} // checked as any other; the name comes after
	_ = cfg.fill()
	cfg.NQN, cfg.Serial = nvme.DiscoveryNQN, serialOf(nvme.DiscoveryNQN)
	cfg.QueueEntries = 128
	s := newSubsystem(t, cfg)
	s.discovery = true
	return s
}

// SetReferrals replaces the referrals of the discovery log. Hosts are told.
func (t *Target) SetReferrals(list []Referral) error {
	list = append([]Referral(nil), list...)
	if err := fillReferrals(list); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.referrals = list
	t.discoveryChanged()
	return nil
}

// discoveryChanged counts a change of the discovery log, and tells the hosts
// that are connected to the discovery service. The caller holds the target's
// lock.
func (t *Target) discoveryChanged() {
	t.generation++
	if t.discovery == nil {
		return
	}
	for _, c := range t.discovery.controllers {
		c.raise(eventDiscovery)
	}
}

// discoveryLog is the Discovery log page as the host of a controller is to see
// it, which has connected to the local address of c: this discovery service and
// the subsystems that the host may connect to, at each port, then referrals.
// The caller holds the target's lock.
func (t *Target) discoveryLog(ctrl *controller, c *conn, lsp uint8) ([]byte, error) {
	const offered = nvme.DiscoveryFlagPortLocal | nvme.DiscoveryFlagAll // the same bits in both
	l := logBuilder{log: nvme.DiscoveryLog{Generation: t.generation, Flags: lsp & offered}}
	ports := t.ports
	if lsp&nvme.LSPDiscoveryPortLocal != 0 {
		ports = []*Port{ctrl.port}
	}
	for _, p := range ports {
		addr := p.advertised(c.cold.local)
		l.add(nvme.SubTypeDiscovery, p.id, addr, nvme.DiscoveryNQN, t.discovery.cfg.QueueEntries)
		for _, s := range t.subsystems {
			if p.serves(s) && (s.allows(ctrl.host) || lsp&nvme.LSPDiscoveryAll != 0) {
				l.add(nvme.SubTypeNVM, p.id, addr, s.cfg.NQN, s.cfg.QueueEntries)
			}
		}
	}
	for _, r := range t.referrals {
		l.add(nvme.SubTypeReferral, r.ID, r.Address, r.NQN, 0)
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.log.AppendBinary(nil)
}

// logBuilder collects the entries of a Discovery log page.
type logBuilder struct {
	log nvme.DiscoveryLog
	err error
}

func (l *logBuilder) add(kind nvme.SubType, port uint16, addr netip.AddrPort, nqn string, entries int) {
	e := nvme.DiscoveryEntry{
		TRTYPE: nvme.TRTypeTCP, ADRFAM: nvme.ADRFamIPv4, SUBTYPE: kind,
		TREQ:   nvme.TREQSecureNotRequired | nvme.TREQDisableFlow,
		PORTID: port, ControllerID: nvme.ControllerIDDynamic, ASQSZ: uint16(entries),
	}
	if kind != nvme.SubTypeNVM {
		e.EFLAGS = nvme.EFLAGPersistent
	}
	ip := addr.Addr().Unmap()
	if ip.Is6() {
		e.ADRFAM = nvme.ADRFamIPv6
	}
	err := e.SetAddress(ip.WithZone("").String(), strconv.Itoa(int(addr.Port())))
	if err == nil {
		err = e.SetSubsystemNQN(nqn)
	}
	if err != nil && l.err == nil {
		l.err = err
	}
	l.log.Entries = append(l.log.Entries, e)
}

// advertised is the address of a port to tell a host that has connected to
// local.
func (p *Port) advertised(local netip.AddrPort) netip.AddrPort {
	a := p.cfg.Advertise
	if !a.IsValid() {
		a = p.addr
	}
	if a.Addr().IsUnspecified() {
		a = netip.AddrPortFrom(local.Addr(), a.Port())
	}
	return a
}
