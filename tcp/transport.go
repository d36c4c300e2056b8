package tcp

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Port is the port number that IANA registered for NVMe/TCP I/O controllers;
// DiscoveryPort the one for discovery controllers.
const (
	Port          = "4420"
	DiscoveryPort = "8009"
)

func init() { nvme.Register("tcp", New) }

// transport implements nvme.Transport for one controller.
type transport struct {
	addr   nvme.Address
	cfg    Config
	host   hostIdentity
	kato   time.Duration
	name   string // for messages
	cntlid atomic.Uint32
	icd    atomic.Uint32 // in-capsule data limit of I/O queues, bytes
	subnqn string
	// flowControl: submission queue flow control stays on, by choice or
	// because the controller insists.
	flowControl atomic.Bool
	admin       atomic.Pointer[nvme.QueuePair]
	remotes     atomic.Pointer[[]netip.AddrPort] // what the last queue 0 connected to, first

	mu        sync.Mutex
	lingering map[*conn]struct{}
}

type hostIdentity struct {
	nqn string
	id  [16]byte
}

// New makes the transport to the controller at addr. It is what nvme.Open uses
// for "tcp".
func New(addr nvme.Address, cfg *nvme.Config) (nvme.Transport, error) {
	var c Config
	switch t := cfg.Transport.(type) {
	case nil:
	case Config:
		c = t
	case *Config:
		c = *t
	default:
		return nil, fmt.Errorf("nvme/tcp: nvme.Config.Transport is of type %T, not tcp.Config", t)
	}
	c, err := c.withDefaults(addr.Options)
	if err != nil {
		return nil, err
	}
	if addr.Family != "" && addr.Family != "ipv4" && addr.Family != "ipv6" {
		return nil, fmt.Errorf("%w: adrfam %s with trtype tcp", nvme.ErrAddress, addr.Family)
	}
	if addr.SubNQN == "" {
		return nil, fmt.Errorf("%w: no subnqn (for discovery, use %s)", nvme.ErrAddress, nvme.DiscoveryNQN)
	}
	if addr.Service == "" {
		addr.Service = Port
		if addr.SubNQN == nvme.DiscoveryNQN {
			addr.Service = DiscoveryPort
		}
	}
	t := &transport{addr: addr, cfg: c, subnqn: addr.SubNQN, lingering: map[*conn]struct{}{}, kato: cfg.KATO()}
	t.host.nqn, t.host.id = cfg.Host()
	t.flowControl.Store(c.SQFlowControl)
	if err := nvme.CheckNQN(t.host.nqn); err != nil {
		return nil, err
	}
	t.name = "tcp " + net.JoinHostPort(unbracket(addr.Traddr), addr.Service) + " " + addr.SubNQN
	t.cntlid.Store(0xffff)
	return t, nil
}

func unbracket(s string) string {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1]
	}
	return s
}

func (t *transport) Name() string    { return "tcp" }
func (t *transport) Address() string { return t.name }

// Close implements nvme.Transport.
func (t *transport) Close() error {
	t.mu.Lock()
	conns := maps.Clone(t.lingering)
	t.mu.Unlock()
	for c := range conns {
		c.qp.Poller().CallAnyway(c.endLinger)
	}
	return nil
}

