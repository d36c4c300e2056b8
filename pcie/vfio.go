package pcie

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// VFIOBackend is a way of the kernel's to hand out a function.
type VFIOBackend int

// The ways. Both do the same for a driver.
const (
	// VFIOAuto takes the character device where there is one, else the group.
	VFIOAuto VFIOBackend = iota
	// VFIOGroup is a container of the type 1 IOMMU driver and /dev/vfio/GROUP.
	VFIOGroup
	// VFIOCdev is iommufd and /dev/vfio/devices/vfioN (Linux 6.6 and later).
	VFIOCdev
)

// VFIOConfig says how to open a function. The zero value works.
type VFIOConfig struct {
	Backend VFIOBackend
	// NoIOMMU allows a function that no IOMMU stands in front of, for which the
	// kernel wants vfio's enable_unsafe_noiommu_mode. The controller can then
	// write anywhere in memory: a mistake anywhere corrupts the machine. It needs
	// root, and huge pages for all DMA memory. Where there is an IOMMU, it
	// changes nothing.
	NoIOMMU bool
	// Host is the machine; the zero value is this one.
	Host Host

	kernel vfioKernel // nil: the real one
}

// OpenVFIO opens the NVMe function with that address, which is bound to vfio-pci
// (see [Host.Bind]). The kernel resets it; bus mastering is off. A Device of a
// function without an IOMMU is a [PhysicalAddresser]. The caller closes it.
//
// What it says when it cannot, each with what to do about it: [ErrNoFunction],
// [ErrNotNVMe], [ErrAddress], [ErrNotBound], [ErrNoIOMMU], [ModuleError],
// [GroupError], [PermissionError], [InUseError] where another program has the
// group, or an error of the kernel's that names the call. ctx is looked at
// between the steps: the reset that comes with opening takes up to a second.
func OpenVFIO(ctx context.Context, address string, cfg VFIOConfig) (Device, error) {
	f, err := cfg.Host.Function(address)
	if err != nil {
		return nil, err
	}
	if err := openable(&f, &cfg); err != nil {
		return nil, err
	}
	if cfg.kernel == nil {
		cfg.kernel = linuxVFIO{}
	}
	o := vfioOpener{kernel: cfg.kernel, host: cfg.Host, f: f}
	fd, space, err := o.open(ctx, cfg.Backend)
	if err != nil {
		return nil, fmt.Errorf("pcie: opening %s: %w", f.Address, err)
	}
	d, err := newVFIODevice(cfg.kernel, &f, fd, space)
	if err != nil {
		return nil, fmt.Errorf("pcie: opening %s: %w", f.Address, err)
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), d.Close())
	}
	if f.NoIOMMU {
		return &noIOMMUDevice{vfioDevice: d}, nil
	}
	return d, nil
}

// openable says what is wrong before the kernel is asked.
func openable(f *Function, cfg *VFIOConfig) error {
	switch {
	case f.Driver == "nvme" || f.Driver == "":
		driver := "it has no driver"
		if f.Driver != "" {
			driver = "it is bound to " + f.Driver
		}
		return fmt.Errorf("%w: %s: %s", ErrNotBound, f.Address, driver)
	case !strings.Contains(f.Driver, "vfio"): // vfio-pci, or a variant of it
		return fmt.Errorf("%w: %s: it is bound to %s", ErrNotBound, f.Address, f.Driver)
	case f.IOMMUGroup < 0 && f.Cdev == "":
		return fmt.Errorf("%w (%s)", ErrNoIOMMU, f.Address)
	case f.NoIOMMU && !cfg.NoIOMMU:
		return fmt.Errorf("%w (%s; VFIOConfig.NoIOMMU goes without)", ErrNoIOMMU, f.Address)
	case f.NoIOMMU && cfg.Backend == VFIOCdev:
		return fmt.Errorf("%w (%s; iommufd needs one)", ErrNoIOMMU, f.Address)
	}
	return nil
}

// vfioOpener opens one function.
type vfioOpener struct {
	kernel vfioKernel
	host   Host
	f      Function
}

// open tries the ways in their order. The errors of all come back.
func (o *vfioOpener) open(ctx context.Context, backend VFIOBackend) (fd int, space dmaSpace, err error) {
	if backend == VFIOCdev || backend == VFIOAuto && o.hasCdev() {
		fd, space, err = o.openCdev()
		// A group whose device another program has cannot be had in the other
		// way either.
		if err == nil || backend == VFIOCdev || errors.Is(err, ErrInUse) {
			return fd, space, err
		}
	}
	if ctx.Err() != nil {
		return -1, nil, errors.Join(context.Cause(ctx), err)
	}
	fd, space, gerr := o.openGroup()
	if gerr != nil {
		return -1, nil, errors.Join(gerr, err)
	}
	return fd, space, nil
}

func (o *vfioOpener) hasCdev() bool {
	if o.f.Cdev == "" || o.f.NoIOMMU {
		return false
	}
	_, err := os.Stat(o.host.path(iommufdPath))
	return err == nil
}
