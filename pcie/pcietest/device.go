package pcietest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// Errors of this package; they come back wrapped.
var (
	// ErrBusy means that a controller has a driver already.
	ErrBusy = errors.New("pcietest: the controller has a driver")

	// ErrAccess means an access that no BAR takes: of the wrong width or
	// alignment, or beyond the end.
	ErrAccess = errors.New("pcietest: bad access")

	// ErrMapping means a DMA mapping that cannot be made, or that is not there.
	ErrMapping = errors.New("pcietest: bad DMA mapping")
)

// attachment is the driver that has the device.
type attachment struct {
	who    any
	remote bool // in another process
}

// attach gives the device to a driver.
func (c *Controller) attach(a attachment) error {
	c.lock()
	defer c.unlock()
	switch {
	case c.gone.Load():
		return pcie.ErrGone
	case c.client.who != nil:
		return ErrBusy
	}
	c.client = a
	return nil
}

// detach takes the device from a driver: nothing of the driver's is kept.
func (c *Controller) detach(who any) error {
	c.lock()
	defer c.unlock()
	if c.client.who != who {
		return nil
	}
	c.resetAll()
	err := c.unmapAll()
	c.client = attachment{}
	c.onGone = nil
	if c.closed {
		err = errors.Join(err, c.free())
	}
	return err
}

// unmapAll undoes all mappings, and forgets interrupts.
func (c *Controller) unmapAll() error {
	var errs []error
	c.forget()
	for i := range c.dma.maps {
		if f := c.dma.maps[i].release; f != nil {
			errs = append(errs, f())
		}
	}
	c.dma = dmaTable{}
	for i := range c.vectors {
		errs = append(errs, c.setVector(i, -1))
	}
	errs = append(errs, c.setEvent(&c.intx, -1), c.setEvent(&c.others[0], -1), c.setEvent(&c.others[1], -1))
	return errors.Join(errs...)
}

// setMaster turns bus mastering on or off.
func (c *Controller) setMaster(on bool) {
	c.config.command &^= commandMaster
	if on {
		c.config.command |= commandMaster
	}
	if c.master != on {
		c.master = on
		c.forget()
	}
}

// device is the controller as a driver in this process sees it.
type device struct{ c *Controller }

// Device returns the controller as a device of this process, for one driver at a
// time. It is free again once the device was closed. While another driver has
// the controller, its methods fail with ErrBusy, wrapped.
func (c *Controller) Device() pcie.Device { return &device{c} }

// enter makes d the driver, with the controller held, unless there is another.
func (d *device) enter() error {
	c := d.c
	c.lock()
	switch {
	case c.gone.Load():
		c.unlock()
		return pcie.ErrGone
	case c.client.who == nil:
		c.client = attachment{who: d}
	case c.client.who != any(d):
		c.unlock()
		return ErrBusy
	}
	return nil
}

// Name implements pcie.Device.
func (d *device) Name() string { return d.c.cfg.Name }

// Info implements pcie.Device.
func (d *device) Info() pcie.Info { return d.c.cfg.Info }

func (d *device) access(off uint32, n int) error {
	if off%uint32(n) != 0 || uint64(off)+uint64(n) > 0x1000+uint64(len(d.c.doorbells.b)) {
		d.c.unlock()
		return fmt.Errorf("%w: %d bytes at %#x", ErrAccess, n, off)
	}
	return nil
}

func (d *device) read(off uint32, n int) (uint64, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	if err := d.access(off, n); err != nil {
		return 0, err
	}
	defer d.c.unlock()
	if off < nvme.RegDoorbells {
		return d.c.readRegisters(off, n), nil
	}
	return d.c.readDoorbell(uint64(off-nvme.RegDoorbells), n)
}

func (d *device) write(off uint32, n int, v uint64) error {
	if err := d.enter(); err != nil {
		return err
	}
	if err := d.access(off, n); err != nil {
		return err
	}
	defer d.c.unlock()
	if off < nvme.RegDoorbells {
		d.c.writeRegisters(off, n, v)
		d.c.interrupts()
		return nil
	}
	return d.c.writeDoorbell(uint64(off-nvme.RegDoorbells), n, v)
}

// readDoorbell reads what was last written to a doorbell.
func (c *Controller) readDoorbell(off uint64, n int) (uint64, error) {
	if c.regs.vanished {
		return ^uint64(0) >> (64 - 8*n), nil
	}
	if n == 8 {
		return c.doorbells.w.Read64(off)
	}
	v, err := c.doorbells.w.Read32(off)
	return uint64(v), err
}

func (c *Controller) writeDoorbell(off uint64, n int, v uint64) error {
	switch {
	case c.regs.vanished:
		return nil
	case n == 8:
		return c.doorbells.w.Write64(off, v)
	}
	return c.doorbells.w.Write32(off, uint32(v))
}

// Read32 implements pcie.Device.
func (d *device) Read32(off uint32) (uint32, error) {
	v, err := d.read(off, 4)
	return uint32(v), err
}

// Read64 implements pcie.Device.
func (d *device) Read64(off uint32) (uint64, error) { return d.read(off, 8) }

