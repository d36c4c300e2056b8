//go:build guest

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/nvme"
)

// zero has the kernel write zeroes to a range of a device.
func (k *kernelHost) zero(t *testing.T, dev string, off, n int) {
	t.Helper()
	k.g.Shell(t, fmt.Sprintf("%s zero %s %d %d", guestioPath, dev, off, n))
}

// admin sends an admin command through the kernel and returns n bytes of data.
func (k *kernelHost) admin(ctx context.Context, dev string, c nvme.Command, n int) ([]byte, error) {
	res, err := k.g.Run(ctx, guestioPath, "admin", dev, strconv.Itoa(int(c.Opcode)), strconv.Itoa(int(c.NSID)),
		strconv.Itoa(int(c.CDW10)), strconv.Itoa(int(c.CDW11)), strconv.Itoa(n))
	var exit *guest.ExitError
	if errors.As(err, &exit) && exit.Code == 2 {
		st, perr := strconv.ParseUint(strings.TrimSpace(string(exit.Stderr)), 0, 16)
		return nil, errors.Join(perr, nvme.Status(st).Err())
	}
	return res.Stdout, err
}

// guestioPath is where the guest has our program for I/O.
const guestioPath = "/opt/guestio"

// worker is a verifying load in the guest.
type worker struct {
	p    *guest.Process
	done chan error

	mu     sync.Mutex
	stdout []byte
	stderr bytes.Buffer
}

// Write takes standard output.
func (w *worker) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stdout = append(w.stdout, b...)
	return len(b), nil
}

// work starts a load on the beginning of a device, where only zeros may be.
func (k *kernelHost) work(t *testing.T, dev string) *worker {
	t.Helper()
	w := &worker{done: make(chan error, 1)}
	var err error
	w.p, err = k.g.Start(t.Context(), guest.Command{
		Argv: []string{guestioPath, "load", dev, "8", "0x400000"}, Stdout: w, Stderr: &w.stderr,
	})
	check(t, err)
	go func() {
		err := w.p.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, w.stderr.Bytes())
		}
		w.done <- err
	}()
	return w
}

func (w *worker) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Fields(string(w.stdout))
}

// ops returns how many operations have completed.
func (w *worker) ops(t *testing.T) int {
	t.Helper()
	select {
	case err := <-w.done:
		t.Fatalf("the load in the guest has ended: %v", err)
	default:
	}
	n := 0
	for _, l := range slices.Backward(w.lines()) {
		if v, err := strconv.Atoi(l); err == nil {
			n = v
			break
		}
	}
	return n
}

// progress waits until all jobs have done something, most likely.
func (w *worker) progress(t *testing.T) {
	t.Helper()
	to := w.ops(t) + 60
	eventually(t, "progress of the load in the guest", func() bool { return w.ops(t) >= to })
}

// stop ends the load, in which nothing may have gone wrong.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	check(t, w.p.Signal(syscall.SIGTERM))
	select {
	case err := <-w.done:
		check(t, err)
	case <-time.After(patience):
		t.Fatal("the load in the guest does not end")
	}
	if l := w.lines(); len(l) == 0 || l[len(l)-1] != "verified" {
		t.Error("the load in the guest has not read back what it wrote")
	}
}
