package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// signalled runs the command as main does, waits for a line with the given text
// on its output, sends this process a signal, and returns the rest of the
// output and the exit status. What it leaves behind, TestMain finds.
func signalled(t *testing.T, sig os.Signal, waitFor string, args ...string) (rest string, code int) {
	t.Helper()
	r, w := io.Pipe()
	status := make(chan int, 1)
	var errs strings.Builder
	go func() {
		c := interruptible(args, w, &errs)
		_ = w.Close()
		status <- c
	}()
	in := bufio.NewReader(r)
	for line := ""; !strings.Contains(line, waitFor); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("no %q in the output; exit status %d, %s", waitFor, <-status, &errs)
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(self.Signal(sig), self.Release()); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		t.Error(err)
	}
	code = <-status
	return string(b) + errs.String(), code
}

// Ctrl-C prints what there is.
func TestInterrupt(t *testing.T) {
	rest, code := signalled(t, syscall.SIGINT, "  mean ", small(t, "-warmup", "0", "-time", "1h")...)
	if code != exitInterrupted {
		t.Errorf("exit status %d, want %d", code, exitInterrupted)
	}
	for _, want := range []string{"interrupted after", "\nIOPS ", "latency", "max", "bench: interrupted\n"} {
		if !strings.Contains(rest, want) {
			t.Errorf("no %q in %s", want, rest)
		}
	}
}

func TestInterruptServing(t *testing.T) {
	rest, code := signalled(t, syscall.SIGTERM, "Ctrl-C", "target", "-listen", "127.0.0.1:0", "-adaptive", "-size", "1m")
	if code != exitOK || !strings.Contains(rest, "served 0 reads") {
		t.Errorf("exit status %d, %s", code, rest)
	}
}
