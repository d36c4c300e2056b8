// Package testutil makes the tests of a package fail if they leave anything
// behind:
//
//	func TestMain(m *testing.M) { testutil.Main(m) }
package testutil

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qpoll/qpoll/internal/sys"
)

// Main runs the tests and exits. The run fails if a file descriptor, a memory
// mapping, a goroutine or a child process is left that was not there before;
// each is named, with the stack that opened it where internal/sys did.
func Main(m *testing.M) {
	check, err := Watch()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testutil:", err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := check(); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: the tests left something behind\n%v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// patience is how long what is on its way out may take to be gone.
const patience = 2 * time.Second

// Watch takes note of what there is now. The function that it returns reports
// what there is beyond that, once it has had some time to go.
func Watch() (check func() error, err error) {
	if err := wakeRuntime(); err != nil {
		return nil, err
	}
	sys.Track()
	before, err := take()
	if err != nil {
		return nil, err
	}
	goroutines := goleak.IgnoreCurrent()
	return func() error {
		err := goleak.Find(goroutines)
		return errors.Join(err, before.settle(patience))
	}, nil
}

// wakeRuntime makes the runtime open the descriptors that it keeps for good,
// of its network poller.
func wakeRuntime() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), w.Close())
}

// settle waits until nothing is left, or until it has waited long enough.
func (before snapshot) settle(patience time.Duration) error {
	const step = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		now, err := take()
		if err != nil {
			return err
		}
		left := now.beyond(before)
		if left == nil || waited >= patience {
			return left
		}
		time.Sleep(step)
	}
}
