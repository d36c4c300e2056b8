package vfiouser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// region is a BAR or the configuration space.
type region struct {
	size  uint64
	flags uint32
	areas []area // mapped
}

// area is a part of a region that is shared memory.
type area struct {
	off    uint64 // in the region
	bytes  []byte
	window mmio.Window
}

// Room for the answer about a region: first, and at most.
const (
	regionRoom    = 4096
	maxRegionRoom = 64 << 10
)

// askRegion asks for a region and maps what the server lets us of it.
func (d *Device) askRegion(ctx context.Context, index uint32) error {
	room := uint32(regionRoom)
	for {
		ask := vfuser.RegionInfo{ArgSize: room, Index: index}
		r, err := d.client.request(ctx, vfuser.CmdRegionInfo, ask.Append(nil), nil)
		if err != nil {
			return err
		}
		info, err := vfuser.ParseRegionInfo(r.payload)
		switch {
		case err == nil && info.Index != index:
			err = fmt.Errorf("region %d for region %d", info.Index, index)
		case err == nil && info.ArgSize > room && info.ArgSize <= maxRegionRoom:
			room = info.ArgSize
			r.closeFDs()
			continue
		case err == nil && info.Size > math.MaxInt64:
			err = fmt.Errorf("region %d of %d bytes", index, info.Size)
		}
		if err != nil {
			r.closeFDs()
			return d.client.broken(err)
		}
		err = d.mapRegion(&d.regions[index], &info, &r)
		r.closeFDs()
		return err
	}
}

// mapRegion maps the areas of a region. All are in one file, or each in its own.
func (d *Device) mapRegion(g *region, info *vfuser.RegionInfo, r *reply) error {
	g.size, g.flags = info.Size, info.Flags
	areas := info.Areas
	if info.Flags&vfuser.RegionMmap == 0 || len(r.fds) == 0 {
		return nil // by messages, then
	}
	if len(areas) == 0 && info.Size > 0 {
		areas = []vfuser.Area{{Offset: 0, Size: info.Size}}
	}
	if len(r.fds) != 1 && len(r.fds) != len(areas) {
		return d.client.broken(fmt.Errorf("%d descriptors for %d areas of region %d", len(r.fds), len(areas), info.Index))
	}
	page := uint64(os.Getpagesize())
	for i, a := range areas {
		at := info.Offset + a.Offset
		if a.Size == 0 || a.Offset%page != 0 || a.Size%page != 0 || at%page != 0 {
			continue // what is no whole page cannot be mapped
		}
		if at < a.Offset || at > math.MaxInt64-a.Size {
			return d.client.broken(fmt.Errorf("area of %d bytes at %#x of a file", a.Size, at))
		}
		fd := r.fds[min(i, len(r.fds)-1)]
		b, err := mapArea(fd, int64(at), a.Size)
		if err != nil {
			return d.client.broken(fmt.Errorf("region %d, area at %#x: %w", info.Index, a.Offset, err))
		}
		g.areas = append(g.areas, area{a.Offset, b, mmio.NewWindow(b)})
	}
	slices.SortFunc(g.areas, func(a, b area) int { return cmp.Compare(a.off, b.off) })
	return nil
}

// mapArea maps a part of the server's file, which is that long at least now.
func mapArea(fd int, off int64, n uint64) ([]byte, error) {
	size, err := sys.FileSize(fd)
	if err != nil {
		return nil, err
	}
	if size < off+int64(n) {
		return nil, fmt.Errorf("a file of %d bytes for %d bytes at %#x", size, n, off)
	}
	return sys.Mmap(fd, off, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (g *region) unmap() error {
	var errs []error
	for _, a := range g.areas {
		errs = append(errs, sys.Munmap(a.bytes))
	}
	g.areas = nil
	return errors.Join(errs...)
}

// find returns the mapped memory that n bytes at off are in.
func (g *region) find(off, n uint64) (w mmio.Window, at uint64, ok bool) {
	for i := range g.areas {
		a := &g.areas[i]
		if off >= a.off && off-a.off <= a.window.Len() && n <= a.window.Len()-(off-a.off) {
			return a.window, off - a.off, true
		}
	}
	return mmio.Window{}, 0, false
}

// bounds checks an access against the size of a region.
func (d *Device) bounds(index uint32, off, n uint64) error {
	if size := d.regions[index].size; off > size || n > size-off {
		return fmt.Errorf("%w: %d bytes at %#x of region %d of %s", mmio.ErrBounds, n, off, index, d.Name())
	}
	return nil
}

// readRegion reads by message.
func (d *Device) readRegion(ctx context.Context, index uint32, off uint64, b []byte) error {
	if err := d.bounds(index, off, uint64(len(b))); err != nil {
		return err
	}
	ask := vfuser.RegionAccess{Offset: off, Region: index, Count: uint32(len(b))}
	got, err := parse(ctx, d.client, vfuser.CmdRegionRead, ask.Append(nil), nil, func(p []byte) (vfuser.RegionAccess, error) {
		return sameAccess(p, ask, true)
	})
	if err != nil {
		return err
	}
	copy(b, got.Data)
	return nil
}

// writeRegion writes by message, and waits for the device to have taken it.
func (d *Device) writeRegion(ctx context.Context, index uint32, off uint64, b []byte) error {
	if err := d.bounds(index, off, uint64(len(b))); err != nil {
		return err
	}
	ask := vfuser.RegionAccess{Offset: off, Region: index, Count: uint32(len(b)), Data: b}
	_, err := parse(ctx, d.client, vfuser.CmdRegionWrite, ask.Append(nil), nil, func(p []byte) (vfuser.RegionAccess, error) {
		return sameAccess(p, ask, false)
	})
	return err
}

// sameAccess reads the reply to an access, which repeats what was asked for.
func sameAccess(p []byte, ask vfuser.RegionAccess, data bool) (vfuser.RegionAccess, error) {
	got, err := vfuser.ParseRegionAccess(p, data)
	if err == nil && (got.Offset != ask.Offset || got.Region != ask.Region || got.Count != ask.Count) {
		err = fmt.Errorf("an answer for %d bytes at %#x of region %d, want %d at %#x of %d",
			got.Count, got.Offset, got.Region, ask.Count, ask.Offset, ask.Region)
	}
	return got, err
}

// BARSize implements pcie.Device.
func (d *Device) BARSize(bar int) uint64 {
	if bar < vfuser.RegionBAR0 || bar > vfuser.RegionBAR5 {
		return 0
	}
	return d.regions[bar].size
}

// Map implements pcie.Device. Errors: pcie.ErrNotMappable, mmio.ErrBounds,
// pcie.ErrGone. A server that cuts its file short makes accesses fault.
func (d *Device) Map(bar int, off, n uint64) (mmio.Window, error) {
	if d.BARSize(bar) == 0 {
		return mmio.Window{}, fmt.Errorf("%w: %s has no BAR %d", pcie.ErrNotMappable, d.Name(), bar)
	}
	if err := d.bounds(uint32(bar), off, n); err != nil {
		return mmio.Window{}, err
	}
	if d.Gone() {
		return mmio.Window{}, d.client.lost()
	}
	w, at, ok := d.regions[bar].find(off, n)
	if !ok {
		return mmio.Window{}, fmt.Errorf("%w: %d bytes at %#x of BAR %d of %s", pcie.ErrNotMappable, n, off, bar, d.Name())
	}
	return w.Slice(at, n)
}
