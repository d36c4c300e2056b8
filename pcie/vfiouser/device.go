package vfiouser

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys/devmem"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// Device is a controller in another process.
type Device struct {
	client   *client
	info     pcie.Info
	limits   vfuser.Capabilities
	canReset bool
	vectors  int
	regions  [vfuser.RegionConfig + 1]region

	command sync.Mutex // held while the command register changes

	mu     sync.Mutex
	dma    map[uint64]pcie.Memory // what is mapped, by its address
	closed bool
}

var _ pcie.Device = (*Device)(nil)

// Name implements pcie.Device: the path of the socket.
func (d *Device) Name() string { return d.client.path }

// Info implements pcie.Device.
func (d *Device) Info() pcie.Info { return d.info }

// Gone implements pcie.Device.
func (d *Device) Gone() bool { return d.client.gone.Gone() }

// OnGone implements pcie.Device.
func (d *Device) OnGone(f func()) { d.client.gone.OnGone(f) }

// reg reads n bytes of a register.
func (d *Device) reg(off uint32, n int) (v uint64, err error) {
	if off%uint32(n) != 0 {
		return 0, fmt.Errorf("%w: register %#x", mmio.ErrBounds, off)
	}
	if w, at, ok := d.regions[vfuser.RegionBAR0].find(uint64(off), uint64(n)); ok {
		if d.Gone() {
			return 0, d.client.lost()
		}
		if n == 8 {
			v, err = devmem.Read64(w, at)
		} else {
			var lo uint32
			lo, err = devmem.Read32(w, at)
			v = uint64(lo)
		}
		return v, d.faulted(err)
	}
	var b [8]byte
	err = d.readRegion(context.Background(), vfuser.RegionBAR0, uint64(off), b[:n])
	return binary.LittleEndian.Uint64(b[:]), err
}

// setReg writes n bytes of a register.
func (d *Device) setReg(off uint32, n int, v uint64) error {
	if off%uint32(n) != 0 {
		return fmt.Errorf("%w: register %#x", mmio.ErrBounds, off)
	}
	if w, at, ok := d.regions[vfuser.RegionBAR0].find(uint64(off), uint64(n)); ok {
		if d.Gone() {
			return d.client.lost()
		}
		mmio.StoreFence()
		if n == 8 {
			return d.faulted(devmem.Write64(w, at, v))
		}
		return d.faulted(devmem.Write32(w, at, uint32(v)))
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return d.writeRegion(context.Background(), vfuser.RegionBAR0, uint64(off), b[:n])
}

// faulted is for a server that has cut its file short.
func (d *Device) faulted(err error) error {
	if errors.Is(err, devmem.ErrFault) {
		return d.client.broken(err)
	}
	return err
}

// Read32 implements pcie.Device.
func (d *Device) Read32(off uint32) (uint32, error) {
	v, err := d.reg(off, 4)
	return uint32(v), err
}

// Read64 implements pcie.Device.
func (d *Device) Read64(off uint32) (uint64, error) { return d.reg(off, 8) }

// Write32 implements pcie.Device.
func (d *Device) Write32(off uint32, v uint32) error { return d.setReg(off, 4, uint64(v)) }

// Write64 implements pcie.Device.
func (d *Device) Write64(off uint32, v uint64) error { return d.setReg(off, 8, v) }

// Command register and its bits (PCI Local Bus Specification 6.2.2).
const (
	pciCommand     = 0x04
	pciBusMaster   = 1 << 2
	pciINTxDisable = 1 << 10
)

// SetBusMaster implements pcie.Device.
func (d *Device) SetBusMaster(on bool) error { return d.busMaster(context.Background(), on) }

func (d *Device) busMaster(ctx context.Context, on bool) error {
	d.command.Lock()
	defer d.command.Unlock()
	var b [2]byte
	if err := d.readRegion(ctx, vfuser.RegionConfig, pciCommand, b[:]); err != nil {
		return err
	}
	// Nobody listens to INTx, and SPDK fails a controller that cannot signal it.
	v := binary.LittleEndian.Uint16(b[:])&^pciBusMaster | pciINTxDisable
	if on {
		v |= pciBusMaster
	}
	binary.LittleEndian.PutUint16(b[:], v)
	return d.writeRegion(ctx, vfuser.RegionConfig, pciCommand, b[:])
}

// Reset implements pcie.Device.
func (d *Device) Reset(ctx context.Context) error {
	if !d.canReset {
		return fmt.Errorf("%w: %s: the server does not reset it", errors.ErrUnsupported, d.Name())
	}
	if err := d.busMaster(ctx, false); err != nil {
		return err
	}
	r, err := d.client.request(ctx, vfuser.CmdDeviceReset, nil, nil)
	r.closeFDs()
	return err
}

// Interrupts implements pcie.Device.
func (d *Device) Interrupts() int { return d.vectors }

// SetInterrupt implements pcie.Device.
func (d *Device) SetInterrupt(vector, eventfd int) error {
	if vector < 0 || vector >= d.vectors {
		return fmt.Errorf("%w: %d of %d of %s", pcie.ErrVector, vector, d.vectors, d.Name())
	}
	set := vfuser.IRQSet{Flags: vfuser.IRQDataEventFD | vfuser.IRQTrigger, Index: vfuser.IRQMSIX, Start: uint32(vector), Count: 1}
	var fds []int // none takes it away
	if eventfd >= 0 {
		fds = []int{eventfd}
	}
	r, err := d.client.request(context.Background(), vfuser.CmdSetIRQs, set.Append(nil), fds)
	r.closeFDs()
	return err
}

// Close implements pcie.Device.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	left := maps.Clone(d.dma)
	d.mu.Unlock()
	// A server that is gone cannot be told; one that hangs is after the first
	// request that it does not answer.
	if d.regions[vfuser.RegionConfig].size > 0 && !d.Gone() {
		_ = d.SetBusMaster(false)
	}
	for iova, m := range left {
		_ = d.UnmapDMA(iova, uint64(len(m.Bytes)))
	}
	d.client.close()
	var errs []error
	for i := range d.regions {
		errs = append(errs, d.regions[i].unmap())
	}
	return errors.Join(errs...)
}
