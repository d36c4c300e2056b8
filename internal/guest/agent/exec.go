//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/qpoll/qpoll/internal/guest/wire"
	"github.com/qpoll/qpoll/internal/sys/pid1"
)

// outputGrace is how long output may go on after the process has ended, in case
// others hold the pipe.
const outputGrace = 2 * time.Second

// frameWriter sends what is written to it as frames of one kind. Standard
// output and standard error share the stream, hence the lock.
type frameWriter struct {
	mu *sync.Mutex
	w  io.Writer
	k  wire.Kind
}

func (f frameWriter) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := wire.WriteFrame(f.w, f.k, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func runExec(st *yamux.Stream, e *wire.Exec) (*wire.Result, error) {
	var mu sync.Mutex
	cmd := exec.Command(e.Argv[0], e.Argv[1:]...)
	cmd.Dir = e.Dir
	cmd.Env = append(os.Environ(), e.Env...)
	cmd.Stdout = frameWriter{&mu, st, wire.KindData}
	cmd.Stderr = frameWriter{&mu, st, wire.KindStderr}
	cmd.WaitDelay = outputGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A pipe of our own: Wait must not wait for the host to end the input.
	in, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		inW.Close()
		return nil, err
	}
	var input sync.WaitGroup
	input.Go(func() { receive(st, inW, cmd.Process.Pid) })
	err = cmd.Wait()
	// Ends receive, which else would go on reading from the stream.
	_ = st.SetReadDeadline(time.Now())
	input.Wait()
	return exitResult(cmd, err)
}

func exitResult(cmd *exec.Cmd, err error) (*wire.Result, error) {
	if cmd.ProcessState == nil {
		return nil, err
	}
	x := &wire.Exit{Code: cmd.ProcessState.ExitCode(), Held: errors.Is(err, exec.ErrWaitDelay)}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		x.Signal = int(ws.Signal())
	}
	return &wire.Result{Exit: x}, nil
}

// receive passes on input and signals, and kills the process group when the
// host closes the stream. In goes through a queue of its own, so that a process
// that does not read cannot keep a signal or the end of the stream from us.
func receive(st *yamux.Stream, stdin *os.File, pgid int) {
	q := newInputQueue(stdin)
	defer q.close()
	var buf []byte
	for {
		k, b, err := wire.ReadFrame(st, buf)
		if err != nil {
			if !errors.Is(err, yamux.ErrTimeout) {
				_ = pid1.KillGroup(pgid, syscall.SIGKILL)
			}
			return
		}
		switch k {
		case wire.KindData:
			q.put(append([]byte(nil), b...))
		case wire.KindEOF:
			q.end()
		case wire.KindSignal:
			if len(b) == 1 {
				_ = pid1.KillGroup(pgid, syscall.Signal(b[0]))
			}
		}
	}
}
