package pcie

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ClassNVMe is the PCI class code of an NVM Express I/O controller (PCI Code
// and ID Assignment Specification: base class 01h, sub-class 08h, interface 02h).
const ClassNVMe = 0x010802

// Host is a machine as its kernel presents it in sysfs, procfs and /dev (Linux
// Documentation/ABI/testing/sysfs-bus-pci). The zero value is the machine that
// the program runs on. Methods may be called from any goroutine.
type Host struct {
	// Root is the directory that holds sys, proc and dev; empty means "/".
	Root string

	// write writes an attribute; nil: in the file system. Tests put a kernel here.
	write func(path, text string) error
}

// Function is a PCI function with the class code of an NVMe controller.
type Function struct {
	Address                          string // "0000:01:00.0"
	Driver                           string // the driver it is bound to, empty if none
	Vendor, Device                   uint16
	SubsystemVendor, SubsystemDevice uint16
	Class                            uint32 // 24 bits
	Revision                         uint8
	NUMANode                         int // -1: unknown
	// IOMMUGroup is the number of its group, -1 without an IOMMU.
	IOMMUGroup int
	// NoIOMMU: the group is one that vfio made up because there is no IOMMU.
	NoIOMMU bool
	// Peers are the other functions of the group: they share its translation,
	// so that all of them belong to one user.
	Peers []Peer
	BARs  [6]BAR
	// Cdev is the name of its character device in /dev/vfio/devices, such as
	// "vfio0": empty if it is not bound to vfio-pci, or the kernel has none.
	Cdev string
}

// Peer is a function that shares an IOMMU group with another.
type Peer struct {
	Address string
	Class   uint32
	Driver  string // empty if none
}

// BAR is a base address register as the kernel set it up. A 64-bit one leaves
// its successor empty.
type BAR struct {
	Start, Size uint64 // bytes; no BAR if Size is 0
	Flags       uint64 // IORESOURCE_* of linux/ioport.h
}

const pciDevices = "sys/bus/pci/devices"

func (h Host) path(elem ...string) string {
	root := h.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

// shown is a path as messages name it: without the root.
func (h Host) shown(path string) string {
	if h.Root == "" {
		return path
	}
	return "/" + strings.TrimPrefix(strings.TrimPrefix(path, filepath.Clean(h.Root)), "/")
}

// Functions lists the NVMe functions, sorted by address. A function that goes
// away meanwhile is left out.
func (h Host) Functions() ([]Function, error) {
	entries, err := os.ReadDir(h.path(pciDevices))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a machine without PCI
	}
	if err != nil {
		return nil, err
	}
	var all []Function
	for _, e := range entries {
		f, err := h.Function(e.Name())
		switch {
		case errors.Is(err, ErrNoFunction), errors.Is(err, ErrNotNVMe):
		case err != nil:
			return nil, err
		default:
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b Function) int { return strings.Compare(a.Address, b.Address) })
	return all, nil
}

// Function returns the NVMe function with that address, "0000:01:00.0" or
// without the domain "01:00.0". The error is [ErrAddress], [ErrNoFunction] or
// [ErrNotNVMe], or one of reading sysfs.
func (h Host) Function(address string) (Function, error) {
	address, err := ParseAddress(address)
	if err != nil {
		return Function{}, err
	}
	dir := h.path(pciDevices, address)
	class, err := readHex(filepath.Join(dir, "class"))
	if errors.Is(err, fs.ErrNotExist) {
		return Function{}, fmt.Errorf("%w: %s", ErrNoFunction, address)
	}
	if err != nil {
		return Function{}, err
	}
	if class != ClassNVMe {
		return Function{}, fmt.Errorf("%w: %s has class %#06x", ErrNotNVMe, address, class)
	}
	f := Function{
		Address: address, Class: uint32(class), Driver: linkBase(filepath.Join(dir, "driver")),
		NUMANode: numaNode(dir), IOMMUGroup: -1, Cdev: cdevName(dir),
	}
	if err := f.readIDs(dir); err != nil {
		return Function{}, gone(err, address)
	}
	if f.BARs, err = readBARs(filepath.Join(dir, "resource")); err != nil {
		return Function{}, gone(err, address)
	}
	return f, h.readGroup(&f, dir)
}

// gone says that a function vanished while it was looked at.
func gone(err error, address string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoFunction, address)
	}
	return err
}

func (f *Function) readIDs(dir string) error {
	for _, a := range []struct {
		name string
		to   *uint16
	}{
		{"vendor", &f.Vendor}, {"device", &f.Device},
		{"subsystem_vendor", &f.SubsystemVendor}, {"subsystem_device", &f.SubsystemDevice},
	} {
		v, err := readHex(filepath.Join(dir, a.name))
		if err != nil {
			return err
		}
		*a.to = uint16(v)
	}
	v, err := readHex(filepath.Join(dir, "revision"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // kernels before 4.10
	}
	f.Revision = uint8(v)
	return err
}

func (h Host) readGroup(f *Function, dir string) error {
	name := linkBase(filepath.Join(dir, "iommu_group"))
	if name == "" {
		return nil
	}
	group, err := strconv.Atoi(name)
	if err != nil {
		return fmt.Errorf("pcie: IOMMU group %q of %s: %w", name, f.Address, err)
	}
	f.IOMMUGroup = group
	groupDir := h.path("sys/kernel/iommu_groups", name)
	f.NoIOMMU = readText(filepath.Join(groupDir, "name")) == "vfio-noiommu"
	members, err := os.ReadDir(filepath.Join(groupDir, "devices"))
	if err != nil {
		return gone(err, f.Address)
	}
	for _, m := range members {
		if m.Name() == f.Address {
			continue
		}
		p := Peer{Address: m.Name(), Driver: linkBase(h.path(pciDevices, m.Name(), "driver"))}
		if class, err := readHex(h.path(pciDevices, m.Name(), "class")); err == nil {
			p.Class = uint32(class)
		}
		f.Peers = append(f.Peers, p)
	}
	return nil
}

// bridge tells whether a function is a PCI bridge, which no user can have and
// which does not hinder others.
func (p Peer) bridge() bool { return p.Class>>16 == 0x06 }

// Hinders tells whether the function keeps its group from being used: a driver
// other than vfio's has it. (Drivers that do no DMA of their own are harmless.)
func (p Peer) Hinders() bool {
	switch p.Driver {
	case "", "pci-stub", "pcieport", "vfio-pci":
		return false
	}
	return !p.bridge() && !strings.HasPrefix(p.Driver, "vfio")
}

// String gives address, class and driver.
func (p Peer) String() string {
	driver := p.Driver
	if driver == "" {
		driver = "no driver"
	}
	return fmt.Sprintf("%s (class %#06x, %s)", p.Address, p.Class, driver)
}

// hindering returns the peers that keep the group from being used.
func (f *Function) hindering() []Peer {
	var ps []Peer
	for _, p := range f.Peers {
		if p.Hinders() {
			ps = append(ps, p)
		}
	}
	return ps
}
