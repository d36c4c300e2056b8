package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/vfiouser"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

// The values of -target that stand for something of our own in this process.
const (
	embedded      = "embedded"       // a target of NVMe/TCP
	software      = "pcietest"       // a controller of PCIe
	softwareIdeal = "pcietest:ideal" // one that costs nothing
)

// Prefixes of -target that are short for an address.
const (
	pciPrefix    = "pcie:"
	socketPrefix = "vfio-user:"
)

// Transport names of package nvme.
const (
	transportTCP    = "tcp"
	transportPCIe   = "pcie"
	transportSocket = "vfiouser"
)

// endpoint is what a measurement connects to.
type endpoint struct {
	target  string       // what was given, or the address of what was started for it
	address nvme.Address // where it is; not of software in this process
	// open opens the device of a local controller; nil for one that is remote.
	open  func(ctx context.Context) (pcie.Device, error)
	what  string       // for people, about what was started
	close func() error // ends that; nil if there is nothing to end
}

// own tells whether the target is of our own, in this process.
func (o *options) own() bool { return o.target == embedded || o.software() }

// software tells whether the target is a PCIe controller in this process.
func (o *options) software() bool { return o.target == software || o.target == softwareIdeal }

// keeps tells whether the target is of our own and keeps what is written.
func (o *options) keeps() bool {
	return o.own() && o.target != softwareIdeal && o.backend == "memory"
}

// endpoint starts what -target stands for, or finds out where it is.
func (o *options) endpoint(l *layout) (*endpoint, error) {
	switch {
	case o.target == embedded:
		return o.embed(l)
	case o.software():
		return o.emulate(l)
	}
	a, err := o.address(o.target)
	if err != nil {
		return nil, err
	}
	e := &endpoint{target: a.String(), address: a}
	switch a.Transport {
	case transportPCIe:
		e.open = func(ctx context.Context) (pcie.Device, error) {
			return pcie.OpenVFIO(ctx, a.Traddr, pcie.VFIOConfig{NoIOMMU: o.noIOMMU})
		}
	case transportSocket:
		e.open = func(ctx context.Context) (pcie.Device, error) {
			ctx, cancel := o.patience(ctx, o.connectTimeout)
			defer cancel()
			d, err := vfiouser.Open(ctx, a.Traddr, vfiouser.Config{})
			if err != nil {
				return nil, err // not a nil *Device in an interface
			}
			return d, nil
		}
	}
	return e, nil
}

// patience bounds a context, with an error that says so.
func (o *options) patience(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%w: no answer within %v", nvme.ErrTimeout, d))
}

// address parses what the user gave, and adds what flags say.
func (o *options) address(target string) (nvme.Address, error) {
	if at, ok := strings.CutPrefix(target, pciPrefix); ok {
		target = "trtype:pcie traddr:" + at
	} else if path, ok := strings.CutPrefix(target, socketPrefix); ok {
		target = "trtype:vfiouser traddr:" + path
	} else if strings.HasPrefix(target, software) {
		return nvme.Address{}, usagef("-target: %q is not known, write -target %s or -target %s", target, software, softwareIdeal)
	}
	a, err := nvme.ParseAddress(target)
	if err != nil {
		return a, err
	}
	if a.Transport != transportPCIe && a.Transport != transportSocket {
		return a, o.remoteAddress(&a)
	}
	return a, o.localAddress(&a)
}

// remoteAddress adds what flags say to an address of NVMe/TCP.
func (o *options) remoteAddress(a *nvme.Address) error {
	if o.noIOMMU {
		return usagef("-no-iommu is for drives: leave it out, or write -target pcie:0000:01:00.0")
	}
	if a.Options == nil {
		a.Options = map[string]string{}
	}
	if o.headerDigest {
		a.Options["hdr_digest"] = "on"
	}
	if o.dataDigest {
		a.Options["data_digest"] = "on"
	}
	return nil
}

// localAddress refuses what means nothing to a local controller.
func (o *options) localAddress(a *nvme.Address) error {
	if o.headerDigest || o.dataDigest {
		return usagef("-hdgst and -ddgst are for NVMe/TCP: leave them out")
	}
	for key := range a.Options {
		return usagef("-target: %s means nothing to a local controller: leave it out", key)
	}
	for key, v := range map[string]string{
		"hostnqn": a.HostNQN, "hostid": a.HostID, "host_traddr": a.HostTraddr, "host_iface": a.HostIface, "trsvcid": a.Service,
	} {
		if v != "" {
			return usagef("-target: %s means nothing to a local controller: leave it out", key)
		}
	}
	if a.Transport == transportSocket {
		if o.noIOMMU {
			return usagef("-no-iommu is for drives: leave it out, or write -target pcie:0000:01:00.0")
		}
		return nil
	}
	at, err := pcie.ParseAddress(a.Traddr)
	if err != nil {
		return usagef("-target: %q is not the address of a PCI function: write -target pcie:0000:01:00.0 (bench pci list shows them)", a.Traddr)
	}
	a.Traddr = at
	return nil
}
