package tcptest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Script plays the controller's end of one connection, on a goroutine of its
// own. The connection is closed when it returns.
//
// Methods of Conn that cannot do what they were called for end the script, as
// testing.T's FailNow ends a test: the failure is recorded, and deferred
// functions run, but nothing after the call.
type Script func(c *Conn)

// Sequence returns a script that plays the first of scripts to the first
// connection, the second to the second, and so on; the last one to all that
// follow. A nil script leaves its connections to Server.Accept.
func Sequence(scripts ...Script) Script {
	return func(c *Conn) {
		s := scripts[min(c.Index(), len(scripts)-1)]
		if s == nil {
			c.HandOver()
			return
		}
		s(c)
	}
}

// Config holds what can be chosen about a Server. The zero value works.
type Config struct {
	// Addr is the address to listen on. Zero: one of 127.0.0.0/8, at random, so
	// that a port which is given up for a while is not given to another server,
	// and no host that looks for another server ends up here.
	Addr netip.Addr
	// Timeout is how long a call waits for the peer before it fails. 0: 20 s.
	Timeout time.Duration
	// MaxConns bounds the connections that are open at a time; more are closed
	// at once. 0: 256.
	MaxConns int
	// MaxPDU bounds PLEN of what the peer sends, in bytes. 0: 16 MiB.
	MaxPDU uint32
}

// Server listens on a loopback address, on a port that the system chooses.
// Methods may be called from any goroutine.
type Server struct {
	cfg    Config
	script Script
	addr   netip.AddrPort
	handed chan *Conn // to Accept
	closed chan struct{}

	mu       sync.Mutex
	listener net.Listener // nil while not listening
	conns    []*Conn      // open
	accepted int
	errs     []error
	wg       sync.WaitGroup
}

// New starts a Server for a test. It fails the test if it cannot, or if a
// script fails, and is closed when the test ends. A nil script leaves all
// connections to Accept.
func New(tb testing.TB, script Script, cfg *Config) *Server {
	tb.Helper()
	s, err := Start(script, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Start starts a Server outside of a test. Close must be called in the end.
func Start(script Script, cfg *Config) (*Server, error) {
	if script == nil {
		script = Sequence(nil)
	}
	s := &Server{script: script, closed: make(chan struct{})}
	if cfg != nil {
		s.cfg = *cfg
	}
	if !s.cfg.Addr.IsValid() {
		s.cfg.Addr = randomLoopback()
	}
	if s.cfg.Timeout == 0 {
		s.cfg.Timeout = 20 * time.Second
	}
	if s.cfg.MaxConns == 0 {
		s.cfg.MaxConns = 256
	}
	s.handed = make(chan *Conn, s.cfg.MaxConns)
	s.addr = netip.AddrPortFrom(s.cfg.Addr, 0)
	if err := s.Listen(); err != nil {
		return nil, err
	}
	return s, nil
}

// randomLoopback returns an address of 127.0.0.0/8 that nobody uses by habit.
func randomLoopback() netip.Addr {
	n := rand.Uint32()
	return netip.AddrFrom4([4]byte{127, byte(n%254) + 1, byte(n >> 8), byte(n>>16%254) + 1})
}

// Listen begins to listen again, on the same port, after Unlisten.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.isClosed() {
		return nil
	}
	l, err := net.Listen("tcp", s.addr.String())
	if err != nil {
		return fmt.Errorf("tcptest: %w", err)
	}
	s.listener = l
	s.addr = l.Addr().(*net.TCPAddr).AddrPort()
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// Unlisten stops listening: the peer's attempts to connect are refused.
// Connections that there are stay.
func (s *Server) Unlisten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
}

// Drop resets all connections. Their scripts end when they next use them,
// which is not recorded as a failure.
func (s *Server) Drop() {
	for _, c := range s.open() {
		c.dropped.Store(true)
		c.reset()
	}
}

// Close stops listening, ends all connections, waits for their scripts and
// returns what went wrong in them.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.isClosed() {
		close(s.closed)
	}
	s.mu.Unlock()
	s.Unlisten()
	for _, c := range s.open() {
		c.nc.Close()
	}
	s.wg.Wait()
	return s.Err()
}

// Err returns what has gone wrong in scripts so far.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Address returns the address of a subsystem of that name behind the server,
// for nvme.Open.
func (s *Server) Address(subnqn string) string {
	family := "ipv4"
	if s.addr.Addr().Is6() {
		family = "ipv6"
	}
	return nvme.Address{
		Transport: "tcp", Family: family, Traddr: s.addr.Addr().String(),
		Service: fmt.Sprint(s.addr.Port()), SubNQN: subnqn,
	}.String()
}

// Accepted returns how many connections were accepted so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Accept returns the next connection that was left to it, by a nil script or by
// Conn.HandOver, to be played by the test itself: a call that fails ends the
// test. The connection is closed with the server, if it was not before.
func (s *Server) Accept(tb testing.TB) *Conn {
	tb.Helper()
	t := time.NewTimer(s.cfg.Timeout)
	defer t.Stop()
	select {
	case c := <-s.handed:
		c.tb = tb
		return c
	case <-t.C:
		tb.Fatalf("tcptest: no connection within %v", s.cfg.Timeout)
	case <-s.closed:
		tb.Fatal("tcptest: server closed")
	}
	return nil
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *Server) open() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if c := s.admit(nc.(*net.TCPConn)); c == nil {
			nc.Close()
		}
	}
}

// admit starts the script of a connection, or returns nil.
func (s *Server) admit(nc *net.TCPConn) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() || len(s.conns) >= s.cfg.MaxConns {
		return nil
	}
	c := newConn(s, nc, s.accepted)
	s.accepted++
	s.conns = append(s.conns, c)
	s.wg.Go(func() { s.play(c) })
	return c
}

// play runs the script. It is in a goroutine of its own because a failure ends
// that.
func (s *Server) play(c *Conn) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.script(c)
	}()
	<-ended
	c.linger()
	s.mu.Lock()
	s.conns = slices.DeleteFunc(s.conns, func(o *Conn) bool { return o == c })
	s.mu.Unlock()
	close(c.gone)
}

// failed records a failure, unless it is due to the end of the server.
func (s *Server) failed(c *Conn, err error) {
	if s.isClosed() || c.dropped.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs) < 16 {
		s.errs = append(s.errs, fmt.Errorf("tcptest: connection %d: %w", c.index, err))
	}
}

// Fail records a failure and ends the script.
func (c *Conn) Fail(err error) {
	if c.tb != nil {
		c.tb.Helper()
		c.tb.Fatalf("tcptest: connection %d: %v", c.index, err)
	}
	c.srv.failed(c, err)
	runtime.Goexit()
}

// HandOver leaves the connection to Server.Accept, and with it to the test's own
// goroutine, and returns when that has closed it, or the server is closed.
func (c *Conn) HandOver() {
	select {
	case c.srv.handed <- c:
	default:
		return // nobody accepts
	}
	select {
	case <-c.done:
	case <-c.srv.closed:
	}
}
