// Package demo gives the examples something to talk to, so that they run on
// any machine.
package demo

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
)

// Address returns the address that is the only argument. Without one it starts
// a target in this process, with 64 MiB of memory for a namespace; stop ends
// that.
func Address(args []string) (address string, stop func() error, err error) {
	switch len(args) {
	case 0:
	case 1:
		return args[0], func() error { return nil }, nil
	default:
		return "", nil, errors.New("give one address, in quotes, or none")
	}
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return "", nil, err
	}
	if err := p.Start(); err != nil {
		return "", nil, errors.Join(err, p.Close())
	}
	t, err := target.New(target.Config{})
	if err != nil {
		return "", nil, errors.Join(err, p.Close())
	}
	stop = func() error { return errors.Join(t.Close(), p.Close()) }
	if err := t.Start(p); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return t.Address(""), stop, nil
}

// Main runs an example and exits.
func Main(run func(args []string, out io.Writer) error) {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
