package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/qpoll/qpoll/internal/guest/assets"
	"github.com/qpoll/qpoll/internal/guest/kmod"
	"github.com/qpoll/qpoll/internal/guest/qmp"
	"github.com/qpoll/qpoll/internal/guest/wire"
)

// tempPrefix starts the names of temporary directories. It has the process id, so
// that what is left behind can be told from what others use.
var tempPrefix = fmt.Sprintf("qpoll-guest-%d-", os.Getpid())

// Guest is a running machine. Its methods are safe for concurrent use.
type Guest struct {
	cfg     Config
	dir     string
	set     *assets.Set
	mods    *kmod.Index
	proc    *process
	console *console
	stderr  *tail
	sess    *yamux.Session
	qmp     *qmp.Client
	hello   wire.Hello

	mu      sync.Mutex
	closing bool
	loaded  map[string]bool // modules that are in the kernel

	closed sync.Once
}

// Boot starts a guest for a test and ends it with the test. It fails the test
// when the guest does not come up, when it has panicked by the end, or when its
// kernel has complained (see Config.AllowFaults). The console goes to the log
// of a test that has failed.
func Boot(t testing.TB, cfg Config) *Guest {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = t.Name()
	}
	g, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.CloseWith(t)
	return g
}

// CloseWith closes the guest with the test and then judges it, as Boot says.
func (g *Guest) CloseWith(t testing.TB) {
	t.Cleanup(func() {
		gone := g.Err()
		g.Close()
		report(t, &g.cfg, gone, g.Faults(), g.consoleTail())
	})
}

// report fails the test for a guest that has ended or complained.
func report(t testing.TB, c *Config, gone error, faults []string, console string) {
	if gone != nil {
		t.Error(gone) // has the console
		return
	}
	if len(faults) > 0 && !c.AllowFaults {
		t.Errorf("guest: the kernel of %s complained:\n%s", c.Name, strings.Join(faults, "\n"))
	}
	if t.Failed() {
		t.Logf("console of %s:\n%s", c.Name, console)
	}
}

// Start starts a guest and returns when its agent answers. The guest lives until
// Close, or until this process ends, not until ctx does.
func Start(ctx context.Context, cfg Config) (*Guest, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.BootTimeout,
		fmt.Errorf("guest: %s did not boot in %v: %w", cfg.Name, cfg.BootTimeout, context.DeadlineExceeded))
	defer cancel()
	g := &Guest{cfg: cfg, console: newConsole(cfg.Console), stderr: &tail{max: 16 << 10}, loaded: map[string]bool{}}
	if err := g.start(ctx); err != nil {
		if !errors.Is(err, ErrGone) {
			err = fmt.Errorf("guest: %s: %w%s", cfg.Name, err, g.postMortem())
		}
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *Guest) start(ctx context.Context) error {
	var err error
	if g.set, err = assets.Load(); err != nil {
		return err
	}
	if g.mods, err = kmod.Load(os.DirFS(g.set.Modules())); err != nil {
		return err
	}
	agent, err := agentBinary()
	if err != nil {
		return err
	}
	// The path of a Unix socket is limited to 107 bytes, so not below the
	// directory of the test, which is named after it.
	if g.dir, err = os.MkdirTemp("", tempPrefix); err != nil {
		return err
	}
	if err := writeImage(filepath.Join(g.dir, initrdFile), &g.cfg, g.set, g.mods, agent); err != nil {
		return err
	}
	for _, d := range g.cfg.Drives {
		if err := makeDrive(drivePath(g.dir, d), int64(d.MiB)<<20); err != nil {
			return err
		}
	}
	return g.launch(ctx)
}

// launch starts QEMU and connects to the agent and to QMP.
func (g *Guest) launch(ctx context.Context) error {
	agentL, err := net.Listen("unix", filepath.Join(g.dir, agentFile))
	if err != nil {
		return err
	}
	defer agentL.Close()
	qmpL, err := net.Listen("unix", filepath.Join(g.dir, qmpFile))
	if err != nil {
		return err
	}
	defer qmpL.Close()
	cmd := exec.Command(Binary, qemuArgs(&g.cfg, g.set.Kernel(), g.dir)...)
	cmd.Stdout, cmd.Stderr = g.console, g.stderr
	if g.proc, err = startProcess(cmd); err != nil {
		return fmt.Errorf("%w (to install it, run %s)", err, assets.Command)
	}
	agentConn, err := g.accept(ctx, agentL)
	if err != nil {
		return err
	}
	if g.sess, err = yamux.Client(agentConn, wire.SessionConfig()); err != nil {
		agentConn.Close()
		return err
	}
	qmpConn, err := g.accept(ctx, qmpL)
	if err != nil {
		return err
	}
	if g.qmp, err = qmp.NewClient(ctx, qmpConn); err != nil {
		return g.explain(ctx, err)
	}
	return g.greet(ctx)
}

// accept waits for QEMU to connect, unless it ends first.
func (g *Guest) accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		select {
		case <-ctx.Done():
		case <-g.proc.done:
		case <-quit:
			return
		}
		l.Close()
	}()
	c, err := l.Accept()
	if err != nil {
		return nil, g.explain(ctx, err)
	}
	return c, nil
}

// greet waits for the agent.
func (g *Guest) greet(ctx context.Context) error {
	res, err := g.call(ctx, &wire.Request{Op: wire.OpHello})
	if err != nil {
		return err
	}
	if res.Hello == nil {
		return errors.New("the agent's greeting is empty")
	}
	g.hello = *res.Hello
	for _, m := range g.hello.Modules {
		g.loaded[m] = true
	}
	return nil
}

func makeDrive(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// Close ends the guest at once and removes its files. What is in progress fails
// with ErrGone. It may be called more than once.
func (g *Guest) Close() {
	g.closed.Do(func() {
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		if g.proc != nil {
			g.proc.kill()
		}
		if g.sess != nil {
			g.sess.Close()
		}
		if g.qmp != nil {
			g.qmp.Close()
		}
		if g.dir != "" {
			os.RemoveAll(g.dir)
		}
	})
}
