//go:build guest

package guest

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echoOnce accepts one connection and sends back what comes.
func echoOnce(t *testing.T) (port int) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func testNetwork(t *testing.T, g *Guest) {
	for nic := range 2 {
		port := echoOnce(t)
		got := g.Shell(t, "echo through nic | nc "+HostAddr(nic)+" "+strconv.Itoa(port))
		if got != "through nic" {
			t.Errorf("interface %d: %q", nic, got)
		}
	}
}

// guestEcho has the guest answer connections to its port with a line.
func guestEcho(t *testing.T, g *Guest, port int) {
	t.Helper()
	g.Shell(t, "nc -ll -p "+strconv.Itoa(port)+" -e echo from the guest </dev/null >/dev/null 2>&1 &")
	err := g.Until(t.Context(), "listener", func() (bool, error) {
		res, err := g.Run(t.Context(), "netstat", "-ltn")
		return err == nil && strings.Contains(string(res.Stdout), ":"+strconv.Itoa(port)+" "), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dialAndRead(t *testing.T, port int) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return strings.TrimSpace(string(b)), err
}

func testForward(t *testing.T, g *Guest) {
	ctx := t.Context()
	for nic := range 2 {
		// The same port on both sides, and the loopback interface of the guest.
		port, err := g.Forward(ctx, nic, "127.0.0.1", 0)
		if err != nil {
			t.Fatal(err)
		}
		guestEcho(t, g, port)
		if got, err := dialAndRead(t, port); got != "from the guest" || err != nil {
			t.Errorf("interface %d: got %q, %v", nic, got, err)
		}
		if err := g.Unforward(ctx, nic, port); err != nil {
			t.Fatal(err)
		}
		if _, err := dialAndRead(t, port); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end of forwarding: %v", err)
		}
		if err := g.ForwardFrom(ctx, port, nic, "127.0.0.1", port); err != nil {
			t.Fatal(err)
		}
		if got, err := dialAndRead(t, port); got != "from the guest" || err != nil {
			t.Errorf("interface %d again: got %q, %v", nic, got, err)
		}
	}
	taken := echoOnce(t)
	if err := g.ForwardFrom(ctx, taken, 0, "", 1); !errors.Is(err, ErrPortTaken) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := g.Forward(ctx, 2, "", 1); !errors.Is(err, ErrConfig) {
		t.Errorf("no such interface: %v", err)
	}
}

func testLink(t *testing.T, g *Guest) {
	carrier := func(want string) {
		t.Helper()
		err := g.Until(t.Context(), "carrier "+want, func() (bool, error) {
			s, err := g.ReadAttr(t.Context(), "/sys/class/net/eth1/carrier")
			return s == want, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, up := range []bool{false, true} {
		if err := g.SetLink(t.Context(), 1, up); err != nil {
			t.Fatal(err)
		}
		carrier(map[bool]string{true: "1", false: "0"}[up])
	}
	testNetwork(t, g)
}
