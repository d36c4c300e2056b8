package vfiouser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/loss"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// client sends requests to a server and hands out its replies. Any goroutine may
// make requests; one of its own receives.
type client struct {
	path    string
	timeout time.Duration
	conn    *vfuser.Conn
	gone    loss.Watch
	done    chan struct{} // closed when nothing is received any more
	serve   func(m *vfuser.Message) (payload []byte, err error)

	sending sync.Mutex

	mu      sync.Mutex
	cause   error // why it ended
	nextID  uint16
	waiting map[uint16]chan reply // nil: the reply is expected, but not waited for any more
}

// reply is what came for a request. The descriptors belong to who takes it.
type reply struct {
	payload []byte
	fds     []int
	err     error
}

func (r *reply) closeFDs() {
	for _, fd := range r.fds {
		if fd >= 0 {
			_ = sys.Close(fd)
		}
	}
	r.fds = nil
}

// maxAbandoned bounds the requests whose replies nobody waits for.
const maxAbandoned = 1024

func dial(ctx context.Context, path string, cfg Config) (*client, error) {
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("vfiouser: %w", err)
	}
	c := &client{
		path: path, timeout: timeout, conn: vfuser.NewConn(nc.(*net.UnixConn), vfuser.MaxFDs),
		done: make(chan struct{}), waiting: map[uint16]chan reply{},
	}
	c.conn.SetPatience(timeout)
	return c, nil
}

// start begins to receive.
func (c *client) start() { go c.receive() }

// receive hands out replies until the connection ends.
func (c *client) receive() {
	defer close(c.done)
	for {
		m, err := c.conn.Receive()
		if err == nil {
			err = c.dispatch(&m)
			m.CloseFDs()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			c.fail(err)
			return
		}
	}
}

func (c *client) dispatch(m *vfuser.Message) error {
	if !m.IsReply() {
		return c.answer(m)
	}
	c.mu.Lock()
	w, ok := c.waiting[m.ID]
	delete(c.waiting, m.ID)
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: a reply to request %d, which was not made", ErrProtocol, m.ID)
	}
	if w == nil {
		return nil
	}
	r := reply{err: m.Err()}
	if r.err == nil {
		r.payload = slices.Clone(m.Payload)
		for i := range m.FDs {
			r.fds = append(r.fds, m.TakeFD(i))
		}
	}
	w <- r // has room for one
	return nil
}

// answer carries out a command of the server's.
func (c *client) answer(m *vfuser.Message) error {
	payload, err := c.serve(m)
	if !m.WantsReply() {
		return nil
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if err != nil {
		return c.conn.Send(m.ErrorReply(errnoOf(err)), nil, nil)
	}
	return c.conn.Send(m.Reply(), payload, nil)
}

// fail ends the connection for a reason. Calls after the first do nothing.
func (c *client) fail(err error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = err
	waiting := c.waiting
	c.waiting = map[uint16]chan reply{}
	c.mu.Unlock()
	_ = c.conn.Close()
	c.gone.Set()
	for _, w := range waiting {
		if w != nil {
			w <- reply{err: c.lost()}
		}
	}
}

// lost is what requests end with after fail.
func (c *client) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("%w: vfio-user %s: %w", pcie.ErrGone, c.path, c.cause)
}

// register makes room for a reply.
func (c *client) register() (id uint16, w chan reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return 0, nil, fmt.Errorf("%w: vfio-user %s: %w", pcie.ErrGone, c.path, c.cause)
	}
	if len(c.waiting) >= maxAbandoned {
		return 0, nil, fmt.Errorf("vfiouser: %s: %d requests are not answered", c.path, len(c.waiting))
	}
	for {
		c.nextID++
		if _, taken := c.waiting[c.nextID]; !taken {
			break
		}
	}
	w = make(chan reply, 1)
	c.waiting[c.nextID] = w
	return c.nextID, w, nil
}

// abandon gives up waiting. A reply that came meanwhile is dropped.
func (c *client) abandon(id uint16, w chan reply) {
	c.mu.Lock()
	if _, ok := c.waiting[id]; ok {
		c.waiting[id] = nil
	}
	c.mu.Unlock()
	select {
	case r := <-w:
		r.closeFDs()
	default:
	}
}

// request sends a command and waits for its reply. The descriptors stay the
// caller's. A context that ends leaves the connection as it is; a server that
// does not answer in time loses it.
func (c *client) request(ctx context.Context, cmd vfuser.Command, payload []byte, fds []int) (reply, error) {
	id, w, err := c.register()
	if err != nil {
		return reply{}, err
	}
	c.sending.Lock()
	err = c.conn.Send(vfuser.Header{ID: id, Command: cmd}, payload, fds)
	c.sending.Unlock()
	if err != nil {
		c.fail(sendError(err))
		c.abandon(id, w)
		return reply{}, c.lost()
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case r := <-w:
		if r.err != nil {
			return reply{}, fmt.Errorf("vfiouser: %s: %w", c.path, r.err)
		}
		return r, nil
	case <-ctx.Done():
		c.abandon(id, w)
		return reply{}, fmt.Errorf("vfiouser: %s: %v: %w", c.path, cmd, context.Cause(ctx))
	case <-timer.C:
		c.fail(fmt.Errorf("%w: %v took more than %v", ErrTimeout, cmd, c.timeout))
		c.abandon(id, w)
		return reply{}, c.lost()
	}
}

// sendError says that a server that does not read is one that does not answer.
func sendError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// parse is request for a reply with a payload that has to be understood, and no
// descriptors.
func parse[T any](ctx context.Context, c *client, cmd vfuser.Command, payload []byte, fds []int, f func([]byte) (T, error)) (T, error) {
	r, err := c.request(ctx, cmd, payload, fds)
	if err != nil {
		var none T
		return none, err
	}
	r.closeFDs()
	v, err := f(r.payload)
	if err != nil {
		err = c.broken(err)
	}
	return v, err
}

// broken ends the connection with a server that broke the protocol.
func (c *client) broken(err error) error {
	c.fail(fmt.Errorf("%w: %w", ErrProtocol, err))
	return c.lost()
}

// close ends the connection and waits for the end of receiving.
func (c *client) close() {
	c.gone.End()
	c.fail(net.ErrClosed)
	<-c.done
}
