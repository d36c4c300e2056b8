package guest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// process is a child that dies with this process, however that ends.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended, valid once done is closed
}

// startProcess starts cmd. The kernel ties the death signal of a child to the
// thread that made it, so one goroutine holds that thread until the child ends.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the process and waits for it.
func (p *process) kill() {
	// An error means that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// tail is a writer that keeps the last bytes written to it. It is safe for
// concurrent use.
type tail struct {
	mu   sync.Mutex
	max  int
	buf  []byte
	lost bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.max {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
		t.lost = true
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return "[...]" + string(t.buf)
	}
	return string(t.buf)
}
