package sys

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAgain(t *testing.T) {
	for _, c := range []struct{ in, want Errno }{
		{0, 0},
		{unix.EINTR, unix.EAGAIN},
		{unix.EAGAIN, unix.EAGAIN},
		{unix.EPIPE, unix.EPIPE},
	} {
		if got := again(c.in); got != c.want {
			t.Errorf("again(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

// The receiving calls, and the sending ones, behave alike.
var (
	receivers = map[string]func(fd int, b []byte) (int, Errno){
		"Recv":  Recv,
		"Readv": func(fd int, b []byte) (int, Errno) { return Readv(fd, split(b, 3)) },
	}
	senders = map[string]func(fd int, b []byte) (int, Errno){
		"Send":    Send,
		"Sendmsg": func(fd int, b []byte) (int, Errno) { return Sendmsg(fd, split(b, 3)) },
	}
)

// split spreads b over some pieces, one of them empty.
func split(b []byte, pieces int) []Iovec {
	iovs := make([]Iovec, pieces+1)
	for i := range pieces - 1 {
		n := len(b) / pieces
		iovs[i].Set(b[:n])
		b = b[n:]
	}
	iovs[pieces].Set(b)
	return iovs
}

func TestSendAndReceive(t *testing.T) {
	for sender, send := range senders {
		for receiver, recv := range receivers {
			t.Run(sender+receiver, func(t *testing.T) {
				client, server := pair(t)
				got := make([]byte, 100)
				if n, err := recv(server, got); n != 0 || err != unix.EAGAIN {
					t.Fatalf("with nothing sent: %d, %v", n, err)
				}
				want := []byte("each of the three pieces has some of this")
				if n, err := send(client, want); n != len(want) || err != 0 {
					t.Fatalf("sent %d, %v", n, err)
				}
				ready(t, server, unix.POLLIN)
				n, err := recv(server, got)
				if err != 0 || !bytes.Equal(got[:n], want) {
					t.Fatalf("received %q, %v", got[:n], err)
				}
				must(t, Shutdown(client, unix.SHUT_WR))
				ready(t, server, unix.POLLIN)
				if n, err := recv(server, got); n != 0 || err != 0 {
					t.Fatalf("at the end: %d, %v", n, err)
				}
			})
		}
	}
}

func TestSendUntilFull(t *testing.T) {
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			client, server := pair(t)
			block := make([]byte, 1<<16)
			sent := 0
			for {
				n, err := send(client, block)
				if err == unix.EAGAIN {
					break
				}
				if err != 0 || n == 0 {
					t.Fatalf("sent %d after %d: %v", n, sent, err)
				}
				sent += n
			}
			received := 0
			for received < sent {
				ready(t, server, unix.POLLIN)
				n, err := Recv(server, block)
				if err != 0 && err != unix.EAGAIN {
					t.Fatal(err)
				}
				received += n
			}
			ready(t, client, unix.POLLOUT)
			if n, err := send(client, block); n == 0 || err != 0 {
				t.Errorf("with room again: %d, %v", n, err)
			}
		})
	}
}

// A broken connection must be an error, and not end the process by SIGPIPE.
func TestSendToNobody(t *testing.T) {
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			client, _ := pair(t)
			must(t, Shutdown(client, unix.SHUT_WR))
			if n, err := send(client, []byte("x")); n != 0 || err != unix.EPIPE {
				t.Errorf("%d, %v; want EPIPE", n, err)
			}
		})
	}
}

func TestReset(t *testing.T) {
	for name, recv := range receivers {
		t.Run(name, func(t *testing.T) {
			l, addr := listener(t)
			client := tcpSocket(t)
			_ = Connect(client, addr) // in progress, or done
			ready(t, l, unix.POLLIN)
			server, _, e := Accept4(l)
			if e != 0 {
				t.Fatal(e)
			}
			must(t, SetLinger(server, 0))
			must(t, Close(server))
			ready(t, client, unix.POLLIN)
			if n, err := recv(client, make([]byte, 8)); n != 0 || err != unix.ECONNRESET {
				t.Errorf("%d, %v; want ECONNRESET", n, err)
			}
		})
	}
}

func TestBadDescriptor(t *testing.T) {
	b := []byte("x")
	for name, call := range receivers {
		if n, err := call(-1, b); n != 0 || err != unix.EBADF {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	for name, call := range senders {
		if n, err := call(-1, b); n != 0 || err != unix.EBADF {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	client, server := pair(t)
	event := eventFD(t)
	b := make([]byte, 64)
	iovs := split(b, 3)
	fds := []PollFd{{Fd: int32(event), Events: unix.POLLIN}}
	for name, call := range map[string]func(){
		"Recv":    func() { Recv(server, b) },
		"Readv":   func() { Readv(server, iovs) },
		"Send":    func() { Send(client, b[:1]) },
		"Sendmsg": func() { Sendmsg(client, iovs[:1]) },
		"Event":   func() { EventSignal(event); EventDrain(event) },
		"Ppoll":   func() { Ppoll(fds, 0) },
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkRecvEmpty(b *testing.B) {
	_, server := pair(b)
	buf := make([]byte, 64)
	for b.Loop() {
		Recv(server, buf)
	}
}

func BenchmarkSendRecv4K(b *testing.B) {
	client, server := pair(b)
	out, in := make([]byte, 4096), make([]byte, 8192)
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		Send(client, out)
		Recv(server, in)
	}
}
