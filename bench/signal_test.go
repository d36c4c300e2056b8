package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// command runs the test binary as bench, waits for a line with the given text
// on its output, sends it a signal, and returns the rest and the exit status.
func command(t *testing.T, sig os.Signal, waitFor string, args ...string) (rest string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for line := ""; !strings.Contains(line, waitFor); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Errorf("no %q in the output", waitFor)
			break
		}
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// Ctrl-C prints what there is.
func TestInterrupt(t *testing.T) {
	rest, code := command(t, syscall.SIGINT, "1 s ", small(t, "-warmup", "0", "-time", "1h")...)
	if code != exitInterrupted {
		t.Errorf("exit status %d, want %d", code, exitInterrupted)
	}
	for _, want := range []string{"interrupted after", "\nIOPS ", "latency", "max"} {
		if !strings.Contains(rest, want) {
			t.Errorf("no %q in %s", want, rest)
		}
	}
}

func TestInterruptServing(t *testing.T) {
	rest, code := command(t, syscall.SIGTERM, "Ctrl-C", "target", "-listen", "127.0.0.1:0", "-adaptive", "-size", "1m")
	if code != exitOK || !strings.Contains(rest, "served 0 reads") {
		t.Errorf("exit status %d, %s", code, rest)
	}
}
