package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// remotes notes where connections come from.
func remotes(ch chan<- string) tcptest.Script {
	return func(c *tcptest.Conn) {
		host, _, _ := net.SplitHostPort(c.NetConn().RemoteAddr().String())
		ch <- host
		new(tcptest.Controller).Serve(c)
	}
}

func loopback(network string) netip.Addr {
	if network == "tcp6" {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Every way of writing where a controller is, to a server on IPv4 and to one
// on IPv6.
func TestAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		network string
		format  string // of the port
		from    string
	}{
		{"tcp4", "trtype:tcp adrfam:ipv4 traddr:127.0.0.1 trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "traddr:127.0.0.1 trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "transport=tcp,traddr=127.0.0.1,trsvcid=%d,nqn=" + subNQN, "127.0.0.1"},
		{"tcp4", "traddr:::ffff:127.0.0.1 trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "traddr:localhost trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "adrfam:ipv4 traddr:localhost trsvcid:%d subnqn:" + subNQN, "127.0.0.1"},
		{"tcp4", "traddr:127.0.0.1 trsvcid:%d host_traddr:127.0.0.5 subnqn:" + subNQN, "127.0.0.5"},
		{"tcp4", "traddr:127.0.0.1 trsvcid:%d host_traddr=127.1.2.3 host_iface=lo subnqn:" + subNQN, "127.1.2.3"},
		{"tcp6", "trtype:tcp adrfam:ipv6 traddr:::1 trsvcid:%d subnqn:" + subNQN, "::1"},
		{"tcp6", "traddr:[::1] trsvcid:%d subnqn:" + subNQN, "::1"},
		{"tcp6", "traddr:0:0:0:0:0:0:0:1 trsvcid:%d host_traddr:[::1] subnqn:" + subNQN, "::1"},
	}
	for _, tt := range tests {
		t.Run(tt.network+" "+tt.format, func(t *testing.T) {
			ch := make(chan string, 4)
			f := setup(t, nil, remotes(ch))
			f.srv = tcptest.New(t, remotes(ch), &tcptest.Config{Addr: loopback(tt.network)})
			if err := f.connectTo(fmt.Sprintf(tt.format, f.srv.Addr().Port()), nil); err != nil {
				t.Fatal(err)
			}
			if from := <-ch; from != tt.from {
				t.Errorf("connected from %s, want %s", from, tt.from)
			}
			if !strings.Contains(f.c.Address(), subNQN) {
				t.Errorf("Address is %q", f.c.Address())
			}
			f.close()
		})
	}
}

// Addresses that lead nowhere fail before anything is sent, with an error that
// says so.
func TestBadAddress(t *testing.T) {
	t.Parallel()
	const rest = " subnqn:" + subNQN
	for _, addr := range []string{
		"traddr:127.0.0.1 trsvcid:4420", // no subsystem
		"trtype:tcp traddr:127.0.0.1",
		"trsvcid:4420" + rest, // no address
		"trtype:tcp adrfam:ib traddr:127.0.0.1 trsvcid:4420" + rest,
		"trtype:tcp adrfam:fc traddr:127.0.0.1 trsvcid:4420" + rest,
		"trtype:tcp adrfam:ipv6 traddr:127.0.0.1 trsvcid:4420" + rest,
		"trtype:tcp adrfam:ipv4 traddr:::1 trsvcid:4420" + rest,
		"traddr:127.0.0.1 trsvcid:0" + rest,
		"traddr:127.0.0.1 trsvcid:65536" + rest,
		"traddr:127.0.0.1 trsvcid:-1" + rest,
		"traddr:127.0.0.1 trsvcid:no-such-service" + rest,
		"traddr:127.0.0.1 trsvcid:4420 host_traddr:localhost" + rest,
		"traddr:127.0.0.1 trsvcid:4420 host_traddr:127.0.0.256" + rest,
		"traddr:127.0.0.1 trsvcid:4420 host_traddr:::1" + rest,
		"traddr:127.0.0.1 trsvcid:4420 hdgst:maybe" + rest,
		"traddr:127.0.0.1 trsvcid:4420 ddgst:2" + rest,
		"traddr:127.0.0.1 trsvcid:4420 tos:256" + rest,
		"traddr:127.0.0.1 trsvcid:4420 tos:x" + rest,
		"traddr:127.0.0.1 trsvcid:4420 priority:-1" + rest,
		"traddr:127.0.0.1 trsvcid:4420 subnqn:disk",
		"traddr:127.0.0.1 trsvcid:4420 subnqn:nqn." + strings.Repeat("x", 220),
		"traddr:127.0.0.1 trsvcid:4420 hostnqn:me" + rest,
		"traddr:127.0.0.1 trsvcid:4420 hostid:123" + rest,
		"traddr:127.0.0.1 trsvcid:4420 queue_size:1" + rest,
	} {
		t.Run(addr, func(t *testing.T) {
			c, err := nvme.Open(context.Background(), addr, nil)
			if !errors.Is(err, nvme.ErrAddress) {
				t.Errorf("%v, want ErrAddress", err)
			}
			if err == nil {
				c.Close(context.Background())
			}
		})
	}
}

