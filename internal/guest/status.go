package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qpoll/qpoll/internal/guest/qmp"
)

// ErrGone is wrapped by the errors of a guest that has ended, whether by Close,
// by a panic, or because QEMU did.
var ErrGone = errors.New("guest has ended")

// consoleInErrors is how much of the console goes into an error or a test log,
// in bytes.
const consoleInErrors = 16 << 10

// Done returns a channel that is closed when QEMU has ended.
func (g *Guest) Done() <-chan struct{} { return g.proc.done }

// Err returns nil while the guest runs and after Close, and else why it ended,
// with the end of the console. It wraps ErrGone.
func (g *Guest) Err() error {
	select {
	case <-g.proc.done:
	default:
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil
	}
	return g.goneError()
}

func (g *Guest) goneError() error {
	why := "QEMU ended"
	if f := g.Faults(); len(f) > 0 {
		why = f[0]
	}
	return fmt.Errorf("guest: %s: %w: %s%s", g.cfg.Name, ErrGone, why, g.postMortem())
}

// postMortem tells what is known about a guest that is in trouble.
func (g *Guest) postMortem() string {
	var b strings.Builder
	if g.proc != nil {
		select {
		case <-g.proc.done:
			if g.proc.err != nil {
				fmt.Fprintf(&b, "\nqemu: %v", g.proc.err)
			}
		default:
		}
	}
	if s := g.stderr.String(); s != "" {
		fmt.Fprintf(&b, "\nstandard error of qemu:\n%s", s)
	}
	if s := g.consoleTail(); s != "" {
		fmt.Fprintf(&b, "\nconsole:\n%s", s)
	}
	return b.String()
}

func (g *Guest) consoleTail() string {
	s := g.Console()
	return s[max(0, len(s)-consoleInErrors):]
}

// Console returns what the guest has printed on its console, at most the last
// two MiB.
func (g *Guest) Console() string { return g.console.keep.String() }

// Faults returns the lines of the console in which the kernel complains about
// itself: panics, oopses, warnings with a stack trace, hung tasks.
func (g *Guest) Faults() []string { return g.console.Faults() }

// Release returns the release of the guest's kernel.
func (g *Guest) Release() string { return g.hello.Release }

// BootTime returns the guest's own measure of how long it took from the start
// of the kernel to the agent's answer, in seconds.
func (g *Guest) BootTime() string { return g.hello.Uptime }

// PID returns the process id of QEMU.
func (g *Guest) PID() int { return g.proc.cmd.Process.Pid }

// QMP returns the connection to QEMU's monitor. It is closed with the guest.
func (g *Guest) QMP() *qmp.Client { return g.qmp }

// explain turns the failure of a connection into what is behind it: the end of
// the context or of the guest. The connections of a guest that ends break a
// little before its process is gone.
func (g *Guest) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(5 * time.Second)
	defer t.Stop()
	select {
	case <-g.proc.done:
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.closing {
			return fmt.Errorf("guest: %s: %w", g.cfg.Name, ErrGone)
		}
		return g.goneError()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return fmt.Errorf("guest: %s: connection to the agent: %w", g.cfg.Name, err)
	}
}
