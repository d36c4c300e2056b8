package pcietest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// servers are the listeners that a controller serves, and the connection there
// is.
type servers struct {
	mu     sync.Mutex
	wg     sync.WaitGroup
	closed bool
	open   []io.Closer
}

// sessionPatience is how long a driver may take for the first message, and for
// the rest of one that has begun.
const sessionPatience = 10 * time.Second

// ListenAndServe serves drivers that connect to a unix socket by the vfio-user
// protocol; see Serve. The socket is removed in the end. SPDK looks for the
// socket "cntrl" in the directory that it is given.
func (c *Controller) ListenAndServe(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("pcietest: %w", err)
	}
	return c.Serve(l)
}

// Serve serves drivers that connect to l, a listener of unix sockets, by the
// vfio-user protocol, one after the other: the next one waits until the one
// before has hung up. It starts the controller, returns nil once the controller
// was closed or removed, and closes l.
//
// The eventfds that a driver sends are made non-blocking, for the driver too.
// Mappings without a descriptor are known but cannot be accessed.
func (c *Controller) Serve(l net.Listener) error {
	if !c.srv.add(l) {
		return errors.Join(l.Close(), fmt.Errorf("pcietest: %w", pcie.ErrGone))
	}
	defer c.srv.remove(l)
	c.Start()
	for {
		conn, err := l.Accept()
		switch {
		case c.gone.Load() || errors.Is(err, net.ErrClosed):
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		case err != nil:
			return fmt.Errorf("pcietest: %w", err)
		}
		u, ok := conn.(*net.UnixConn)
		if !ok {
			return errors.Join(conn.Close(), bad("a listener of %s, not of unix sockets", conn.LocalAddr().Network()))
		}
		// What a driver does wrong ends its connection, no more.
		_ = c.ServeConn(u)
	}
}

// ServeConn serves one driver, until it hangs up, and closes the connection. It
// returns nil if the driver hung up between two messages. The controller is to
// be started, or stepped.
func (c *Controller) ServeConn(u *net.UnixConn) error {
	s := &session{c: c, conn: vfuser.NewConn(u, serverFDs)}
	defer s.conn.Close()
	if !c.srv.add(u) {
		return fmt.Errorf("pcietest: %w", pcie.ErrGone)
	}
	defer c.srv.remove(u)
	if err := c.attach(attachment{who: s, remote: true}); err != nil {
		return fmt.Errorf("pcietest: %w", err)
	}
	err := s.serve()
	return errors.Join(err, c.detach(s))
}

// serve answers messages until the connection ends.
func (s *session) serve() error {
	s.conn.SetPatience(sessionPatience)
	if err := s.conn.SetReadDeadline(time.Now().Add(sessionPatience)); err != nil {
		return err
	}
	if err := s.negotiate(); err != nil {
		return err
	}
	for {
		m, err := s.conn.Receive()
		switch {
		case err == io.EOF || s.c.gone.Load() && errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		if err := s.answer(&m); err != nil {
			return err
		}
	}
}

// add takes note of what is to be closed with the controller.
func (s *servers) add(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	s.open = append(s.open, c)
	return true
}

func (s *servers) remove(c io.Closer) {
	_ = c.Close() // again, perhaps
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o io.Closer) bool { return o == c })
	s.wg.Done()
}

// close ends all connections and listeners, for good.
func (s *servers) close() {
	s.mu.Lock()
	s.closed = true
	open := slices.Clone(s.open)
	s.mu.Unlock()
	for _, o := range open {
		_ = o.Close()
	}
}
