package vfuser

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// sockets returns two connected unix sockets.
func sockets(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return connect(t, l)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func connect(t testing.TB, l net.Listener) (a, b *net.UnixConn) {
	t.Helper()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.UnixConn), s.(*net.UnixConn)
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestConn(t *testing.T) {
	a, b := sockets(t)
	c, s := NewConn(a, MaxFDs), NewConn(b, MaxFDs)
	r, w := pipe(t)
	payload := bytes.Repeat([]byte{1, 2, 3}, MaxPayload/3)
	sent := make(chan error, 1)
	go func() {
		err := c.Send(Header{ID: 3, Command: CmdDMAMap}, []byte("mapping"), []int{int(w.Fd()), int(r.Fd())})
		if err == nil {
			err = c.Send(Header{ID: 4, Command: CmdRegionWrite}, payload, nil)
		}
		sent <- err
	}()
	m, err := s.Receive()
	if err != nil || m.ID != 3 || m.Command != CmdDMAMap || string(m.Payload) != "mapping" || len(m.FDs) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	fd := m.TakeFD(0)
	if m.TakeFD(0) != -1 || m.TakeFD(2) != -1 || m.TakeFD(-1) != -1 {
		t.Error("a descriptor was taken that is not there")
	}
	m.CloseFDs()
	if e := sys.EventSignal(fd); e != 0 {
		t.Fatal(e)
	}
	if err := sys.Close(fd); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 9)); n != 8 || err != nil {
		t.Errorf("through the descriptor: %d bytes, %v", n, err)
	}
	if m, err = s.Receive(); err != nil || m.ID != 4 || !bytes.Equal(m.Payload, payload) || len(m.FDs) != 0 {
		t.Fatalf("id %d, %d bytes, %v", m.ID, len(m.Payload), err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := s.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestConnLimits(t *testing.T) {
	a, b := sockets(t)
	c, s := NewConn(a, 1), NewConn(b, 1)
	if err := c.Send(Header{}, make([]byte, MaxPayload+1), nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("too long to send: %v", err)
	}
	if err := c.Send(Header{}, nil, make([]int, MaxFDs+1)); !errors.Is(err, ErrFDs) {
		t.Errorf("too many descriptors to send: %v", err)
	}
	_, w := pipe(t)
	fds := []int{int(w.Fd()), int(w.Fd()), int(w.Fd()), int(w.Fd()), int(w.Fd())}
	if err := c.Send(Header{}, []byte{1}, fds); err != nil {
		t.Fatal(err)
	}
	// testutil sees it if any of them stays open.
	if _, err := s.Receive(); !errors.Is(err, ErrFDs) {
		t.Errorf("too many descriptors: %v", err)
	}
}

func TestConnHostile(t *testing.T) {
	long := Header{Command: CmdRegionWrite, Size: HeaderSize + MaxPayload + 1}
	for _, c := range []struct {
		name string
		send []byte
		want error
	}{
		{"too long", long.Append(nil), ErrTooLong},
		{"below the header", Header{Size: 3}.Append(nil), &FormatError{}},
		{"cut off in the header", make([]byte, 7), io.ErrUnexpectedEOF},
		{"cut off in the payload", Header{Size: 20}.Append(nil), io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := sockets(t)
			s := NewConn(b, 1)
			if _, err := a.Write(c.send); err != nil {
				t.Fatal(err)
			}
			a.Close()
			_, err := s.Receive()
			var e *FormatError
			if !errors.Is(err, c.want) && !(errors.As(c.want, &e) && errors.As(err, &e)) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestConnPatience(t *testing.T) {
	a, b := sockets(t)
	s := NewConn(b, 1)
	s.SetPatience(10 * time.Millisecond)
	if _, err := a.Write([]byte{0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a message that does not end: %v", err)
	}
}

func TestConnClose(t *testing.T) {
	_, b := sockets(t)
	s := NewConn(b, 1)
	done := make(chan error)
	go func() {
		_, err := s.Receive()
		done <- err
	}()
	s.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want %v", err, net.ErrClosed)
	}
}

// FuzzReceive feeds a stream of bytes.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{})
	var all []byte
	for _, g := range golden {
		p := unhex(f, g.hex)
		all = append(all, Header{Command: CmdDMAMap, Size: uint32(HeaderSize + len(p))}.Append(nil)...)
		all = append(all, p...)
	}
	f.Add(all)
	l := listen(f)
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return // more than the socket holds
		}
		x, y := connect(t, l)
		if _, err := x.Write(b); err != nil {
			t.Fatal(err)
		}
		x.Close()
		s := NewConn(y, 1)
		for left := len(b); ; {
			m, err := s.Receive()
			if err != nil {
				return
			}
			if left -= int(m.Size); left < 0 || len(m.Payload) != int(m.Size)-HeaderSize {
				t.Fatalf("a message of %d bytes of %d", m.Size, len(b))
			}
		}
	})
}
