package sys

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// patient is far more than anything here takes: a test that gets there fails
// for another reason than a slow machine.
const patient = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closeAfter closes a descriptor at the end of the test.
func closeAfter(t testing.TB, fd int) int {
	t.Helper()
	t.Cleanup(func() {
		if err := Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

// tcpSocket returns a socket of the test's.
func tcpSocket(t testing.TB) int {
	t.Helper()
	fd, err := Socket(unix.AF_INET)
	must(t, err)
	return closeAfter(t, fd)
}

// listener returns a listening socket on loopback, and its address.
func listener(t testing.TB) (fd int, addr netip.AddrPort) {
	t.Helper()
	fd = tcpSocket(t)
	must(t, SetReuseAddr(fd, true))
	must(t, Bind(fd, loopback))
	must(t, Listen(fd, 8))
	addr, err := LocalAddr(fd)
	must(t, err)
	return fd, addr
}

// ready waits until a descriptor is ready for events.
func ready(t testing.TB, fd int, events int16) {
	t.Helper()
	fds := []PollFd{{Fd: int32(fd), Events: events}}
	for range 1000 {
		n, err := Ppoll(fds, patient)
		if err != 0 {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
	t.Fatalf("fd %d is not ready for %#x", fd, events)
}

// pair returns the two ends of a TCP connection.
func pair(t testing.TB) (client, server int) {
	t.Helper()
	l, addr := listener(t)
	client = tcpSocket(t)
	if err := Connect(client, addr); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		t.Fatal(err)
	}
	ready(t, l, unix.POLLIN)
	server, peer, e := Accept4(l)
	if e != 0 {
		t.Fatal(e)
	}
	closeAfter(t, server)
	local, err := LocalAddr(client)
	must(t, err)
	if peer != local {
		t.Fatalf("accepted %v, the client is %v", peer, local)
	}
	ready(t, client, unix.POLLOUT)
	must(t, SetNoDelay(client, true))
	must(t, SetNoDelay(server, true))
	return client, server
}