// Connect implements nvme.Transport: TCP connection, ICReq and ICResp, fabrics
// Connect, all driven on the queue pair's core.
func (t *transport) Connect(ctx context.Context, qp *nvme.QueuePair) error {
	local, err := t.source()
	if err != nil {
		return err
	}
	remotes, err := t.resolve(ctx, qp.ID() == 0, local)
	if err != nil {
		return err
	}
	if qp.ID() == 0 {
		t.admin.Store(qp)
		t.cntlid.Store(0xffff)
		t.icd.Store(0)
	}
	for i, remote := range remotes {
		asked := !t.flowControl.Load() // to do without
		err = t.connectOne(ctx, qp, local, remote)
		if asked && declinesNoFlowControl(err) {
			t.flowControl.Store(true)
			err = t.connectOne(ctx, qp, local, remote)
		}
		if err == nil {
			if qp.ID() == 0 && i > 0 {
				t.remotes.Store(&[]netip.AddrPort{remote})
			}
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

func (t *transport) connectOne(ctx context.Context, qp *nvme.QueuePair, local, remote netip.AddrPort) error {
	ended := make(chan error, 1)
	var c *conn
	err := qp.Poller().Call(ctx, func() {
		var ok bool
		if c, ok = qp.Transport().(*conn); !ok {
			c = newConn(t, qp)
			qp.Attach(c)
		}
		c.start(local, remote, func(err error) { ended <- err })
	})
	if err != nil {
		return err
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
		cause := context.Cause(ctx)
		qp.Poller().CallAnyway(func() { c.stop(fmt.Errorf("connect: %w", cause)) })
		if err = <-ended; err == nil { // stop has ended it, if nothing else had
			err = cause
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", remote, err)
	}
	return nil
}

// Disconnect implements nvme.Transport.
func (t *transport) Disconnect(_ context.Context, qp *nvme.QueuePair) error {
	qp.Poller().CallAnyway(func() {
		if c, ok := qp.Transport().(*conn); ok {
			c.stop(nvme.ErrClosed)
			return
		}
		qp.Quiesced()
	})
	return nil
}

// Property implements nvme.Transport with a fabrics Property Get.
func (t *transport) Property(ctx context.Context, offset uint32, size int) (uint64, error) {
	cmd := nvme.PropertyGetCommand{Offset: offset, Size: size}.Command()
	cpl, err := t.admin.Load().DoInternal(ctx, &cmd, nil)
	if err != nil {
		return 0, err
	}
	if size == 4 {
		return cpl.Result & 0xffffffff, nil
	}
	return cpl.Result, nil
}

// SetProperty implements nvme.Transport with a fabrics Property Set.
func (t *transport) SetProperty(ctx context.Context, offset uint32, size int, v uint64) error {
	cmd := nvme.PropertySetCommand{Offset: offset, Size: size, Value: v}.Command()
	_, err := t.admin.Load().DoInternal(ctx, &cmd, nil)
	return err
}

// Limits implements nvme.Transport. In passing it learns how much data an I/O
// capsule may carry.
func (t *transport) Limits(id *nvme.IdentifyController) nvme.Limits {
	if id != nil {
		var icd uint32
		// IOCCSZ counts the submission queue entry, in units of 16 bytes. An
		// offset (ICDOFF) means nothing in NVMe/TCP, where PDO says where data
		// begins; a controller that reports one gets its data by R2T, which
		// leaves no doubt.
		if n := uint64(id.IOCCSZ) * 16; n > nvme.CommandSize && id.ICDOFF == 0 {
			icd = uint32(min(n-nvme.CommandSize, maxInCapsule))
		}
		t.icd.Store(icd)
	}
	return nvme.Limits{MaxTransfer: 1 << 30, Fabrics: true, ControllerID: uint16(t.cntlid.Load())}
}

// resolve turns the address into a list to try in order, of the families that
// were asked for and that the local address, if there is one, can reach. I/O
// queues go where the admin queue went.
func (t *transport) resolve(ctx context.Context, admin bool, local netip.AddrPort) ([]netip.AddrPort, error) {
	if p := t.remotes.Load(); p != nil && !admin {
		return *p, nil
	}
	port, err := lookupPort(ctx, t.addr.Service)
	if err != nil {
		return nil, err
	}
	host := unbracket(t.addr.Traddr)
	var all []netip.AddrPort
	if a, err := netip.ParseAddr(host); err == nil {
		all = append(all, netip.AddrPortFrom(a.Unmap(), port))
	} else {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			all = append(all, netip.AddrPortFrom(a.Unmap(), port))
		}
	}
	var list []netip.AddrPort
	for _, a := range all {
		is4 := a.Addr().Is4()
		if (t.addr.Family == "" || (t.addr.Family == "ipv4") == is4) && (!local.IsValid() || local.Addr().Is4() == is4) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %s has no address of the family of adrfam and host_traddr", nvme.ErrAddress, host)
	}
	t.remotes.Store(&list)
	return list, nil
}

func lookupPort(ctx context.Context, service string) (uint16, error) {
	if n, err := strconv.ParseUint(service, 10, 16); err == nil && n > 0 {
		return uint16(n), nil
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%w: trsvcid %q is not a port", nvme.ErrAddress, service)
	}
	return uint16(n), nil
}

// source returns the local address to bind to, if one was given.
func (t *transport) source() (netip.AddrPort, error) {
	if t.addr.HostTraddr == "" {
		return netip.AddrPort{}, nil
	}
	a, err := netip.ParseAddr(unbracket(t.addr.HostTraddr))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: host_traddr %q is not an IP address", nvme.ErrAddress, t.addr.HostTraddr)
	}
	return netip.AddrPortFrom(a.Unmap(), 0), nil
}
