package pcie

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys/devmem"
	"github.com/qpoll/qpoll/internal/sys/vfio"
	"github.com/qpoll/qpoll/pcie/internal/loss"
)

// vfioDevice is a function that the kernel's vfio-pci handed out.
type vfioDevice struct {
	kernel vfioKernel
	name   string
	info   Info
	fd     int
	flags  uint32 // VFIO_DEVICE_FLAGS_*
	space  dmaSpace
	bars   [6]vfioBAR
	config vfio.Region
	irqs   vfioIRQs
	gone   loss.Watch

	mu      sync.Mutex
	command sync.Mutex        // held while the command register changes
	dma     map[uint64][]byte // what is mapped, by its address
	held    uint64            // bytes of that
	closed  bool
}

// newVFIODevice takes over fd and space, also when it fails.
func newVFIODevice(k vfioKernel, f *Function, fd int, space dmaSpace) (_ *vfioDevice, err error) {
	d := &vfioDevice{
		kernel: k, name: f.Address, fd: fd, space: space, dma: map[uint64][]byte{},
		irqs: vfioIRQs{request: -1, stop: -1},
		info: Info{
			Vendor: f.Vendor, Device: f.Device, SubsystemVendor: f.SubsystemVendor, SubsystemDevice: f.SubsystemDevice,
			Class: f.Class, Revision: f.Revision, NUMANode: f.NUMANode, Hardware: true,
		},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	info, err := k.DeviceInfo(fd)
	if err != nil {
		return nil, err
	}
	if d.flags = info.Flags; info.Flags&vfio.DevicePCI == 0 || info.Regions <= vfio.PCIConfigRegion {
		return nil, fmt.Errorf("not a PCI function: flags %#x, %d regions", info.Flags, info.Regions)
	}
	if d.config, err = k.RegionInfo(fd, vfio.PCIConfigRegion); err != nil {
		return nil, err
	}
	for i := range d.bars {
		if d.bars[i].region, err = k.RegionInfo(fd, uint32(i)); err != nil {
			return nil, fmt.Errorf("BAR %d: %w", i, err)
		}
	}
	if d.bars[0].region.Size < minBAR {
		return nil, fmt.Errorf("BAR 0 of %d bytes: too small for an NVMe controller", d.bars[0].region.Size)
	}
	if err = d.mapBAR(0); err != nil {
		return nil, err
	}
	return d, d.openIRQs(info.IRQs)
}

// minBAR is the size of the registers and one pair of doorbells.
const minBAR = 0x1008

// Name implements Device.
func (d *vfioDevice) Name() string { return d.name }

// Info implements Device.
func (d *vfioDevice) Info() Info { return d.info }

// Gone implements Device.
func (d *vfioDevice) Gone() bool { return d.gone.Gone() }

// OnGone implements Device.
func (d *vfioDevice) OnGone(f func()) { d.gone.OnGone(f) }

// IOVARanges implements Device.
func (d *vfioDevice) IOVARanges() []Range { return d.space.ranges() }

// MaxMappings implements Device.
func (d *vfioDevice) MaxMappings() int { return d.space.maxMappings() }

// lost takes an error of the kernel's about the device for what it is.
func (d *vfioDevice) lost(err error) error {
	if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO) || errors.Is(err, devmem.ErrFault) {
		d.gone.Set()
		return fmt.Errorf("%w: %s: %w", ErrGone, d.name, err)
	}
	return err
}

// pread and pwrite access a region where it is not mapped.
func (d *vfioDevice) pread(r *vfio.Region, b []byte, off uint64) error {
	if off > r.Size || uint64(len(b)) > r.Size-off {
		return fmt.Errorf("%w: %d bytes at %#x", mmio.ErrBounds, len(b), off)
	}
	n, err := d.kernel.Pread(d.fd, b, int64(r.Offset+off))
	if err == nil && n != len(b) {
		err = fmt.Errorf("pcie: %d bytes of %d read", n, len(b))
	}
	return d.lost(err)
}

func (d *vfioDevice) pwrite(r *vfio.Region, b []byte, off uint64) error {
	if off > r.Size || uint64(len(b)) > r.Size-off {
		return fmt.Errorf("%w: %d bytes at %#x", mmio.ErrBounds, len(b), off)
	}
	n, err := d.kernel.Pwrite(d.fd, b, int64(r.Offset+off))
	if err == nil && n != len(b) {
		err = fmt.Errorf("pcie: %d bytes of %d written", n, len(b))
	}
	return d.lost(err)
}

// Command register and its bits (PCI Local Bus Specification 6.2.2).
const (
	pciCommand     = 0x04
	pciBusMaster   = 1 << 2
	pciINTxDisable = 1 << 10
)

