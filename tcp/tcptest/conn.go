package tcptest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// maxInCapsule bounds the in-capsule data that a Conn takes. Whether the
// controller allows so much is for the script to check.
const maxInCapsule = 1 << 20

// maxAside bounds the PDUs that are set aside while others are waited for.
const maxAside = 1 << 12

// Conn is the controller's end of a connection. Writing is safe from several
// goroutines, each call's bytes staying together; reading is for one.
type Conn struct {
	// Chunk cuts what is sent into pieces of this many bytes; 0 sends it as it
	// is. Pause is waited and AfterChunk, if not nil, called after each piece.
	Chunk      int
	Pause      time.Duration
	AfterChunk func()

	srv     *Server
	nc      *net.TCPConn
	index   int
	tb      testing.TB // fails this instead of the script
	dropped atomic.Bool
	gone    chan struct{} // closed when the script has ended
	done    chan struct{} // closed by Close and Reset
	once    sync.Once

	rd    *pdu.Reader
	aside []pdu.PDU // read already, not yet returned

	mu     sync.Mutex // of writes
	params pdu.Params
	icreq  pdu.ICReqFields
}

func newConn(s *Server, nc *net.TCPConn, index int) *Conn {
	c := &Conn{srv: s, nc: nc, index: index, gone: make(chan struct{}), done: make(chan struct{})}
	c.rd = pdu.NewReader(nc, pdu.NewConnectReceiver(pdu.Controller))
	c.rd.MaxPDU = s.cfg.MaxPDU
	return c
}

// Index returns how many connections were accepted before this one.
func (c *Conn) Index() int { return c.index }

// NetConn returns the connection itself.
func (c *Conn) NetConn() *net.TCPConn { return c.nc }

// ICReq returns what the host asked for in the handshake.
func (c *Conn) ICReq() pdu.ICReqFields { return c.icreq }

// Params returns what the handshake has settled.
func (c *Conn) Params() pdu.Params { return c.params }

// SetParams makes the connection one with these parameters, as Handshake does.
func (c *Conn) SetParams(p pdu.Params) {
	c.params = p
	c.rd.Receiver = pdu.NewReceiver(pdu.Controller, p, pdu.Limits{MaxICD: maxInCapsule})
}

// Next reads a PDU. The errors are those of pdu.Reader.Next; what was read
// stays valid.
func (c *Conn) Next() (pdu.PDU, error) {
	if len(c.aside) > 0 {
		p := c.aside[0]
		c.aside = c.aside[1:]
		return p, nil
	}
	return c.read()
}

func (c *Conn) read() (pdu.PDU, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.srv.cfg.Timeout))
	p, err := c.rd.Next()
	p.Header, p.Data = bytes.Clone(p.Header), bytes.Clone(p.Data)
	return p, err
}

// Check is a condition on a PDU that a script expects. It returns nil if the
// PDU fulfils it.
type Check func(p *pdu.PDU) error

// Expect reads a PDU, which has to be of type t and to pass all checks.
func (c *Conn) Expect(t pdu.Type, checks ...Check) pdu.PDU {
	if c.tb != nil {
		c.tb.Helper()
	}
	p, err := c.Next()
	if err != nil {
		c.Fail(fmt.Errorf("waiting for %v: %w", t, err))
	}
	if p.Type() != t {
		c.Fail(fmt.Errorf("got %v, want %v; header % x", p.Type(), t, p.Header))
	}
	for _, check := range checks {
		if err := check(&p); err != nil {
			c.Fail(fmt.Errorf("%v: %w; header % x", t, err, p.Header))
		}
	}
	return p
}

// ExpectCommand reads a command capsule, which has to be of opcode op and to
// pass all checks.
func (c *Conn) ExpectCommand(op nvme.Opcode, checks ...Check) *Request {
	if c.tb != nil {
		c.tb.Helper()
	}
	p := c.Expect(pdu.TypeCapsuleCmd, append([]Check{Opcode(op)}, checks...)...)
	return newRequest(c, &p)
}

// ExpectTermReq reads an H2CTermReq with the given status and information and
// returns it, and then waits for the end of the stream, which has to follow.
func (c *Conn) ExpectTermReq(fes pdu.FES, fei uint32) *pdu.PeerError {
	if c.tb != nil {
		c.tb.Helper()
	}
	p := c.Expect(pdu.TypeH2CTermReq)
	e := (*pdu.TermReq)(p.Header).Err(p.Data)
	if e.FES != fes || e.FEI != fei {
		c.Fail(fmt.Errorf("terminated with FES %#x, FEI %#x (%v); want %#x, %#x", uint16(e.FES), e.FEI, e, uint16(fes), fei))
	}
	c.ExpectEnd()
	return e
}

// ExpectEnd waits for the peer to close the connection. Nothing may come
// before.
func (c *Conn) ExpectEnd() {
	if c.tb != nil {
		c.tb.Helper()
	}
	p, err := c.Next()
	if err == nil {
		c.Fail(fmt.Errorf("got %v, want the end of the stream", p.Type()))
	}
	if !ended(err) {
		c.Fail(fmt.Errorf("waiting for the end of the stream: %w", err))
	}
}

// Drain discards what the peer sends until it closes the connection.
func (c *Conn) Drain() {
	buf := make([]byte, 64<<10)
	for {
		_ = c.nc.SetReadDeadline(time.Now().Add(c.srv.cfg.Timeout))
		if _, err := c.nc.Read(buf); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue // a test may be long; its end ends this
			}
			return
		}
	}
}

// Stall does nothing, not even read, until the script of another connection or
// the test closes this one, or the server is closed.
func (c *Conn) Stall() {
	select {
	case <-c.done:
	case <-c.srv.closed:
	}
}

// Delay waits, but not beyond the end of the server.
func (c *Conn) Delay(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.done:
	case <-c.srv.closed:
	}
}

// Close ends the connection in order: the peer reads what was sent, then the
// end of the stream. Nothing can be sent after it.
func (c *Conn) Close() {
	_ = c.nc.CloseWrite()
	c.once.Do(func() { close(c.done) })
}

// lingerTime is how long a connection that the script is done with waits for
// the peer to close it, too. Closing it at once would reset it, if anything is
// unread, and take from the peer what it has not read.
const lingerTime = 2 * time.Second

func (c *Conn) linger() {
	if c.nc.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, struct{ io.Reader }{c.nc})
	}
	c.nc.Close()
}

// CloseWrite closes the controller's sending side only.
func (c *Conn) CloseWrite() { _ = c.nc.CloseWrite() }

// Reset breaks the connection off: the peer gets a reset, and loses what it
// has not yet read.
func (c *Conn) Reset() {
	c.reset() // before the script can end, which closes in order
	c.once.Do(func() { close(c.done) })
}

func (c *Conn) reset() {
	_ = c.nc.SetLinger(0)
	c.nc.Close()
}

// Ended is closed when the script of the connection has ended.
func (c *Conn) Ended() <-chan struct{} { return c.gone }

// ended reports whether err means that the peer, or this end, is gone.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
