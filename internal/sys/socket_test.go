package sys

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSockaddr(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	must(t, err)
	index := strconv.Itoa(lo.Index)
	for _, c := range []struct {
		in, want string
		family   int
	}{
		{"192.0.2.1:4420", "192.0.2.1:4420", unix.AF_INET},
		{"[::ffff:192.0.2.1]:4420", "192.0.2.1:4420", unix.AF_INET},
		{"[2001:db8::1]:65535", "[2001:db8::1]:65535", unix.AF_INET6},
		{"[fe80::1%lo]:8009", "[fe80::1%" + index + "]:8009", unix.AF_INET6},
		{"[fe80::1%" + index + "]:8009", "[fe80::1%" + index + "]:8009", unix.AF_INET6},
	} {
		in := netip.MustParseAddrPort(c.in)
		if got := Family(in.Addr()); got != c.family {
			t.Errorf("%s: family %d, want %d", c.in, got, c.family)
		}
		sa, err := sockaddr(in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := addrPort(sa).String(); got != c.want {
			t.Errorf("%s became %s, want %s", c.in, got, c.want)
		}
	}
}

func TestSockaddrErrors(t *testing.T) {
	if _, err := sockaddr(netip.AddrPort{}); err == nil {
		t.Error("no address is taken for one")
	}
	if _, err := sockaddr(netip.MustParseAddrPort("[fe80::1%no-such-zone]:1")); err == nil {
		t.Error("an unknown zone is taken for one")
	}
	if got := addrPort(&unix.SockaddrUnix{Name: "x"}); got.IsValid() {
		t.Errorf("a path became %v", got)
	}
	for name, err := range map[string]error{
		"Connect": Connect(-1, netip.AddrPort{}),
		"Bind":    Bind(-1, netip.AddrPort{}),
	} {
		if err == nil {
			t.Errorf("%s takes no address for one", name)
		}
	}
}

func TestConnectRefused(t *testing.T) {
	// Bound and not listening: nobody else has the port, and nobody answers.
	held := tcpSocket(t)
	must(t, Bind(held, loopback))
	addr, err := LocalAddr(held)
	must(t, err)
	fd := tcpSocket(t)
	err = Connect(fd, addr)
	if errors.Is(err, unix.EINPROGRESS) {
		ready(t, fd, unix.POLLOUT)
		var e Errno
		e, err = SockError(fd)
		must(t, err)
		err = e
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("connect: %v, want ECONNREFUSED", err)
	}
}

func TestConnectDone(t *testing.T) {
	client, server := pair(t)
	if e, err := SockError(client); e != 0 || err != nil {
		t.Errorf("connected with %v, %v", e, err)
	}
	local, err := LocalAddr(server)
	must(t, err)
	peer, err := PeerAddr(client)
	must(t, err)
	if local != peer {
		t.Errorf("the server is at %v, and seen at %v", local, peer)
	}
}

func TestAcceptNothing(t *testing.T) {
	l, _ := listener(t)
	if fd, _, err := Accept4(l); fd != -1 || err != unix.EAGAIN {
		t.Errorf("accepted %d, %v", fd, err)
	}
}

func TestSocketErrors(t *testing.T) {
	fd := tcpSocket(t)
	_, peerErr := PeerAddr(fd)
	_, localErr := LocalAddr(-1)
	_, sockErr := SockError(-1)
	_, familyErr := Socket(-1)
	for _, c := range []struct {
		name string
		err  error
		want Errno
	}{
		{"getpeername", peerErr, unix.ENOTCONN},
		{"getsockname", localErr, unix.EBADF},
		{"getsockopt SO_ERROR", sockErr, unix.EBADF},
		{"socket", familyErr, unix.EAFNOSUPPORT},
		{"shutdown", Shutdown(fd, unix.SHUT_RDWR), unix.ENOTCONN},
		{"listen", Listen(-1, 1), unix.EBADF},
		{"close", Close(-1), unix.EBADF},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	fd := tcpSocket(t)
	for _, c := range []struct {
		name       string
		set        error
		level, opt int
		want       int
	}{
		{"TCP_NODELAY", SetNoDelay(fd, true), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"TCP_USER_TIMEOUT", SetUserTimeout(fd, 1500*time.Microsecond), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 2},
		{"IP_TOS", SetTOS(fd, unix.AF_INET, 0x48), unix.IPPROTO_IP, unix.IP_TOS, 0x48},
		{"SO_PRIORITY", SetPriority(fd, 5), unix.SOL_SOCKET, unix.SO_PRIORITY, 5},
		{"SO_REUSEADDR", SetReuseAddr(fd, true), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
	} {
		if c.set != nil {
			t.Errorf("%s: %v", c.name, c.set)
			continue
		}
		got, err := unix.GetsockoptInt(fd, c.level, c.opt)
		if err != nil || got&0xff != c.want {
			t.Errorf("%s is %d, want %d (%v)", c.name, got, c.want, err)
		}
	}
}

func TestBindToDevice(t *testing.T) {
	fd := tcpSocket(t)
	must(t, BindToDevice(fd, "lo"))
	if err := BindToDevice(fd, "no-such-device"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("%v, want ENODEV", err)
	}
}

// Kernels are built without busy polling, too, and say so.
func TestBusyPoll(t *testing.T) {
	fd := tcpSocket(t)
	if err := SetBusyPoll(fd, 0); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		t.Errorf("%v, want success or ENOPROTOOPT", err)
	}
	if SetBusyPoll(-1, 0) == nil {
		t.Error("no descriptor can do it")
	}
}

func TestNoDelayOff(t *testing.T) {
	fd := tcpSocket(t)
	must(t, SetNoDelay(fd, true))
	must(t, SetNoDelay(fd, false))
	if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); v != 0 || err != nil {
		t.Errorf("TCP_NODELAY is %d, %v", v, err)
	}
}

func TestTrafficClass(t *testing.T) {
	fd, err := Socket(unix.AF_INET6)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		// A kernel without IPv6 must say so here, and nowhere later.
		if err := SetTOS(tcpSocket(t), unix.AF_INET6, 0x48); err == nil {
			t.Error("IPV6_TCLASS set on an IPv4 socket")
		}
		return
	}
	must(t, err)
	closeAfter(t, fd)
	must(t, SetTOS(fd, unix.AF_INET6, 0x48))
	if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS); v != 0x48 || err != nil {
		t.Errorf("IPV6_TCLASS is %#x, %v", v, err)
	}
}