// SetBusMaster implements Device.
func (d *vfioDevice) SetBusMaster(on bool) error {
	if d.Gone() {
		return d.goneError()
	}
	return d.busMaster(on)
}

func (d *vfioDevice) busMaster(on bool) error {
	d.command.Lock()
	defer d.command.Unlock()
	var b [2]byte
	if err := d.pread(&d.config, b[:], pciCommand); err != nil {
		return err
	}
	v := binary.LittleEndian.Uint16(b[:])
	// Nobody listens to INTx, which the admin queue would raise.
	want := v&^pciBusMaster | pciINTxDisable
	if on {
		want |= pciBusMaster
	}
	if v == want {
		return nil
	}
	binary.LittleEndian.PutUint16(b[:], want)
	return d.pwrite(&d.config, b[:], pciCommand)
}

// goneError is what methods return when the device is gone.
func (d *vfioDevice) goneError() error { return fmt.Errorf("%w: %s", ErrGone, d.name) }

// resetPause is the time between attempts to reset a function that the kernel
// holds for another purpose.
const resetPause = 10 * time.Millisecond

// Reset implements Device.
func (d *vfioDevice) Reset(ctx context.Context) error {
	switch {
	case d.Gone():
		return d.goneError()
	case d.flags&vfio.DeviceReset == 0:
		return fmt.Errorf("%w: %s: the kernel knows no way to reset it", errors.ErrUnsupported, d.name)
	}
	// The kernel restores the command register as it was before.
	if err := d.SetBusMaster(false); err != nil {
		return err
	}
	for {
		err := d.kernel.Reset(d.fd)
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EBUSY) {
			return d.lost(err)
		}
		pause := time.NewTimer(resetPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

// MapDMA implements Device.
func (d *vfioDevice) MapDMA(m Memory, iova uint64) error {
	if d.Gone() {
		return d.goneError()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.goneError()
	}
	n := uint64(len(m.Bytes))
	if err := d.allowed(iova, n); err != nil {
		return err
	}
	if _, dup := d.dma[iova]; dup {
		return fmt.Errorf("%w: %#x is mapped already", ErrIOVA, iova)
	}
	if err := d.space.mapDMA(m.Bytes, iova); err != nil {
		return fmt.Errorf("pcie: mapping %d bytes at %#x for %s: %w", n, iova, d.name, mapError(d.lost(err), n, d.held))
	}
	d.dma[iova] = m.Bytes
	d.held += n
	return nil
}

// ErrIOVA: an address for DMA is outside of what the device takes, or is not one
// of its mappings.
var ErrIOVA = errors.New("pcie: bad I/O virtual address")

func (d *vfioDevice) allowed(iova, n uint64) error {
	if n == 0 || iova+n-1 < iova {
		return fmt.Errorf("%w: %d bytes at %#x", ErrIOVA, n, iova)
	}
	for _, r := range d.space.ranges() {
		if iova >= r.First && iova+n-1 <= r.Last {
			return nil
		}
	}
	return fmt.Errorf("%w: %d bytes at %#x are not in what %s takes", ErrIOVA, n, iova, d.name)
}

// UnmapDMA implements Device.
func (d *vfioDevice) UnmapDMA(iova, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.dma[iova]
	if !ok || uint64(len(b)) != n {
		return fmt.Errorf("%w: no mapping of %d bytes at %#x", ErrIOVA, n, iova)
	}
	return d.unmap(iova, b)
}

// unmap undoes a mapping; the lock is held.
func (d *vfioDevice) unmap(iova uint64, b []byte) error {
	if err := d.space.unmapDMA(b, iova); err != nil {
		return fmt.Errorf("pcie: unmapping %d bytes at %#x for %s: %w", len(b), iova, d.name, err)
	}
	delete(d.dma, iova)
	d.held -= uint64(len(b))
	return nil
}

// Close implements Device.
func (d *vfioDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var errs []error
	if d.config.Size > 0 {
		// Fails if the function was pulled out, which is as good.
		if err := d.busMaster(false); err != nil && !errors.Is(err, ErrGone) && !d.Gone() {
			errs = append(errs, err)
		}
	}
	errs = append(errs, d.closeIRQs())
	d.gone.End() // late calls see a device that is gone, not a descriptor of somebody else
	for iova, b := range d.dma {
		errs = append(errs, d.unmap(iova, b))
	}
	for i := range d.bars {
		errs = append(errs, d.unmapBAR(i))
	}
	// The device goes before the address space that it is attached to.
	errs = append(errs, d.kernel.Close(d.fd), d.space.close())
	return errors.Join(errs...)
}
