//go:build guest

package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestGuest boots one guest and tries all that it offers.
func TestGuest(t *testing.T) {
	extra := filepath.Join(t.TempDir(), "hello.sh")
	if err := os.WriteFile(extra, []byte("#!/bin/sh\necho hello from a file\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g := Boot(t, Config{Modules: []string{"null_blk nr_devices=0"}, Files: map[string]string{"/opt/hello": extra}, NICs: 2})
	t.Logf("kernel %s, up after %s s in the guest, %v outside", g.Release(), g.BootTime(), time.Since(began))
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Guest)
	}{
		{"Run", testRun}, {"ExitCode", testExitCode}, {"Binary", testBinary}, {"Stdin", testStdin},
		{"Signal", testSignal}, {"Cancel", testCancel}, {"Held", testHeld}, {"Concurrent", testConcurrent},
		{"Files", testFiles}, {"Upload", testUpload}, {"Modules", testModules}, {"Network", testNetwork},
		{"Forward", testForward}, {"Link", testLink}, {"StaticProgram", testStaticProgram},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, g) })
	}
}

func testRun(t *testing.T, g *Guest) {
	if got := g.Shell(t, "/opt/hello; uname -r; cat /proc/sys/kernel/hostname"); got != "hello from a file\n"+g.Release()+"\nguest" {
		t.Errorf("got %q", got)
	}
	res, err := g.RunCommand(t.Context(), Command{
		Argv: []string{"sh", "-c", "echo $COLOUR; pwd; echo problem >&2"}, Env: []string{"COLOUR=blue"}, Dir: "/proc",
	})
	if err != nil || string(res.Stdout) != "blue\n/proc\n" || string(res.Stderr) != "problem\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := g.Run(t.Context(), "no-such-command"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a command that does not exist: %v", err)
	}
}

func testExitCode(t *testing.T, g *Guest) {
	res, err := g.Run(t.Context(), "sh", "-c", "echo out; echo sorry >&2; exit 7")
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || exit.Signal != 0 || string(exit.Stderr) != "sorry\n" {
		t.Fatalf("got %v", err)
	}
	if string(res.Stdout) != "out\n" {
		t.Errorf("output %q", res.Stdout)
	}
}

// pattern is n bytes in which every value occurs, and no period of a power of two.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	return b
}

func testBinary(t *testing.T, g *Guest) {
	want := pattern(3<<20 + 11)
	res, err := g.RunCommand(t.Context(), Command{Argv: []string{"cat"}, Stdin: bytes.NewReader(want)})
	if err != nil || !bytes.Equal(res.Stdout, want) {
		t.Errorf("%d bytes of %d came back, %v", len(res.Stdout), len(want), err)
	}
}

func testStdin(t *testing.T, g *Guest) {
	// A command that does not read all of its input.
	res, err := g.RunCommand(t.Context(), Command{Argv: []string{"head", "-c", "5"}, Stdin: bytes.NewReader(pattern(1 << 20))})
	if err != nil || len(res.Stdout) != 5 {
		t.Errorf("got %d bytes, %v", len(res.Stdout), err)
	}
	// No input is empty input.
	if res, err := g.Run(t.Context(), "cat"); err != nil || len(res.Stdout) != 0 {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
	// A dialogue with a command that goes on.
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p, err := g.Start(t.Context(), Command{Argv: []string{"sh", "-c", "while read x; do echo got $x; done"}, Stdin: inR, Stdout: outW})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	for _, w := range []string{"one", "two"} {
		if _, err := io.WriteString(inW, w+"\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("got \n")+len(w))
		if _, err := io.ReadFull(outR, got); err != nil || string(got) != "got "+w+"\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// startWaiting starts a script that prints one line and then does not end.
func startWaiting(ctx context.Context, t *testing.T, g *Guest, script string) *Process {
	t.Helper()
	started := make(chan struct{})
	p, err := g.Start(ctx, Command{Argv: []string{"sh", "-c", script}, Stdout: closeOnWrite{new(sync.Once), started}})
	if err != nil {
		t.Fatal(err)
	}
	go p.Wait() // passes the output on
	<-started
	return p
}

type closeOnWrite struct {
	once *sync.Once
	ch   chan struct{}
}

func (c closeOnWrite) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.ch) })
	return len(b), nil
}

func testSignal(t *testing.T, g *Guest) {
	p := startWaiting(t.Context(), t, g, "trap 'exit 3' USR1; echo ready; while :; do sleep 0.05; done")
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var exit *ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("trapped signal: %v", err)
	}
	p = startWaiting(t.Context(), t, g, "echo ready; sleep 1000")
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != -1 || exit.Signal != syscall.SIGKILL {
		t.Errorf("killed: %v", err)
	}
}

func testCancel(t *testing.T, g *Guest) {
	why := errors.New("the test has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := startWaiting(ctx, t, g, "echo ready; sleep 4242 & sleep 4242")
	cancel(why)
	if err := p.Wait(); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	// The whole process group goes.
	err := g.Until(t.Context(), "end of the processes", func() (bool, error) {
		res, err := g.Run(t.Context(), "ps", "-o", "args")
		return err == nil && !strings.Contains(string(res.Stdout), "sleep 4242"), err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := g.Run(ctx, "true"); !errors.Is(err, why) {
		t.Errorf("a request after that: %v", err)
	}
}

func testHeld(t *testing.T, g *Guest) {
	p := startWaiting(t.Context(), t, g, "echo ready; sleep 4343 & exit 0")
	if err := p.Wait(); !errors.Is(err, ErrOutputHeld) {
		t.Errorf("got %v", err)
	}
	g.Shell(t, "kill $(ps -o pid,args | awk '/[s]leep 4343/{print $1}')")
}

func testConcurrent(t *testing.T, g *Guest) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			n := (i + 1) * 40000
			res, err := g.RunCommand(t.Context(), Command{Argv: []string{"sh", "-c", "cat; exit " + strconv.Itoa(i)}, Stdin: bytes.NewReader(pattern(n))})
			var exit *ExitError
			if (i > 0 && (!errors.As(err, &exit) || exit.Code != i)) || (i == 0 && err != nil) {
				t.Errorf("command %d: %v", i, err)
			} else if !bytes.Equal(res.Stdout, pattern(n)) {
				t.Errorf("command %d: wrong output", i)
			}
		})
	}
	wg.Wait()
}

func testStaticProgram(t *testing.T, g *Guest) {
	test := BuildTest(t, "github.com/qpoll/qpoll/internal/guest/wire")
	if err := g.UploadFile(t.Context(), test, "/opt/wire.test"); err != nil {
		t.Fatal(err)
	}
	if got := g.Shell(t, "/opt/wire.test -test.v"); !strings.HasSuffix(got, "PASS") || !strings.Contains(got, "--- PASS: ") {
		t.Errorf("got %q", got)
	}
}
