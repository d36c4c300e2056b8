package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
)

// device is a PCIe controller in software with the poller that it runs on.
type device struct {
	*pcietest.Controller
	pollers *poller.Group
	disk    interface{ Close() error } // nil: there is nothing to close
}

// naps is how long a device whose poller may sleep does so before it looks for
// work: nothing wakes it, as doorbells are memory. It grows up to the most.
const (
	shortNap = 20 * time.Microsecond
	longNap  = 250 * time.Microsecond
)

// naps has the poller of a device call it.
type napper struct {
	c   *pcietest.Controller
	nap time.Duration
}

// Poll implements poller.Source.
func (n *napper) Poll(now int64) int {
	did := n.c.Poll(now)
	if did > 0 {
		n.nap = shortNap
	}
	return did
}

// Arm implements poller.Waiter.
func (n *napper) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	until := now + int64(n.nap)
	n.nap = min(2*n.nap, longNap)
	return -1, 0, until, true
}

// startDevice starts a controller on a core. disk is closed with it, or at once
// if it does not start.
func startDevice(cfg pcietest.Config, core int, p poller.Config, disk interface{ Close() error }) (*device, error) {
	d := &device{disk: disk}
	cfg.NoShadow = true // its doorbells are memory already, and drives have none
	var err error
	if d.Controller, err = pcietest.New(cfg); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if d.pollers, err = poller.NewGroup([]int{core}, p); err != nil {
		return nil, errors.Join(err, d.close())
	}
	on := d.pollers.Pollers()[0]
	if err := on.Call(context.Background(), func() { on.Add(&napper{d.Controller, shortNap}) }); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *device) close() error {
	var errs []error
	if d.Controller != nil {
		errs = append(errs, d.Controller.Close())
	}
	if d.pollers != nil {
		errs = append(errs, d.pollers.Close())
	}
	if d.disk != nil {
		errs = append(errs, d.disk.Close())
	}
	return errors.Join(errs...)
}

// newDisk makes the namespace of a device. closer is nil if there is nothing to
// close.
func newDisk(kind string, capacity, block size, file string) (ns pcietest.NamespaceConfig, closer interface{ Close() error }, err error) {
	ns = pcietest.NamespaceConfig{NSID: 1, BlockSize: uint32(block), Size: int64(capacity)}
	switch kind {
	case "memory":
	case "null", "ideal":
		ns.Backend = pcietest.Null(capacity)
	case "file":
		f, err := openDisk(file, int64(capacity))
		if err != nil {
			return ns, nil, err
		}
		ns.Backend = f
		return ns, f, nil
	default:
		return ns, nil, fmt.Errorf("backend %q", kind)
	}
	return ns, nil, nil
}

// emulate starts the controller that -target pcietest stands for.
func (o *options) emulate(l *layout) (*endpoint, error) {
	kind := o.backend
	if o.target == softwareIdeal {
		kind = "ideal"
	}
	ns, disk, err := newDisk(kind, o.capacity, 512, "")
	if err != nil {
		return nil, err
	}
	cfg := pcietest.Config{
		Namespaces: []pcietest.NamespaceConfig{ns}, IOQueues: len(l.load)*o.queues + 1, Ideal: kind == "ideal",
	}
	d, err := startDevice(cfg, l.target[0], l.poller("target"), disk)
	if err != nil {
		return nil, err
	}
	what := "with a namespace of kind " + kind
	if kind == "ideal" {
		what = "which completes at once and moves no data: what is left is the driver"
	}
	return &endpoint{
		target: o.target,
		open:   func(context.Context) (pcie.Device, error) { return d.Device(), nil },
		what:   fmt.Sprintf("software controller on %s, %s", coreNames(l.target), what),
		close:  d.close,
	}, nil
}
