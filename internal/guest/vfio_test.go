//go:build guest

package guest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/qmp"
)

// TestVFIO gives an NVMe function to vfio-pci behind an IOMMU, and then takes it
// out and puts another in while the machine runs.
func TestVFIO(t *testing.T) {
	ctx := t.Context()
	g := Boot(t, Config{
		IOMMU: true, NICs: NoNIC, Modules: []string{"vfio-pci", "vfio_iommu_type1"},
		Drives: []Drive{{ID: "d0", MiB: 16}, {ID: "d1", MiB: 32}},
		Devices: []string{
			"pcie-root-port,id=rp0,slot=1,chassis=1",
			"nvme,id=nv0,drive=d0,serial=first,bus=rp0",
		},
	})
	one := func() PCIDevice {
		t.Helper()
		all, err := g.PCIDevices(ctx, ClassNVMe)
		if err != nil || len(all) != 1 {
			t.Fatalf("functions %+v, %v", all, err)
		}
		return all[0]
	}
	d := one()
	if d.Driver != "nvme" || d.Vendor != "0x1b36" || d.IOMMUGroup == "" {
		t.Errorf("function %+v", d)
	}
	if err := g.BindDriver(ctx, d.Addr, "vfio-pci"); err != nil {
		t.Fatal(err)
	}
	if d = one(); d.Driver != "vfio-pci" {
		t.Errorf("function %+v", d)
	}
	if ok, err := g.Exists(ctx, "/dev/vfio/"+d.IOMMUGroup); !ok || err != nil {
		t.Errorf("no group device: %v", err)
	}
	if err := g.BindDriver(ctx, "0000:ff:00.0", "vfio-pci"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("binding nothing: %v", err)
	}

	if err := g.QMP().Execute(ctx, "device_del", map[string]any{"id": "nv0"}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := g.QMP().WaitEvent(ctx, func(e qmp.Event) bool {
		var d struct{ Device string }
		return e.Name == "DEVICE_DELETED" && json.Unmarshal(e.Data, &d) == nil && d.Device == "nv0"
	})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := g.PCIDevices(ctx, ClassNVMe); len(all) != 0 || err != nil {
		t.Errorf("after removal: %+v, %v", all, err)
	}
	err = g.QMP().Execute(ctx, "device_add", map[string]any{
		"driver": "nvme", "id": "nv1", "serial": "second", "bus": "rp0", "drive": "d1",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Until(ctx, "the new function", func() (bool, error) {
		all, err := g.PCIDevices(ctx, ClassNVMe)
		return len(all) == 1 && all[0].Driver == "nvme", err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Until(ctx, "the new drive", func() (bool, error) {
		f, err := g.Glob(ctx, "/sys/block/nvme*n1/size")
		return len(f) == 1 && f["/sys/block/nvme0n1/size"].Data == "65536", err
	})
	if err != nil {
		t.Error(err)
	}
}
