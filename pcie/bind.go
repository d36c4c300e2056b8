package pcie

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const vfioDriver = "vfio-pci"

// Bind takes a function from its driver and binds it to vfio-pci, for which it
// sets driver_override. It does nothing to one that is bound already. It needs
// root. What it says when it cannot:
//
//   - [ErrNoFunction], [ErrNotNVMe], [ErrAddress]: there is no such controller;
//   - [InUseError]: a namespace is mounted, part of a device mapping, open and so
//     on. They are held while the driver lets go, so that nothing gets hold of
//     them meanwhile. There is no way to force it;
//   - [ErrNoIOMMU], unless the kernel's enable_unsafe_noiommu_mode is set;
//   - [ModuleError]: vfio-pci is not loaded;
//   - [PermissionError].
//
// When it fails half-way, the function is given back. ctx is looked at between
// the steps: the kernel cannot be told to stop taking a driver away.
func (h Host) Bind(ctx context.Context, address string) error {
	f, err := h.Function(address)
	if err != nil {
		return err
	}
	if f.Driver == vfioDriver {
		return nil
	}
	if f.IOMMUGroup < 0 && !h.noIOMMUAllowed() {
		return fmt.Errorf("%w (%s)", ErrNoIOMMU, f.Address)
	}
	if _, err := os.Stat(h.path("sys/bus/pci/drivers", vfioDriver)); err != nil {
		return &ModuleError{Module: vfioDriver, For: f.Address}
	}
	uses, held, err := h.claim(&f)
	defer held.close()
	switch {
	case err != nil:
		return err
	case len(uses) > 0:
		return &InUseError{f.Address, uses}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err := h.rebind(&f, vfioDriver); err != nil {
		// The driver that had it gets it back.
		return errors.Join(err, h.rebind(&f, ""))
	}
	return nil
}

// GiveBack undoes [Host.Bind]: vfio-pci lets go of the function, the override is
// taken away, and the kernel's own driver takes it. It does nothing to a function
// that another driver has. A program that has it open makes it an [InUseError],
// as the kernel would wait for that program. [ErrNoDriver]: nothing took it.
func (h Host) GiveBack(ctx context.Context, address string) error {
	f, err := h.Function(address)
	if err != nil {
		return err
	}
	if f.Driver != "" && f.Driver != vfioDriver {
		return nil
	}
	uses, held, err := h.claim(&f)
	held.close()
	switch {
	case err != nil:
		return err
	case len(uses) > 0:
		return &InUseError{f.Address, uses}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return h.rebind(&f, "")
}

// noIOMMUAllowed tells whether vfio takes functions without an IOMMU.
func (h Host) noIOMMUAllowed() bool {
	return readText(h.path("sys/module/vfio/parameters/enable_unsafe_noiommu_mode")) == "Y"
}

// rebind gives a function to a driver, or to the one that the kernel chooses.
func (h Host) rebind(f *Function, driver string) error {
	dir := h.path(pciDevices, f.Address)
	override := driver
	if driver == "" {
		override = "\n" // an empty write would not reach the kernel
	}
	if err := h.set(dir+"/driver_override", override); err != nil {
		return err
	}
	if linkBase(dir+"/driver") != "" {
		err := h.set(dir+"/driver/unbind", f.Address)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			return err
		}
	}
	// The kernel reports here why the driver's probe failed.
	probeErr := h.set(h.path("sys/bus/pci/drivers_probe"), f.Address)
	now := linkBase(dir + "/driver")
	switch {
	case driver == "" && now == "":
		return errors.Join(fmt.Errorf("%w: %s", ErrNoDriver, f.Address), probeErr)
	case driver != "" && now != driver:
		return errors.Join(fmt.Errorf("pcie: %s does not take %s", driver, f.Address), probeErr)
	}
	return nil
}

// writeFile writes to a file that is there, in one system call.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// set writes an attribute of sysfs.
func (h Host) set(path, text string) error {
	write := h.write
	if write == nil {
		write = writeFile
	}
	err := write(path, text)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return &PermissionError{h.shown(path), unwrapPath(err)}
	}
	if err != nil {
		return fmt.Errorf("pcie: writing %q to %s: %w", strings.TrimSpace(text), h.shown(path), unwrapPath(err))
	}
	return nil
}

// unwrapPath takes the path off an error, where the message has it already.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
