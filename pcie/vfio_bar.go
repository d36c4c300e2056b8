package pcie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys/devmem"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

// ErrNotMappable: a part of a BAR cannot be mapped into memory: there is none, or
// the kernel (for a page size larger than the BAR, say) or server does not let it.
var ErrNotMappable = errors.New("pcie: that part of the BAR cannot be mapped")

// vfioBAR is a base address register and its mappings, one for each part that
// can be mapped.
type vfioBAR struct {
	region vfio.Region
	mapped bool
	areas  []mappedArea
}

type mappedArea struct {
	off    uint64 // in the BAR
	bytes  []byte
	window mmio.Window
}

// mapBAR maps what can be mapped of a BAR. The lock is held, or the device new.
func (d *vfioDevice) mapBAR(i int) error {
	bar := &d.bars[i]
	if bar.mapped {
		return nil
	}
	bar.mapped = true
	page := uint64(os.Getpagesize())
	for _, a := range bar.region.Mappable {
		first := (a.Offset + page - 1) / page * page
		last := (a.Offset + a.Size) / page * page
		if last <= first || (bar.region.Offset+first)%page != 0 {
			continue
		}
		b, err := d.kernel.Mmap(d.fd, int64(bar.region.Offset+first), int(last-first))
		if err != nil {
			return errors.Join(fmt.Errorf("BAR %d: %w", i, err), d.unmapBAR(i))
		}
		bar.areas = append(bar.areas, mappedArea{first, b, mmio.NewWindow(b)})
	}
	return nil
}

func (d *vfioDevice) unmapBAR(i int) error {
	var errs []error
	for _, a := range d.bars[i].areas {
		errs = append(errs, d.kernel.Munmap(a.bytes))
	}
	d.bars[i].areas, d.bars[i].mapped = nil, false
	return errors.Join(errs...)
}

// find returns the window that n bytes at off are in.
func (b *vfioBAR) find(off, n uint64) (w mmio.Window, at uint64, ok bool) {
	for i := range b.areas {
		a := &b.areas[i]
		if off >= a.off && off-a.off <= a.window.Len() && n <= a.window.Len()-(off-a.off) {
			return a.window, off - a.off, true
		}
	}
	return mmio.Window{}, 0, false
}

// BARSize implements Device.
func (d *vfioDevice) BARSize(bar int) uint64 {
	if bar < 0 || bar >= len(d.bars) {
		return 0
	}
	return d.bars[bar].region.Size
}

// Map implements Device. Errors: ErrNotMappable, mmio.ErrBounds, ErrGone.
func (d *vfioDevice) Map(bar int, off, n uint64) (mmio.Window, error) {
	size := d.BARSize(bar)
	switch {
	case size == 0:
		return mmio.Window{}, fmt.Errorf("%w: %s has no BAR %d", ErrNotMappable, d.name, bar)
	case off > size || n > size-off:
		return mmio.Window{}, fmt.Errorf("%w: %d bytes at %#x of BAR %d", mmio.ErrBounds, n, off, bar)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.Gone() {
		return mmio.Window{}, d.goneError()
	}
	if err := d.mapBAR(bar); err != nil {
		return mmio.Window{}, fmt.Errorf("pcie: %s: %w", d.name, err)
	}
	w, at, ok := d.bars[bar].find(off, n)
	if !ok {
		return mmio.Window{}, fmt.Errorf("%w: %d bytes at %#x of BAR %d of %s", ErrNotMappable, n, off, bar, d.name)
	}
	return w.Slice(at, n)
}

// regVersion is the offset of the Version register, which is never all ones (NVMe
// Base Specification 3.1.4.2).
const regVersion = 0x08

// Read32 implements Device.
func (d *vfioDevice) Read32(off uint32) (uint32, error) {
	if d.Gone() {
		return 0, d.goneError()
	}
	v, err := d.load32(off)
	if err == nil && v == ^uint32(0) {
		err = d.lookCloser()
	}
	return v, err
}

func (d *vfioDevice) load32(off uint32) (v uint32, err error) {
	if w, at, ok := d.bars[0].find(uint64(off), 4); ok {
		v, err = devmem.Read32(w, at)
		return v, d.lost(err)
	}
	var b [4]byte
	if off%4 != 0 {
		return 0, fmt.Errorf("%w: register %#x", mmio.ErrBounds, off)
	}
	err = d.pread(&d.bars[0].region, b[:], uint64(off))
	return binary.LittleEndian.Uint32(b[:]), err
}

// lookCloser is for when a register was all ones, as all of them are when the
// function does not answer any more.
func (d *vfioDevice) lookCloser() error {
	v, err := d.load32(regVersion)
	if err != nil || v != ^uint32(0) {
		return err
	}
	d.gone.Set()
	return fmt.Errorf("%w: %s: all registers read as ones", ErrGone, d.name)
}

// Read64 implements Device.
func (d *vfioDevice) Read64(off uint32) (uint64, error) {
	if d.Gone() {
		return 0, d.goneError()
	}
	w, at, ok := d.bars[0].find(uint64(off), 8)
	if d.info.Split64 || !ok {
		lo, err := d.Read32(off)
		if err != nil {
			return 0, err
		}
		hi, err := d.Read32(off + 4)
		return uint64(hi)<<32 | uint64(lo), err
	}
	v, err := devmem.Read64(w, at)
	if err != nil {
		return 0, d.lost(err)
	}
	if v == ^uint64(0) {
		err = d.lookCloser()
	}
	return v, err
}

// Write32 implements Device.
func (d *vfioDevice) Write32(off uint32, v uint32) error {
	if d.Gone() {
		return d.goneError()
	}
	mmio.StoreFence()
	if w, at, ok := d.bars[0].find(uint64(off), 4); ok {
		return d.lost(devmem.Write32(w, at, v))
	}
	if off%4 != 0 {
		return fmt.Errorf("%w: register %#x", mmio.ErrBounds, off)
	}
	return d.pwrite(&d.bars[0].region, binary.LittleEndian.AppendUint32(nil, v), uint64(off))
}

// Write64 implements Device.
func (d *vfioDevice) Write64(off uint32, v uint64) error {
	if d.Gone() {
		return d.goneError()
	}
	w, at, ok := d.bars[0].find(uint64(off), 8)
	if d.info.Split64 || !ok {
		if err := d.Write32(off, uint32(v)); err != nil {
			return err
		}
		return d.Write32(off+4, uint32(v>>32))
	}
	mmio.StoreFence()
	return d.lost(devmem.Write64(w, at, v))
}
