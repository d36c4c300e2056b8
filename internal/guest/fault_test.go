//go:build guest

package guest

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/assets"
)

// start is Start for a guest that is expected to come up.
func start(t *testing.T, cfg Config) *Guest {
	t.Helper()
	cfg.Name = t.Name()
	g, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestPanic(t *testing.T) {
	r := &recorder{TB: t}
	g := Boot(r, Config{NICs: NoNIC, CPUs: 1})
	if f := g.Faults(); len(f) > 0 {
		t.Fatalf("faults after boot: %q", f)
	}
	waiting := startWaiting(t.Context(), t, g, "echo ready; sleep 1000")
	_, err := g.Run(t.Context(), "sh", "-c", "echo c > /proc/sysrq-trigger; sleep 1000")
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "sysrq") {
		t.Errorf("the command that panics: %v", err)
	}
	if err := waiting.Wait(); !errors.Is(err, ErrGone) {
		t.Errorf("another command: %v", err)
	}
	<-g.Done()
	if err := g.Err(); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("error of the guest: %v", err)
	}
	if f := g.Faults(); len(f) == 0 {
		t.Error("no fault was seen")
	}
	if err := g.WriteFile(t.Context(), "/tmp/x", "x"); !errors.Is(err, ErrGone) {
		t.Errorf("a request afterwards: %v", err)
	}
	if err := g.QMP().Execute(t.Context(), "query-status", nil, nil); err == nil {
		t.Error("QMP still answers")
	}
	r.end()
	if !r.failed || !strings.Contains(r.text.String(), "Kernel panic") {
		t.Errorf("the test that booted it has not failed: %q", r.text.String())
	}
}

func TestClose(t *testing.T) {
	g := start(t, Config{NICs: NoNIC, CPUs: 1})
	waiting := startWaiting(t.Context(), t, g, "echo ready; sleep 1000")
	// What the kernel prints is seen, with its level.
	g.Shell(t, "echo 'WARNING: CPU: 0 PID: 1 at test' > /dev/kmsg")
	err := g.Until(t.Context(), "fault", func() (bool, error) { return len(g.Faults()) == 1, nil })
	if err != nil {
		t.Error(err)
	}
	dir, pid := g.dir, g.PID()
	g.Close()
	g.Close()
	if err := waiting.Wait(); !errors.Is(err, ErrGone) {
		t.Errorf("a command in progress: %v", err)
	}
	if err := g.Err(); err != nil {
		t.Errorf("error after Close: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory: %v", err)
	}
	if running(pid) {
		t.Error("QEMU still runs")
	}
}

func TestStartErrors(t *testing.T) {
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		cfg  Config
		want string
		is   error
	}{
		{"no such device", t.Context(), Config{Devices: []string{"no-such-device"}}, "no-such-device", ErrGone},
		{"no such module", t.Context(), Config{Modules: []string{"no_such_module"}}, "no_such_module", nil},
		{"bad module parameter", t.Context(), Config{CPUs: 1, Modules: []string{"brd rd_nr=many"}}, "brd", syscall.EINVAL},
		{"no such file", t.Context(), Config{Files: map[string]string{"/x": "/no/such/file"}}, "/no/such/file", os.ErrNotExist},
		{"bad config", t.Context(), Config{CPUs: -1}, "CPUs", ErrConfig},
		{"deadline", short, Config{}, "deadline", context.DeadlineExceeded},
		{"boot time", t.Context(), Config{BootTimeout: time.Second / 2}, "did not boot", context.DeadlineExceeded},
	} {
		g, err := Start(c.ctx, c.cfg)
		if err == nil {
			g.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || (c.is != nil && !errors.Is(err, c.is)) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	t.Setenv(assets.CacheEnv, t.TempDir())
	if _, err := Start(t.Context(), Config{}); !errors.Is(err, assets.ErrMissing) {
		t.Errorf("no assets: %v", err)
	}
}

// end runs what is to be done after the test.
func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}
