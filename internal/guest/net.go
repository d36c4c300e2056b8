package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// forwardTries bounds the search for a free port; another process may take the
// one that was found before QEMU does.
const forwardTries = 50

// HostAddr returns the address at which the guest reaches, through the interface
// nic, what listens on 127.0.0.1 of the host. Each interface has its own, so
// that a test can have several paths to one listener.
func HostAddr(nic int) string { return hostAddr(nic) }

// GuestAddr returns the address of the guest's interface nic. The host cannot
// reach it; see Forward.
func GuestAddr(nic int) string { return guestAddr(nic) }

// Forward makes QEMU listen on a free port of 127.0.0.1 of the host and pass
// connections on, through the interface nic, to addr in the guest, which may be
// 127.0.0.1 or, if empty, the address of that interface. A port of 0 stands for
// the same port as on the host: what a service needs that tells others its own
// address, such as NVMe discovery. It returns the port on the host.
//
// QEMU accepts a connection before it knows whether the guest does. A client
// therefore sees a port without a listener as a connection that ends at once.
func (g *Guest) Forward(ctx context.Context, nic int, addr string, port int) (int, error) {
	var last error
	for range forwardTries {
		hostPort, err := freePort()
		if err != nil {
			return 0, err
		}
		last = g.ForwardFrom(ctx, hostPort, nic, addr, cmp.Or(port, hostPort))
		if last == nil {
			return hostPort, nil
		}
		if !errors.Is(last, ErrPortTaken) {
			return 0, last
		}
	}
	return 0, last
}

// ErrPortTaken is returned when a port of the host is in use.
var ErrPortTaken = errors.New("guest: port of the host is in use")

// ForwardFrom is Forward from a given port of the host, as for a service that
// comes back where it was.
func (g *Guest) ForwardFrom(ctx context.Context, hostPort, nic int, addr string, port int) error {
	if nic < 0 || nic >= g.cfg.NICs {
		return fmt.Errorf("%w: no interface %d", ErrConfig, nic)
	}
	addr = cmp.Or(addr, guestAddr(nic))
	out, err := g.hmp(ctx, fmt.Sprintf("hostfwd_add %s tcp:127.0.0.1:%d-%s:%d", nicID(nic), hostPort, addr, port))
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("%w: forward %d to %s:%d: %s", ErrPortTaken, hostPort, addr, port, out)
	}
	return nil
}

// Unforward ends what Forward began. Connections that exist go on.
func (g *Guest) Unforward(ctx context.Context, nic, hostPort int) error {
	out, err := g.hmp(ctx, fmt.Sprintf("hostfwd_remove %s tcp:127.0.0.1:%d", nicID(nic), hostPort))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "removed") {
		return fmt.Errorf("guest: end forwarding of port %d: %s", hostPort, out)
	}
	return nil
}

// SetLink pulls the cable of the interface nic, or puts it back. While it is
// out, packets are lost in both directions, and connections through it hang.
func (g *Guest) SetLink(ctx context.Context, nic int, up bool) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	return g.qmp.Execute(ctx, "set_link", map[string]any{"name": nicID(nic), "up": up}, nil)
}

// hmp runs a command of QEMU's monitor for people, for what QMP has not.
func (g *Guest) hmp(ctx context.Context, line string) (string, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	var out string
	err := g.qmp.Execute(ctx, "human-monitor-command", map[string]any{"command-line": line}, &out)
	return strings.TrimSpace(out), err
}

// freePort returns a port of the loopback interface that was free just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
