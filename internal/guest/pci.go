package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// ClassNVMe is the PCI class code of an NVMe controller.
const ClassNVMe = "0x010802"

const pciDir = "/sys/bus/pci/devices"

// PCIDevice is a PCI function in the guest, as sysfs shows it.
type PCIDevice struct {
	Addr       string // such as 0000:00:04.0
	Class      string // such as ClassNVMe
	Vendor     string // such as 0x1b36
	Device     string
	Driver     string // name of the driver that is bound, or empty
	IOMMUGroup string // number of the group, or empty
}

// PCIDevices returns the PCI functions of a class, all of them if class is
// empty, sorted by address.
func (g *Guest) PCIDevices(ctx context.Context, class string) ([]PCIDevice, error) {
	attrs := []string{"class", "vendor", "device", "driver", "iommu_group"}
	patterns := make([]string, len(attrs))
	for i, a := range attrs {
		patterns[i] = pciDir + "/*/" + a
	}
	files, err := g.Glob(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	var out []PCIDevice
	for p, f := range files {
		if path.Base(p) != "class" || (class != "" && f.Data != class) {
			continue
		}
		dir := path.Dir(p)
		out = append(out, PCIDevice{
			Addr: path.Base(dir), Class: f.Data,
			Vendor: files[dir+"/vendor"].Data, Device: files[dir+"/device"].Data,
			Driver: linkName(files[dir+"/driver"].Link), IOMMUGroup: linkName(files[dir+"/iommu_group"].Link),
		})
	}
	slices.SortFunc(out, func(a, b PCIDevice) int { return cmp.Compare(a.Addr, b.Addr) })
	return out, nil
}

func linkName(link string) string {
	if link == "" {
		return ""
	}
	return path.Base(link)
}

// BindDriver takes a PCI function from its driver and gives it to another, such
// as vfio-pci, whose module must be loaded.
func (g *Guest) BindDriver(ctx context.Context, addr, driver string) error {
	dev := pciDir + "/" + addr
	err := g.WriteFile(ctx, dev+"/driver/unbind", addr)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b Batch
	b.Write(dev+"/driver_override", driver)
	b.Write("/sys/bus/pci/drivers_probe", addr)
	if err := g.Apply(ctx, &b); err != nil {
		return err
	}
	link, err := g.Readlink(ctx, dev+"/driver")
	if err != nil {
		return fmt.Errorf("guest: %s does not take %s: %w", driver, addr, err)
	}
	if got := path.Base(link); got != driver {
		return fmt.Errorf("guest: %s is bound to %s, not %s", addr, got, driver)
	}
	return nil
}
