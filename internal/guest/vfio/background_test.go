//go:build guest

package vfio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/qmp"
)

// patience is how long a test waits for what must happen. It is for a hang, not
// for a slow machine.
const patience = 2 * time.Minute

// background is a worker that runs while the test does something to its device.
type background struct {
	p      *guest.Process
	stdin  io.Closer
	lines  chan string
	ended  chan error
	mu     sync.Mutex
	stderr bytes.Buffer
}

// Write takes standard error.
func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stderr.Write(p)
}

func (b *background) problems() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stderr.String()
}

// start starts a worker.
func (m machine) start(t *testing.T, args ...string) *background {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &background{stdin: inW, lines: make(chan string, 100), ended: make(chan error, 1)}
	var err error
	b.p, err = m.Start(t.Context(), guest.Command{
		Argv: append([]string{workerPath}, args...), Stdin: inR, Stdout: outW, Stderr: b, Env: []string{"GOTRACEBACK=all"},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		err := b.p.Wait()
		outW.Close()
		b.ended <- err
	}()
	go func() {
		defer close(b.lines)
		for s := bufio.NewScanner(outR); s.Scan(); {
			b.lines <- s.Text()
		}
	}()
	return b
}

// hangs ends the test with what the worker was about.
func (b *background) hangs(t *testing.T, m machine, waiting string) {
	t.Helper()
	_ = b.p.Signal(syscall.SIGQUIT)
	select {
	case <-b.ended:
	case <-time.After(patience / 10):
	}
	t.Fatalf("the worker hangs, waiting for %s:\n%s\n%s", waiting, b.problems(), m.Console())
}

// expect waits for the next line that the worker prints.
func (b *background) expect(t *testing.T, m machine, want string) {
	t.Helper()
	select {
	case got := <-b.lines:
		if got != want {
			t.Fatalf("got %q, want %q: %s", got, want, b.problems())
		}
	case <-time.After(patience):
		b.hangs(t, m, want)
	}
}

// finish ends the worker's standard input and waits for its end.
func (b *background) finish(t *testing.T, m machine) {
	t.Helper()
	b.stdin.Close()
	select {
	case err := <-b.ended:
		if err != nil {
			t.Fatalf("%v: %s", err, b.problems())
		}
	case <-time.After(patience):
		b.hangs(t, m, "its end")
	}
}

// takeOut asks for a device to be taken out; the guest has to let go of it.
func (m machine) takeOut(t *testing.T, id string) {
	t.Helper()
	if err := m.QMP().Execute(t.Context(), "device_del", map[string]any{"id": id}, nil); err != nil {
		t.Fatal(err)
	}
}

// isOut waits until it is out.
func (m machine) isOut(t *testing.T, id string) {
	t.Helper()
	_, err := m.QMP().WaitEvent(t.Context(), func(e qmp.Event) bool {
		var d struct{ Device string }
		return e.Name == "DEVICE_DELETED" && json.Unmarshal(e.Data, &d) == nil && d.Device == id
	})
	if err != nil {
		t.Fatal(err)
	}
}

// putIn puts another controller into the slot, and waits until the kernel has it.
func (m machine) putIn(t *testing.T, id, drive, addr string) {
	t.Helper()
	err := m.QMP().Execute(t.Context(), "device_add", map[string]any{"driver": "nvme", "id": id, "serial": "first again", "bus": "rp0", "drive": drive}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.kernelHas(t, addr)
}

// kernelHas waits until the kernel's driver has the function and its namespace.
func (m machine) kernelHas(t *testing.T, addr string) {
	t.Helper()
	err := m.Until(t.Context(), "the drive of "+addr, func() (bool, error) {
		f, err := m.Glob(t.Context(), "/sys/bus/pci/devices/"+addr+"/nvme/nvme*/nvme*n1/size")
		return len(f) == 1, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
