package sys

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// Family returns the address family of an address: AF_INET, also for an IPv4
// address in its IPv6 form, or AF_INET6.
func Family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// sockaddr converts to what the kernel takes. An IPv6 zone is an interface's
// name or index.
func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	addr := a.Addr().Unmap()
	switch {
	case addr.Is4():
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: addr.As4()}, nil
	case addr.Is6():
		zone, err := zoneIndex(addr.Zone())
		if err != nil {
			return nil, err
		}
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: addr.As16(), ZoneId: zone}, nil
	}
	return nil, fmt.Errorf("sys: no address in %q", a)
}

func zoneIndex(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("sys: zone %q: %w", zone, err)
	}
	return uint32(ifi.Index), nil
}

// addrPort converts from what the kernel gives; the zero value for a family
// that is neither IPv4 nor IPv6. A zone is given by its index.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		addr := netip.AddrFrom16(sa.Addr)
		if sa.ZoneId != 0 {
			addr = addr.WithZone(strconv.FormatUint(uint64(sa.ZoneId), 10))
		}
		return netip.AddrPortFrom(addr, uint16(sa.Port))
	}
	return netip.AddrPort{}
}
