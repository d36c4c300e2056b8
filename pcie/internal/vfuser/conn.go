package vfuser

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
)

// MaxFDs is the most descriptors that a Conn takes in one message.
const MaxFDs = 16

// MaxPayload is the longest payload that a Conn takes or sends, in bytes: the
// data of one access, and room for what stands before it.
const MaxPayload = DefaultMaxData + 4096

// Errors of a Conn; they come back wrapped. After any error a Conn is of no
// more use.
var (
	ErrTooLong = errors.New("vfio-user: message too long")
	ErrFDs     = errors.New("vfio-user: too many descriptors with a message")
)

// Conn sends and receives whole messages over a unix socket. One goroutine may
// send while another one receives.
type Conn struct {
	u        *net.UnixConn
	maxFDs   int
	patience time.Duration
	oob      []byte
	buf      []byte
	out      []byte
}

// NewConn returns a Conn that takes up to maxFDs descriptors in a message (at
// most MaxFDs). The socket belongs to it.
func NewConn(u *net.UnixConn, maxFDs int) *Conn {
	maxFDs = max(0, min(maxFDs, MaxFDs))
	// One more, so that more than allowed is noticed rather than cut off.
	return &Conn{u: u, maxFDs: maxFDs, oob: make([]byte, sys.RightsSpace(maxFDs+1))}
}

// SetPatience bounds how long the rest of a message may take once its first
// byte is there, and how long sending one may take; 0 is no bound.
func (c *Conn) SetPatience(d time.Duration) { c.patience = d }

// SetReadDeadline bounds the wait for the next message, as that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.u.SetReadDeadline(t) }

// Close closes the socket. It may be called at any time, and makes Send and
// Receive return.
func (c *Conn) Close() error { return c.u.Close() }

// Message is a received message.
type Message struct {
	Header
	Payload []byte // valid until the next Receive
	FDs     []int  // belong to the receiver
}

// TakeFD takes the descriptor with an index, so that CloseFDs does not close
// it. It returns -1 if there is none.
func (m *Message) TakeFD(i int) int {
	if i < 0 || i >= len(m.FDs) {
		return -1
	}
	fd := m.FDs[i]
	m.FDs[i] = -1
	return fd
}

// CloseFDs closes all descriptors that were not taken.
func (m *Message) CloseFDs() {
	for _, fd := range m.FDs {
		if fd >= 0 {
			_ = sys.Close(fd)
		}
	}
	m.FDs = nil
}

// Send sends a message with descriptors, which stay the caller's. Size of the
// header is filled in.
func (c *Conn) Send(h Header, payload []byte, fds []int) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("%w: %v of %d bytes", ErrTooLong, h.Command, len(payload))
	}
	if len(fds) > MaxFDs {
		return fmt.Errorf("%w: %d to send with %v", ErrFDs, len(fds), h.Command)
	}
	if c.patience > 0 {
		if err := c.u.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
			return err
		}
	}
	h.Size = uint32(HeaderSize + len(payload))
	c.out = append(h.Append(c.out[:0]), payload...)
	n, _, err := c.u.WriteMsgUnix(c.out, sys.Rights(fds...), nil)
	if err == nil && n < len(c.out) {
		_, err = c.u.Write(c.out[n:])
	}
	if err != nil {
		return fmt.Errorf("vfio-user: sending %v: %w", h.Command, err)
	}
	return nil
}

// Receive waits for the next message. It returns io.EOF itself if the peer has
// closed the connection between two messages.
func (c *Conn) Receive() (m Message, err error) {
	var head [HeaderSize]byte
	if err = c.fill(head[:], &m.FDs, true); err == io.EOF {
		return Message{}, io.EOF
	}
	if err == nil {
		m.Header, err = ParseHeader(head[:])
	}
	if err == nil && m.Size > HeaderSize+MaxPayload {
		err = fmt.Errorf("%w: %v of %d bytes", ErrTooLong, m.Command, m.Size)
	}
	if err == nil {
		n := int(m.Size - HeaderSize)
		if cap(c.buf) < n {
			c.buf = make([]byte, n)
		}
		m.Payload = c.buf[:n]
		err = c.fill(m.Payload, &m.FDs, false)
	}
	if c.patience > 0 {
		// Whatever has become of the message: the next may take its time.
		err = errors.Join(err, c.u.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		m.CloseFDs()
		return Message{}, fmt.Errorf("vfio-user: receiving: %w", err)
	}
	return m, nil
}

// fill reads until b is full and adds the descriptors that come to fds. At the
// first byte of a message the clock for the rest of it starts.
func (c *Conn) fill(b []byte, fds *[]int, first bool) error {
	for got := 0; got < len(b); {
		n, oobn, flags, _, err := c.u.ReadMsgUnix(b[got:], c.oob)
		// Descriptors are there to be closed even where something is wrong.
		more, e := sys.ParseRights(c.oob[:oobn])
		*fds = append(*fds, more...)
		switch {
		case errors.Is(err, io.EOF) && got == 0 && first:
			return io.EOF
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case flags&syscall.MSG_CTRUNC != 0 || len(*fds) > c.maxFDs:
			return fmt.Errorf("%w: %d or more, at most %d", ErrFDs, len(*fds), c.maxFDs)
		case e != nil:
			return e
		}
		if got == 0 && first && c.patience > 0 {
			if err := c.u.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
				return err
			}
		}
		got += n
	}
	return nil
}
