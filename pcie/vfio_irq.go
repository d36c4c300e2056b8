package pcie

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

// maxVectors is the most that MSI-X has (PCI Local Bus Specification 6.8.2).
const maxVectors = 2048

// vfioIRQs are a device's MSI-X vectors, and the request to give it back.
type vfioIRQs struct {
	mu       sync.Mutex
	noResize bool    // the vectors have to be turned on together
	eventfds []int32 // by vector, -1 for none
	enabled  int     // how many of them the kernel has, 0: MSI-X is off

	request int // eventfd that the kernel signals when it wants the device back; -1
	stop    int // eventfd that ends the watch; -1
	done    chan struct{}
}

// openIRQs asks for the interrupts and watches for the device's removal.
func (d *vfioDevice) openIRQs(indexes uint32) error {
	q := &d.irqs
	if indexes > vfio.PCIMSIXIRQ {
		i, err := d.kernel.IRQInfo(d.fd, vfio.PCIMSIXIRQ)
		if err != nil {
			return err
		}
		if i.Flags&vfio.IRQEventFD != 0 {
			q.noResize = i.Flags&vfio.IRQNoResize != 0
			q.eventfds = slices.Repeat([]int32{-1}, int(min(i.Count, maxVectors)))
		}
	}
	if indexes <= vfio.PCIReqIRQ {
		return nil // a kernel before 4.0
	}
	i, err := d.kernel.IRQInfo(d.fd, vfio.PCIReqIRQ)
	if err != nil || i.Count == 0 {
		return err
	}
	return d.watchRequest()
}

// watchRequest starts the watch for the kernel's wish to have the device back.
func (d *vfioDevice) watchRequest() (err error) {
	q := &d.irqs
	if q.request, err = sys.EventFD(); err != nil {
		return err
	}
	if q.stop, err = sys.EventFD(); err != nil {
		return err
	}
	if err = d.kernel.SetIRQs(d.fd, vfio.PCIReqIRQ, 0, []int32{int32(q.request)}); err != nil {
		return fmt.Errorf("watching for removal: %w", err)
	}
	q.done = make(chan struct{})
	go d.watch(q.request, q.stop)
	return nil
}

// watch waits for the end of the device or of the watch.
func (d *vfioDevice) watch(request, stop int) {
	defer close(d.irqs.done)
	fds := []sys.PollFd{{Fd: int32(request), Events: sys.POLLIN}, {Fd: int32(stop), Events: sys.POLLIN}}
	for {
		_, err := sys.Ppoll(fds, -1)
		switch {
		case err != 0 || fds[1].Revents != 0:
			return
		case fds[0].Revents != 0:
			// Somebody takes the function away, and the kernel waits until it is
			// closed. It may well be there still: what is in progress must not
			// go to memory that its owners get back now.
			_ = d.busMaster(false)
			d.gone.Set()
			return
		}
	}
}

// closeIRQs ends the watch and turns the interrupts off.
func (d *vfioDevice) closeIRQs() error {
	q := &d.irqs
	var errs []error
	if q.done != nil {
		sys.EventSignal(q.stop)
		<-q.done
		q.done = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.enabled > 0 {
		errs = append(errs, d.ended(d.kernel.DisableIRQs(d.fd, vfio.PCIMSIXIRQ)))
		q.enabled = 0
	}
	for _, fd := range []*int{&q.request, &q.stop} {
		if *fd >= 0 {
			errs = append(errs, sys.Close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}

// ended drops an error about a device that is gone.
func (d *vfioDevice) ended(err error) error {
	if errors.Is(d.lost(err), ErrGone) {
		return nil
	}
	return err
}

// Interrupts implements Device.
func (d *vfioDevice) Interrupts() int { return len(d.irqs.eventfds) }

// ErrVector: the device has no such interrupt.
var ErrVector = errors.New("pcie: no such interrupt vector")

// SetInterrupt implements Device. Where the kernel cannot add vectors to those
// that are on, all are turned off and on again; the eventfds of the others are
// signalled then, since interrupts may have been lost between.
func (d *vfioDevice) SetInterrupt(vector, eventfd int) error {
	q := &d.irqs
	if vector < 0 || vector >= len(q.eventfds) {
		return fmt.Errorf("%w: %d of %d of %s", ErrVector, vector, len(q.eventfds), d.name)
	}
	if d.Gone() {
		return d.goneError()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	fd := int32(max(eventfd, -1))
	if fd == q.eventfds[vector] {
		return nil
	}
	var err error
	switch {
	case vector < q.enabled || q.enabled > 0 && !q.noResize:
		err = d.kernel.SetIRQs(d.fd, vfio.PCIMSIXIRQ, uint32(vector), []int32{fd})
	default:
		err = d.growIRQs(vector, fd)
	}
	if err != nil {
		return fmt.Errorf("pcie: interrupt %d of %s: %w", vector, d.name, d.lost(err))
	}
	q.eventfds[vector] = fd
	q.enabled = max(q.enabled, vector+1)
	return nil
}

// growIRQs turns vectors up to vector on. The lock is held.
func (d *vfioDevice) growIRQs(vector int, fd int32) error {
	q := &d.irqs
	if q.enabled > 0 {
		if err := d.kernel.DisableIRQs(d.fd, vfio.PCIMSIXIRQ); err != nil {
			return err
		}
	}
	want := slices.Clone(q.eventfds[:vector+1])
	want[vector] = fd
	if err := d.kernel.SetIRQs(d.fd, vfio.PCIMSIXIRQ, 0, want); err != nil {
		if q.enabled > 0 { // as it was
			err = errors.Join(err, d.kernel.SetIRQs(d.fd, vfio.PCIMSIXIRQ, 0, q.eventfds[:q.enabled]))
		}
		return err
	}
	for _, fd := range q.eventfds[:vector] {
		if fd >= 0 {
			sys.EventSignal(int(fd))
		}
	}
	return nil
}