// Names that do not resolve.
func TestBadName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a..b", "-.", strings.Repeat("x", 300)} {
		_, err := nvme.Open(context.Background(), "trsvcid:4420 traddr:"+name+" subnqn:"+subNQN, nil)
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("%.20q: %v, want a *net.DNSError that says not found", name, err)
		}
	}
}

// Without a port it is the one that is registered, which depends on the kind of
// controller.
func TestDefaultPort(t *testing.T) {
	t.Parallel()
	for nqn, port := range map[string]string{subNQN: tcp.Port, nvme.DiscoveryNQN: tcp.DiscoveryPort} {
		tr, err := tcp.New(nvme.Address{Transport: "tcp", Traddr: "[fe80::1]", SubNQN: nqn}, &nvme.Config{HostNQN: hostNQN})
		if err != nil {
			t.Fatal(err)
		}
		if want := "tcp [fe80::1]:" + port + " " + nqn; tr.Address() != want {
			t.Errorf("%q, want %q", tr.Address(), want)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Configurations that cannot be.
func TestBadConfig(t *testing.T) {
	t.Parallel()
	addr := nvme.Address{Transport: "tcp", Traddr: "127.0.0.1", SubNQN: subNQN}
	for name, transport := range map[string]any{
		"MaxR2T":          tcp.Config{MaxR2T: 129},
		"MaxR2T -1":       tcp.Config{MaxR2T: -1},
		"HPDA":            tcp.Config{HPDA: 32},
		"ReceiveBuffer":   tcp.Config{ReceiveBuffer: 16<<10 - 1},
		"ReceiveBuffer 2": &tcp.Config{ReceiveBuffer: 16<<20 + 1},
		"Transport":       "tcp",
	} {
		field, _, _ := strings.Cut(name, " ")
		if _, err := tcp.New(addr, &nvme.Config{HostNQN: hostNQN, Transport: transport}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	for _, nqn := range []string{"host", "nqn.\x01", "nqn." + strings.Repeat("x", 220)} {
		if _, err := tcp.New(addr, &nvme.Config{HostNQN: nqn}); !errors.Is(err, nvme.ErrAddress) {
			t.Errorf("host %.20q: %v, want ErrAddress", nqn, err)
		}
	}
}

// The socket has the options that were asked for; options that the kernel
// refuses are an error.
func TestSocketOptions(t *testing.T) {
	t.Parallel()
	var cfg rigConfig
	cfg.tcp = tcp.Config{
		TOS: 0xb8, Priority: 5, Congestion: "reno", SendBuffer: 100_000, RecvBuffer: 60_000,
		NoDelayOff: true, ReceiveBuffer: 20_000,
	}
	r := newRig(t, cfg)
	fd := tcp.FD(r.qp)
	if n, err := sys.SendBuffer(fd); err != nil || n != 200_000 { // the kernel doubles it
		t.Errorf("send buffer %d, %v", n, err)
	}
	if n, err := sys.RecvBuffer(fd); err != nil || n != 120_000 {
		t.Errorf("receive buffer %d, %v", n, err)
	}
	wantOption(t, "no delay", false)(sys.NoDelay(fd))
	wantOption(t, "priority", 5)(sys.Priority(fd)) // 4 is what the type of service makes of it
	wantOption(t, "type of service", 0xb8)(sys.TOS(fd, syscall.AF_INET))
	if s, err := sys.Congestion(fd); err != nil || s != "reno" {
		t.Errorf("congestion control %q, %v", s, err)
	}
	if n := tcp.ReceiveMemory(r.qp); n != 20_000 {
		t.Errorf("%d bytes of receive memory", n)
	}
	f := setup(t, new(tcptest.Controller), nil)
	err := f.connect(func(cfg *nvme.Config) { cfg.Transport = &tcp.Config{Congestion: "no-such-control"} })
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "no-such-control") {
		t.Errorf("congestion control that there is not: %v", err)
	}
	err = f.connectTo(f.srv.Address(subNQN)+" host_iface:no-such-if0", nil)
	if !errors.Is(err, syscall.ENODEV) {
		t.Errorf("interface that there is not: %v", err)
	}
	err = f.connectTo(f.srv.Address(subNQN)+" host_traddr:192.0.2.1", nil)
	if !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("source address that this host does not have: %v", err)
	}
}

// Options of the address reach the sockets of I/O queues, too; without any,
// small segments go at once.
func TestSocketOptionsOfAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options       string
		tos, priority int
	}{
		{"", 0, 0},
		{" tos:72 priority:3", 72, 3},
		{",tos=0x48,priority=0", 72, 2}, // 2 is what the type of service makes of it
	} {
		k, _ := disk(64)
		f := setup(t, k, nil)
		if err := f.connectTo(f.srv.Address(subNQN)+tt.options, nil); err != nil {
			t.Fatal(err)
		}
		q := f.queue(nvme.QueueConfig{})
		f.onCore(func() {
			fd := tcp.FD(q.QueuePair())
			wantOption(t, "no delay", true)(sys.NoDelay(fd))
			wantOption(t, "priority", tt.priority)(sys.Priority(fd))
			wantOption(t, "type of service", tt.tos)(sys.TOS(fd, syscall.AF_INET))
		})
		f.close()
	}
}

// wantOption checks what a socket says of an option.
func wantOption[T comparable](t *testing.T, name string, want T) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", name, got, err, want)
		}
	}
}

