package tcptest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// Connections get their scripts by number; those without one go to the test.
func TestSequenceAndAccept(t *testing.T) {
	say := func(s string) tcptest.Script { return func(c *tcptest.Conn) { c.Send([]byte(s)) } }
	s := start(t, tcptest.Sequence(say("a"), nil, func(c *tcptest.Conn) {
		c.Send([]byte("b"))
		c.HandOver()
	}, say("c")), nil)
	heard := func(h *host) string {
		b, err := io.ReadAll(h.nc)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	var hosts []*host
	for i := range 5 {
		hosts = append(hosts, dial(t, s))
		for s.Accepted() != i+1 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	for range 2 {
		c := s.Accept(t)
		c.Send([]byte{'0' + byte(c.Index())})
		c.Close()
	}
	for i, want := range []string{"a", "1", "b2", "c", "c"} {
		if got := heard(hosts[i]); got != want {
			t.Errorf("connection %d said %q, want %q", i, got, want)
		}
		hosts[i].nc.Close()
	}
	wantErr(t, s.Close())
}

// On a connection that was handed over, failures are the test's.
func TestAcceptFails(t *testing.T) {
	s := start(t, nil, &tcptest.Config{Timeout: 50 * time.Millisecond})
	if text := fails(t, func(tb testing.TB) { s.Accept(tb) }); text == "" {
		t.Error("no reason")
	}
	dial(t, s)
	tb := &recorder{TB: t}
	c := s.Accept(tb)
	if text := fails(t, func(testing.TB) { c.Expect(pdu.TypeICReq) }); text == "" {
		t.Error("no reason")
	}
	wantErr(t, s.Close())
	if text := fails(t, func(tb testing.TB) { s.Accept(tb) }); text == "" {
		t.Error("no reason")
	}
}

// A server that stops listening refuses, and takes its port up again.
func TestUnlisten(t *testing.T) {
	for _, addr := range []netip.Addr{{}, netip.IPv6Loopback()} {
		s := start(t, func(c *tcptest.Conn) { c.Drain() }, &tcptest.Config{Addr: addr})
		if s.Addr().Addr().Is6() != addr.IsValid() || !s.Addr().Addr().IsLoopback() {
			t.Errorf("listens on %v", s.Addr())
		}
		a, err := nvme.ParseAddress(s.Address(subNQN))
		if err != nil || a.Traddr != s.Addr().Addr().String() || a.Service != fmt.Sprint(s.Addr().Port()) || a.SubNQN != subNQN || a.Family != map[bool]string{false: "ipv4", true: "ipv6"}[addr.IsValid()] {
			t.Errorf("address %+v, %v", a, err)
		}
		kept := dial(t, s)
		for range 3 {
			s.Unlisten()
			s.Unlisten()
			if _, err := net.Dial("tcp", s.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v, want ECONNREFUSED", err)
			}
			if err := s.Listen(); err != nil {
				t.Fatal(err)
			}
			if err := s.Listen(); err != nil {
				t.Error(err)
			}
			dial(t, s)
		}
		kept.send([]byte{1})
		wantErr(t, s.Close())
		wantErr(t, s.Listen()) // does nothing
		wantErr(t, s.Close())
	}
}

// More connections than allowed are closed, longer PDUs refused.
func TestBounds(t *testing.T) {
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{})
		c.ExpectCommand(nvme.OpFlush)
		c.ExpectCommand(nvme.OpFlush)
	}, &tcptest.Config{MaxConns: 2, MaxPDU: 100})
	first, second := dial(t, s), dial(t, s)
	for s.Accepted() != 2 {
		time.Sleep(100 * time.Microsecond)
	}
	third := dial(t, s)
	if b, err := io.ReadAll(third.nc); len(b) != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the third connection got %q, %v", b, err)
	}
	second.nc.Close()
	first.post(nvme.Command{Opcode: nvme.OpFlush}, make([]byte, 28))
	first.post(nvme.Command{Opcode: nvme.OpFlush}, make([]byte, 29))
	_, _ = io.ReadAll(first.nc)
	wantErr(t, s.Err(), "PDU longer than")
}
