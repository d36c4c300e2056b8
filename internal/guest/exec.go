package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/wire"
)

// MaxOutput bounds what Run collects of each of standard output and standard
// error, in bytes.
const MaxOutput = 64 << 20

// ErrOutputHeld is returned when some other process kept the output of a
// command open after the command had ended, so that output may be missing. Let
// background processes write elsewhere, or use Start for them.
var ErrOutputHeld = errors.New("guest: output still open after the command has ended")

// ErrTooMuchOutput is returned by Run for output beyond MaxOutput.
var ErrTooMuchOutput = errors.New("guest: too much output")

// Command is a program to run in the guest. Without a slash, its name is looked
// up in /bin, where all of busybox is.
type Command struct {
	Argv   []string
	Env    []string // added to the environment, as "name=value"
	Dir    string
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: discarded
	Stderr io.Writer // nil: discarded; not called at the same time as Stdout
}

// Result is what a command printed.
type Result struct {
	Stdout, Stderr []byte
}

// ExitError tells that a command ran and ended with other than exit code 0.
type ExitError struct {
	Argv   []string
	Code   int            // exit code; -1 when a signal ended it
	Signal syscall.Signal // the signal that ended it, or 0
	Stderr []byte         // from Run: its standard error
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("guest: %q: exit code %d", e.Argv, e.Code)
	if e.Signal != 0 {
		s = fmt.Sprintf("guest: %q: signal %v", e.Argv, e.Signal)
	}
	if len(e.Stderr) > 0 {
		s += ": " + strings.TrimSpace(string(e.Stderr[max(0, len(e.Stderr)-4096):]))
	}
	return s
}

// Process is a command that runs.
type Process struct {
	s     *stream
	argv  []string
	once  sync.Once
	err   error
	stdin chan struct{} // closed when the copying of standard input has ended
	out   Command
}

// Start starts a command. When ctx ends, the command and its process group are
// killed. Wait must be called.
//
// A Stdin that blocks in Read keeps a goroutine until it returns, even after the
// command has ended.
func (g *Guest) Start(ctx context.Context, c Command) (*Process, error) {
	s, err := g.open(ctx, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{Argv: c.Argv, Env: c.Env, Dir: c.Dir}})
	if err != nil {
		return nil, err
	}
	p := &Process{s: s, argv: c.Argv, out: c, stdin: make(chan struct{})}
	if c.Stdin == nil {
		close(p.stdin)
		if err := s.send(wire.KindEOF, nil); err != nil {
			s.close()
			return nil, g.explain(ctx, err)
		}
		return p, nil
	}
	go p.copyStdin(c.Stdin)
	return p, nil
}

// copyStdin ends early, without an error, when the command does not want more.
func (p *Process) copyStdin(r io.Reader) {
	defer close(p.stdin)
	buf := make([]byte, wire.MaxData)
	for {
		n, err := r.Read(buf)
		if n > 0 && p.s.send(wire.KindData, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = p.s.send(wire.KindEOF, nil)
			return
		}
	}
}

// Signal sends a signal to the process group of the command.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.s.send(wire.KindSignal, []byte{byte(sig)}); err != nil {
		return p.s.g.explain(p.s.ctx, err)
	}
	return nil
}

// Wait waits for the command to end and passes on its output meanwhile; a
// command that prints a lot stops until Wait is called. The error is an
// *ExitError for a command that ended badly. Further calls return the same.
func (p *Process) Wait() error {
	p.once.Do(func() {
		p.err = p.wait()
		p.s.close()
	})
	return p.err
}

func (p *Process) wait() error {
	res, err := p.s.result(sink(p.out.Stdout), sink(p.out.Stderr))
	if err != nil {
		return err
	}
	if err := res.Err.Unpack(); err != nil {
		return err
	}
	switch x := res.Exit; {
	case x == nil:
		return errors.New("guest: the agent's answer has no exit code")
	case x.Code != 0:
		return &ExitError{Argv: p.argv, Code: x.Code, Signal: syscall.Signal(x.Signal)}
	case x.Held:
		return fmt.Errorf("%q: %w", p.argv, ErrOutputHeld)
	}
	return nil
}

func sink(w io.Writer) func([]byte) error {
	return func(b []byte) error {
		if w == nil {
			return nil
		}
		_, err := w.Write(b)
		return err
	}
}

// bounded collects output.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxOutput {
		return 0, ErrTooMuchOutput
	}
	return b.Buffer.Write(p)
}

// Run runs a command to its end and returns its output, which is complete to
// the byte. The error is an *ExitError for a command that ended badly; the
// result is there all the same.
func (g *Guest) Run(ctx context.Context, argv ...string) (*Result, error) {
	return g.RunCommand(ctx, Command{Argv: argv})
}

// RunCommand is Run for a Command; its Stdout and Stderr are not used.
func (g *Guest) RunCommand(ctx context.Context, c Command) (*Result, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	var out, errOut bounded
	c.Stdout, c.Stderr = &out, &errOut
	p, err := g.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	err = p.Wait()
	res := &Result{Stdout: out.Bytes(), Stderr: errOut.Bytes()}
	var exit *ExitError
	if errors.As(err, &exit) {
		exit.Stderr = res.Stderr
	}
	return res, err
}

// Shell runs a script with busybox's shell, which stops at the first command
// that fails, and returns the standard output without white space at its end.
// It fails the test when the script fails.
func (g *Guest) Shell(t testing.TB, script string) string {
	t.Helper()
	res, err := g.Run(t.Context(), "sh", "-euc", script)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(res.Stdout), " \t\r\n")
}