// Nobody listens, or there is no way there.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	f := setup(t, new(tcptest.Controller), nil)
	addr := f.srv.Address(subNQN)
	f.srv.Unlisten()
	err := f.connectTo(addr, nil)
	var op *nvme.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "connect" || op.Queue != 0 {
		t.Errorf("%v, want ECONNREFUSED in an *nvme.OpError", err)
	}
	// A broadcast address is refused by the kernel itself.
	err = f.connectTo("traddr:255.255.255.255 trsvcid:4420 subnqn:"+subNQN, nil)
	if !errors.Is(err, syscall.ENETUNREACH) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("%v, want ENETUNREACH or EACCES", err)
	}
}

// All of it over IPv6, with a traffic class.
func TestIPv6(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	f := setup(t, k, nil)
	f.srv = tcptest.NewController(t, k, &tcptest.Config{Addr: loopback("tcp6")})
	if err := f.connect(func(cfg *nvme.Config) { cfg.Transport = tcp.Config{TOS: 0xb8} }); err != nil {
		t.Fatal(err)
	}
	wantWorks(t, f)
	q := f.queue(nvme.QueueConfig{})
	f.onCore(func() {
		wantOption(t, "traffic class", 0xb8)(sys.TOS(tcp.FD(q.QueuePair()), syscall.AF_INET6))
	})
	f.close()
}

// A name with two addresses of which one answers.
func TestSecondAddress(t *testing.T) {
	t.Parallel()
	found, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		listed := false
		for _, a := range found {
			listed = listed || a.Unmap().Is4() == (network == "tcp4")
		}
		k, _ := disk(64)
		f := setup(t, k, nil)
		f.srv = tcptest.NewController(t, k, &tcptest.Config{Addr: loopback(network)})
		err := f.connectTo(fmt.Sprintf("traddr:localhost trsvcid:%d subnqn:%s", f.srv.Addr().Port(), subNQN), nil)
		if !listed {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s, which localhost does not have: %v", network, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		wantWorks(t, f) // on an I/O queue, which goes where the admin queue went
		f.close()
	}
}
