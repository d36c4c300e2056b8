package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

const greeting = `{"QMP": {"version": {}, "capabilities": []}}` + "\n"

// server answers each command with what answer returns, line by line.
type server struct {
	conn net.Conn
	done chan struct{}
}

type request struct {
	Execute   string
	Arguments map[string]any
	ID        uint64
}

func newServer(t *testing.T, answer func(request) string) (*server, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	s := &server{conn: ours, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer ours.Close()
		if _, err := ours.Write([]byte(greeting)); err != nil {
			return
		}
		in := bufio.NewScanner(ours)
		for in.Scan() {
			var r request
			if err := json.Unmarshal(in.Bytes(), &r); err != nil {
				t.Errorf("server got %q: %v", in.Text(), err)
				return
			}
			out := answer(r)
			if r.Execute == "qmp_capabilities" && out == "" {
				out = returns(r, "{}")
			}
			if _, err := ours.Write([]byte(out)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { ours.Close(); <-s.done })
	return s, theirs
}

func returns(r request, v string) string {
	return fmt.Sprintf(`{"return": %s, "id": %d}`+"\n", v, r.ID)
}

func newClient(t *testing.T, answer func(request) string) (*server, *Client) {
	t.Helper()
	s, conn := newServer(t, answer)
	c, err := NewClient(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

func TestExecute(t *testing.T) {
	_, c := newClient(t, func(r request) string {
		switch r.Execute {
		case "echo":
			b, _ := json.Marshal(r.Arguments)
			return returns(r, string(b))
		case "fail":
			return fmt.Sprintf(`{"error": {"class": "GenericError", "desc": "no way"}, "id": %d}`+"\n", r.ID)
		}
		return ""
	})
	var got struct{ A int }
	if err := c.Execute(t.Context(), "echo", map[string]any{"A": 42}, &got); err != nil || got.A != 42 {
		t.Errorf("got %+v, %v", got, err)
	}
	var qe *Error
	if err := c.Execute(t.Context(), "fail", nil, nil); !errors.As(err, &qe) || qe.Class != "GenericError" || qe.Desc != "no way" {
		t.Errorf("got %v", err)
	}
	var wrong []int
	if err := c.Execute(t.Context(), "echo", map[string]any{}, &wrong); err == nil {
		t.Error("a result of the wrong type is no error")
	}
}

func TestExecuteConcurrent(t *testing.T) {
	_, c := newClient(t, func(r request) string {
		if r.Execute == "n" {
			return `{"event": "NOISE", "data": {}}` + "\n" + returns(r, fmt.Sprint(r.Arguments["n"]))
		}
		return ""
	})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			var got int
			if err := c.Execute(t.Context(), "n", map[string]any{"n": n}, &got); err != nil || got != n {
				t.Errorf("got %d, %v, want %d", got, err, n)
			}
		})
	}
	wg.Wait()
}

func TestWaitEvent(t *testing.T) {
	_, c := newClient(t, func(r request) string {
		if r.Execute == "go" {
			return `{"event": "A", "data": {"n": 1}}` + "\n" + `{"event": "A", "data": {"n": 2}}` + "\n" +
				`{"event": "B"}` + "\n" + returns(r, "{}")
		}
		return ""
	})
	named := func(n string) func(Event) bool { return func(e Event) bool { return e.Name == n } }
	waiting := make(chan error, 1)
	go func() { // begins before there is an event
		e, err := c.WaitEvent(t.Context(), named("A"))
		if err == nil && string(e.Data) != `{"n": 1}` {
			err = fmt.Errorf("data %s", e.Data)
		}
		waiting <- err
	}()
	if err := c.Execute(t.Context(), "go", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if e, err := c.WaitEvent(t.Context(), named("B")); err != nil || e.Name != "B" {
		t.Errorf("got %+v, %v", e, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if e, err := c.WaitEvent(ctx, named("A")); !errors.Is(err, why) { // the second A is forgotten
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestClosedByServer(t *testing.T) {
	quit := make(chan struct{})
	s, c := newClient(t, func(r request) string {
		if r.Execute == "hang" {
			close(quit)
		}
		return ""
	})
	go func() { <-quit; s.conn.Close() }()
	if err := c.Execute(t.Context(), "hang", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := c.Execute(t.Context(), "more", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("afterwards: got %v", err)
	}
	if _, err := c.WaitEvent(t.Context(), func(Event) bool { return true }); !errors.Is(err, ErrClosed) {
		t.Errorf("event: got %v", err)
	}
}

func TestExecuteGivenUp(t *testing.T) {
	hanging := make(chan request, 1)
	_, c := newClient(t, func(r request) string {
		switch r.Execute {
		case "hang":
			hanging <- r
			return ""
		case "next": // the late answer to the first command comes first
			return returns(<-hanging, `"late"`) + returns(r, `"mine"`)
		}
		return ""
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Execute(ctx, "hang", nil, nil) }()
	r := <-hanging
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	hanging <- r
	var got string
	if err := c.Execute(t.Context(), "next", nil, &got); err != nil || got != "mine" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNewClientErrors(t *testing.T) {
	for name, first := range map[string]string{
		"no greeting": "", "not JSON": "hello\n", "no QMP": "{}\n", "cut": `{"QMP"`,
		"too long": `{"QMP": "` + strings.Repeat("x", maxMessage) + `"}` + "\n",
	} {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = ours.Write([]byte(first))
			ours.Close()
		}()
		if c, err := NewClient(t.Context(), theirs); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
		<-done
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	if _, err := NewClient(ctx, theirs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	_, c := newClient(t, func(r request) string {
		if r.Execute == "flood" {
			return strings.Repeat(`{"event": "E"}`+"\n", 2*maxEvents) + returns(r, "{}")
		}
		return ""
	})
	if err := c.Execute(t.Context(), "flood", nil, nil); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) != maxEvents {
		t.Errorf("%d events are kept", len(c.events))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"return": {}, "id": 1}` + "\n"))
	f.Add([]byte(`{"event": "X"}` + "\n" + `{"error": {}, "id": 1}` + "\n"))
	f.Add([]byte(`{"id": 18446744073709551616}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := ours.Write([]byte(greeting)); err == nil {
				_, _ = bufio.NewReader(ours).ReadString('\n')
				_, _ = ours.Write(in)
			}
			ours.Close()
		}()
		if c, err := NewClient(t.Context(), theirs); err == nil {
			_ = c.Execute(t.Context(), "x", nil, nil)
			c.Close()
		}
		<-done
	})
}