func TestBuffers(t *testing.T) {
	fd := tcpSocket(t)
	for _, c := range []struct {
		name string
		set  func(fd, n int) error
		get  func(fd int) (int, error)
	}{
		{"receive", SetRecvBuffer, RecvBuffer},
		{"send", SetSendBuffer, SendBuffer},
	} {
		const size = 32 << 10
		must(t, c.set(fd, size))
		if n, err := c.get(fd); n != 2*size || err != nil {
			t.Errorf("%s buffer is %d, %v; the kernel doubles %d", c.name, n, err, size)
		}
	}
}

func TestCongestion(t *testing.T) {
	fd := tcpSocket(t)
	must(t, SetCongestion(fd, "reno")) // built in, and open to everyone
	if name, err := Congestion(fd); name != "reno" || err != nil {
		t.Errorf("congestion control is %q, %v", name, err)
	}
	if err := SetCongestion(fd, "no-such-thing"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("an unknown name: %v, want ENOENT", err)
	}
}

func TestQuickAck(t *testing.T) {
	client, _ := pair(t)
	for _, on := range []bool{true, false} {
		if err := SetQuickAck(client, on); err != nil {
			t.Error(err)
		}
	}
	if err := SetQuickAck(-1, true); !errors.Is(err, unix.EBADF) {
		t.Errorf("%v, want EBADF", err)
	}
}

func TestLinger(t *testing.T) {
	fd := tcpSocket(t)
	for _, c := range []struct {
		d    time.Duration
		want unix.Linger
	}{
		{-1, unix.Linger{}},
		{0, unix.Linger{Onoff: 1}},
		{1500 * time.Millisecond, unix.Linger{Onoff: 1, Linger: 2}},
	} {
		must(t, SetLinger(fd, c.d))
		got, err := getLinger(fd)
		if err != 0 || got != c.want {
			t.Errorf("%v became %+v, %v; want %+v", c.d, got, err, c.want)
		}
	}
}