// Write32 implements pcie.Device.
func (d *device) Write32(off uint32, v uint32) error { return d.write(off, 4, uint64(v)) }

// Write64 implements pcie.Device.
func (d *device) Write64(off uint32, v uint64) error { return d.write(off, 8, v) }

// BARSize implements pcie.Device.
func (d *device) BARSize(bar int) uint64 { return d.c.config.barSize(bar) }

// Map implements pcie.Device: of the doorbells and the controller memory
// buffer.
func (d *device) Map(bar int, off, n uint64) (mmio.Window, error) {
	if err := d.enter(); err != nil {
		return mmio.Window{}, err
	}
	defer d.c.unlock()
	var w mmio.Window
	switch {
	case bar == 0 && off >= nvme.RegDoorbells:
		w, off = d.c.doorbells.w, off-nvme.RegDoorbells
	case bar == cmbBAR && d.c.cmb != nil:
		w = d.c.cmb.w
	default:
		return mmio.Window{}, fmt.Errorf("%w: BAR %d cannot be mapped at %#x", ErrAccess, bar, off)
	}
	w, err := w.Slice(off, n)
	if err != nil {
		return mmio.Window{}, fmt.Errorf("%w: BAR %d: %w", ErrAccess, bar, err)
	}
	return w, nil
}

// Reset implements pcie.Device.
func (d *device) Reset(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.c.unlock()
	d.c.resetAll()
	return nil
}

// SetBusMaster implements pcie.Device.
func (d *device) SetBusMaster(on bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.c.unlock()
	d.c.setMaster(on)
	return nil
}

// IOVARanges implements pcie.Device.
func (d *device) IOVARanges() []pcie.Range { return slices.Clone(d.c.cfg.IOVARanges) }

// MaxMappings implements pcie.Device.
func (d *device) MaxMappings() int { return d.c.cfg.MaxMappings }

// MapDMA implements pcie.Device.
func (d *device) MapDMA(m pcie.Memory, iova uint64) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.c.unlock()
	n := mapping{iova: iova, size: uint64(len(m.Bytes)), b: m.Bytes, read: true, write: true}
	if (n.size|n.iova)%hostPage != 0 || n.size == 0 || !d.c.passable(n) {
		return fmt.Errorf("%w: %d bytes at %#x: not whole pages that the IOMMU lets pass", ErrMapping, n.size, n.iova)
	}
	return d.c.mapDMA(n)
}

// passable reports whether the IOMMU lets the addresses of a mapping pass.
func (c *Controller) passable(m mapping) bool {
	return m.last() >= m.iova && slices.ContainsFunc(c.cfg.IOVARanges, func(r pcie.Range) bool {
		return m.iova >= r.First && m.last() <= r.Last
	})
}

// mapDMA adds a mapping.
func (c *Controller) mapDMA(m mapping) error {
	switch {
	case c.cfg.MaxMappings > 0 && len(c.dma.maps) >= c.cfg.MaxMappings || len(c.dma.maps) >= maxMappings:
		return fmt.Errorf("%w: %d bytes at %#x: no more mappings", ErrMapping, m.size, m.iova)
	case c.dma.overlaps(m.iova, m.last()):
		return fmt.Errorf("%w: %d bytes at %#x: part of it is mapped already", ErrMapping, m.size, m.iova)
	}
	c.dma.add(m)
	return nil
}

// maxMappings bounds the mappings of any driver.
const maxMappings = 1 << 16

// UnmapDMA implements pcie.Device. It works on a device that is gone.
func (d *device) UnmapDMA(iova, n uint64) error {
	c := d.c
	c.lock()
	defer c.unlock()
	if c.client.who != any(d) {
		return ErrBusy
	}
	return c.unmapDMA(iova, n)
}

func (c *Controller) unmapDMA(iova, n uint64) error {
	m, ok := c.dma.take(iova, n)
	if !ok {
		return fmt.Errorf("%w: %d bytes at %#x are not one that was made", ErrMapping, n, iova)
	}
	c.forget()
	if m.release != nil {
		return m.release()
	}
	return nil
}

// Interrupts implements pcie.Device.
func (d *device) Interrupts() int { return len(d.c.vectors) }

// SetInterrupt implements pcie.Device. The eventfd stays the caller's, and open
// until it was taken away.
func (d *device) SetInterrupt(vector, eventfd int) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.c.unlock()
	if vector < 0 || vector >= len(d.c.vectors) {
		return fmt.Errorf("%w: interrupt vector %d of %d", ErrAccess, vector, len(d.c.vectors))
	}
	return d.c.setVector(vector, eventfd)
}

// Gone implements pcie.Device.
func (d *device) Gone() bool { return d.c.gone.Load() }

// OnGone implements pcie.Device.
func (d *device) OnGone(f func()) {
	d.c.lock()
	if !d.c.gone.Load() {
		d.c.onGone = append(d.c.onGone, f)
		d.c.unlock()
		return
	}
	d.c.unlock()
	f()
}

// Close implements pcie.Device.
func (d *device) Close() error { return d.c.detach(d) }
