// Package demo gives the examples something to talk to, so that they run on
// any machine.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"

	_ "github.com/qpoll/qpoll/pcie/vfiouser" // trtype:vfio-user
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

// Controller opens the controller whose address is the only argument, a drive
// that is bound to vfio-pci or a controller of vfio-user. Without one it makes a
// controller in software; stop ends that, after the controller was closed.
func Controller(ctx context.Context, args []string) (c *nvme.Controller, stop func() error, err error) {
	switch len(args) {
	case 0:
	case 1:
		c, err = nvme.Open(ctx, args[0], nil)
		return c, func() error { return nil }, err
	default:
		return nil, nil, errors.New("give one address, in quotes, or none")
	}
	soft, err := pcietest.New(pcietest.Config{})
	if err != nil {
		return nil, nil, err
	}
	soft.Start()
	t, err := pcie.New(soft.Device(), nil)
	if err != nil {
		return nil, nil, errors.Join(err, soft.Close())
	}
	if c, err = nvme.NewController(ctx, t, nil); err != nil {
		return nil, nil, errors.Join(err, soft.Close())
	}
	return c, soft.Close, nil
}

// Main runs an example and exits.
func Main(run func(args []string, out io.Writer) error) {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
