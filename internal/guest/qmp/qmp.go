// Package qmp is a client of the QEMU Machine Protocol, as described in
// docs/interop/qmp-spec of QEMU.
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// maxMessage bounds one message of the server, in bytes.
const maxMessage = 4 << 20

// maxEvents bounds the events kept for WaitEvent; the oldest go first.
const maxEvents = 1024

// ErrClosed is returned once the connection has ended.
var ErrClosed = errors.New("qmp: connection closed")

// Error is an error that QEMU answered with.
type Error struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *Error) Error() string { return fmt.Sprintf("qmp: %s: %s", e.Class, e.Desc) }

// Event is an asynchronous message of QEMU.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// Client is a connection to QEMU. It is safe for concurrent use.
type Client struct {
	conn net.Conn

	wmu sync.Mutex // serialises writes

	mu      sync.Mutex
	nextID  uint64
	pending map[uint64]chan message
	events  []Event
	changed chan struct{} // closed and replaced at every event
	err     error         // why the connection ended

	done chan struct{}
}

type message struct {
	ID     *uint64         `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	Event
}

// NewClient negotiates on a connection and then owns it. On error it closes it.
func NewClient(ctx context.Context, conn net.Conn) (*Client, error) {
	c := &Client{
		conn: conn, pending: map[uint64]chan message{},
		changed: make(chan struct{}), done: make(chan struct{}),
	}
	r := bufio.NewReader(conn)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	line, err := readLine(r)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	var greeting struct {
		QMP *json.RawMessage `json:"QMP"`
	}
	if err == nil {
		err = json.Unmarshal(line, &greeting)
	}
	if err == nil && greeting.QMP == nil {
		err = fmt.Errorf("qmp: bad greeting %.80q", line)
	}
	if err != nil {
		conn.Close()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	go c.read(r)
	if err := c.Execute(ctx, "qmp_capabilities", nil, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection. Commands that wait fail with ErrClosed.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// Execute runs a command. Args is marshalled to a JSON object, nil for none;
// what the command returns goes to result, unless that is nil.
func (c *Client) Execute(ctx context.Context, command string, args, result any) error {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	c.nextID++
	id := c.nextID
	reply := make(chan message, 1)
	c.pending[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	req := map[string]any{"execute": command, "id": id}
	if args != nil {
		req["arguments"] = args
	}
	if err := c.send(req); err != nil {
		return fmt.Errorf("qmp: %s: %w", command, err)
	}
	select {
	case m := <-reply:
		return finish(command, m, result)
	case <-c.done:
		return fmt.Errorf("qmp: %s: %w", command, c.failure())
	case <-ctx.Done():
		return fmt.Errorf("qmp: %s: %w", command, context.Cause(ctx))
	}
}

func finish(command string, m message, result any) error {
	if m.Error != nil {
		return fmt.Errorf("%s: %w", command, m.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Return, result); err != nil {
		return fmt.Errorf("qmp: %s: %w", command, err)
	}
	return nil
}

func (c *Client) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err = c.conn.Write(append(b, '\n'))
	return err
}

func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read dispatches messages until the connection ends.
func (c *Client) read(r *bufio.Reader) {
	defer close(c.done)
	for {
		line, err := readLine(r)
		var m message
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("%w: %w", ErrClosed, err)
			c.mu.Unlock()
			c.conn.Close()
			return
		}
		c.dispatch(m)
	}
}

func (c *Client) dispatch(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Name != "":
		if len(c.events) == maxEvents {
			c.events = c.events[1:]
		}
		c.events = append(c.events, m.Event)
		close(c.changed)
		c.changed = make(chan struct{})
	case m.ID != nil:
		// Nobody waits for the reply to a command that was given up.
		if reply := c.pending[*m.ID]; reply != nil {
			reply <- m
			delete(c.pending, *m.ID)
		}
	}
}

// WaitEvent returns the oldest kept event for which match is true, and forgets
// that one and all that came before. It waits for one if need be. Match must
// not call methods of c.
func (c *Client) WaitEvent(ctx context.Context, match func(Event) bool) (Event, error) {
	for {
		c.mu.Lock()
		for i, e := range c.events {
			if match(e) {
				c.events = c.events[i+1:]
				c.mu.Unlock()
				return e, nil
			}
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-c.done:
			return Event{}, c.failure()
		case <-ctx.Done():
			return Event{}, fmt.Errorf("qmp: waiting for an event: %w", context.Cause(ctx))
		}
	}
}

// readLine reads one message; QEMU sends each on a line of its own.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, fmt.Errorf("qmp: message longer than %d bytes", maxMessage)
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
