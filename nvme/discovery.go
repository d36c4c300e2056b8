package nvme

import (
	"context"
	"fmt"
	"net"
)

// maxDiscoveryRecords bounds what hostile discovery controllers can make the
// host read and keep, all of those that Discover visits together: 64 MiB.
const maxDiscoveryRecords = 1 << 16

// DiscoveryLog reads the discovery log page of a discovery controller whole,
// and again if its generation changed meanwhile.
func (c *Controller) DiscoveryLog(ctx context.Context) (*DiscoveryLog, error) {
	log, err := c.readDiscoveryLog(ctx)
	return log, c.opError("read discovery log", 0, err)
}

func (c *Controller) readDiscoveryLog(ctx context.Context) (*DiscoveryLog, error) {
	if id := c.id.Load(); !id.IsDiscovery() {
		if nqn, _ := id.SubsystemNQN(); nqn != DiscoveryNQN {
			return nil, fmt.Errorf("%w: not a discovery controller", ErrUnsupported)
		}
	}
	head := make([]byte, DiscoveryHeaderSize)
	var h DiscoveryHeader
	read := func() error {
		if err := c.LogPage(ctx, LogDiscovery, head, LogOptions{}); err != nil {
			return err
		}
		return h.UnmarshalBinary(head)
	}
	if err := read(); err != nil {
		return nil, err
	}
	for range 8 {
		size, err := h.Size(maxDiscoveryRecords)
		if err != nil {
			return nil, err
		}
		buf := make([]byte, size)
		if err := c.LogPage(ctx, LogDiscovery, buf, LogOptions{RAE: true}); err != nil {
			return nil, err
		}
		was := h
		if err := h.UnmarshalBinary(buf); err != nil {
			return nil, err
		}
		if h.GENCTR != was.GENCTR || h.NUMREC != was.NUMREC {
			continue // it has changed already, and may be longer
		}
		log := new(DiscoveryLog)
		if err := log.UnmarshalBinary(buf); err != nil {
			return nil, err
		}
		if err := read(); err != nil {
			return nil, err
		}
		if h.GENCTR == log.Generation && h.NUMREC == uint64(len(log.Entries)) {
			return log, nil
		}
	}
	return nil, fmt.Errorf("%w: the discovery log changes faster than it can be read", ErrProtocol)
}

// Address returns the address of what the entry describes, for OpenAddress. A
// subsystem that does not fit a host's address string is an error.
func (e *DiscoveryEntry) Address() (Address, error) {
	nqn, err := e.SubsystemNQN()
	if err != nil {
		return Address{}, err
	}
	a := Address{
		Transport: e.TRTYPE.String(), Traddr: e.TransportAddress(), Service: e.ServiceID(), SubNQN: nqn,
	}
	if e.ADRFAM != ADRFamNone {
		a.Family = e.ADRFAM.String()
	}
	return a, a.check()
}

// Discovered is what Discover found: one address and where it was learned.
type Discovered struct {
	Entry DiscoveryEntry
	Addr  Address
	From  string // address of the discovery controller
}

// maxReferrals bounds how many discovery services one Discover visits.
const maxReferrals = 64

// Discover asks the discovery service at addr (a subnqn is not needed), and
// those that it refers to, for the subsystems that this host may connect to.
// Services are asked once each, so that referrals in a circle end. What could
// be found is returned beside the first error.
func Discover(ctx context.Context, addr string, cfg *Config) ([]Discovered, error) {
	start, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	if start.SubNQN == "" {
		start.SubNQN = DiscoveryNQN
	}
	var found []Discovered
	var first error
	seen := map[string]bool{}
	for queue := []Address{start}; len(queue) > 0; queue = queue[1:] {
		a := queue[0]
		key := a.Transport + " " + net.JoinHostPort(a.Traddr, a.Service)
		if seen[key] {
			continue
		}
		if seen[key] = true; len(seen) > maxReferrals {
			return found, fmt.Errorf("%w: more than %d referrals", ErrProtocol, maxReferrals)
		}
		log, err := discoverOne(ctx, a, cfg)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if len(found)+len(log.Entries) > maxDiscoveryRecords {
			return found, fmt.Errorf("%w: more than %d discovery log entries", ErrProtocol, maxDiscoveryRecords)
		}
		for _, e := range log.Entries {
			to, err := e.Address()
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
			if to.Transport == start.Transport {
				to.HostTraddr, to.HostIface, to.HostNQN, to.HostID = start.HostTraddr, start.HostIface, start.HostNQN, start.HostID
			}
			if e.SUBTYPE == SubTypeReferral {
				queue = append(queue, to)
			}
			found = append(found, Discovered{Entry: e, Addr: to, From: key})
		}
	}
	return found, first
}

func discoverOne(ctx context.Context, a Address, cfg *Config) (*DiscoveryLog, error) {
	var once Config
	if cfg != nil {
		once = *cfg
	}
	once.KeepAlive = Forever // a short visit
	c, err := OpenAddress(ctx, a, &once)
	if err != nil {
		return nil, err
	}
	log, err := c.DiscoveryLog(ctx)
	if cerr := c.Close(ctx); err == nil {
		err = cerr
	}
	return log, err
}
