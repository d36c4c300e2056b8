//go:build guest

package vfio

import (
	"testing"

	"github.com/qpoll/qpoll/internal/guest"
)

// badDrive is a drive of nothing that cannot read sector 64.
var badDrive = []string{
	"-blockdev", "driver=blkdebug,node-name=bad,image.driver=null-co,image.size=16777216,image.read-zeroes=on," +
		"inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5,inject-error.0.sector=64,inject-error.0.once=off",
}

// throttle bounds the operations a second of a drive; 0: no bound.
func (m machine) throttle(t *testing.T, drive string, iops int) {
	t.Helper()
	err := m.QMP().Execute(t.Context(), "block_set_io_throttle", map[string]any{
		"device": drive, "bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": iops, "iops_rd": 0, "iops_wr": 0,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// TestDrive has all that the driver does with a controller.
func TestDrive(t *testing.T) {
	m := boot(t, guest.Config{
		Modules: []string{"vfio-pci", "vfio_iommu_type1"},
		Drives:  []guest.Drive{{ID: "d0", MiB: 128}, {ID: "d1", MiB: 64}, {ID: "d2", MiB: 64}, {ID: "d3", MiB: 16}, {ID: "d4", MiB: 16}},
		Devices: []string{
			"pcie-root-port,id=rp0,slot=1,chassis=1",
			"nvme,id=nv0,drive=d0,serial=plain,mdts=0,bus=rp0",
			"nvme,id=nv1,drive=d1,serial=cmb,cmb_size_mb=16,addr=0x10",
			"nvme,id=nv2,drive=bad,serial=bad,addr=0x11",
			"nvme,id=nv3,drive=d4,serial=slow,addr=0x12",
			"nvme-subsys,id=s0,nqn=two",
			"nvme,id=c0,subsys=s0,serial=two,addr=0x13", "nvme,id=c1,subsys=s0,serial=two,addr=0x14",
			"nvme-ns,drive=d2,nsid=1,bus=c0,shared=on",
		},
		QEMUArgs: badDrive,
	})
	const plain, cmb, bad, slow, c0, c1 = "0000:01:00.0", "0000:00:10.0", "0000:00:11.0", "0000:00:12.0", "0000:00:13.0", "0000:00:14.0"
	for _, f := range m.functions(t) {
		m.do(t, "bind", f.Address)
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"Identify", []string{"drive", plain, "identify"}},
		{"Sizes", []string{"drive", plain, "sizes"}},
		{"SGL", []string{"drive", plain, "sgl"}},
		{"Depths", []string{"drive", plain, "depths"}},
		{"Doorbells", []string{"drive", plain, "bells", "interrupts"}},
		{"Reset", []string{"drive", plain, "reset"}},
		{"CMB", []string{"drive", cmb, "cmb"}},
		{"Media", []string{"drive", bad, "media"}},
		{"Format", []string{"drive", cmb, "format"}},
		{"Namespaces", []string{"drive", c0, "attach"}},
		{"Shared", []string{"shared", c0, c1}},
		{"Soak", []string{"drive", plain, "soak"}},
	} {
		t.Run(c.name, func(t *testing.T) { t.Log(m.do(t, c.args...)) })
	}
	t.Run("Stall", func(t *testing.T) {
		m.throttle(t, "d4", 4)
		defer m.throttle(t, "d4", 0)
		t.Log(m.do(t, "drive", slow, "stall"))
	})
	t.Run("Removal", func(t *testing.T) { m.testRemovalUnderLoad(t, plain) })
	t.Run("Kernel", func(t *testing.T) {
		m.do(t, "giveback", plain)
		m.kernelHas(t, plain)
		m.Shell(t, "d=/dev/$(ls /sys/bus/pci/devices/"+plain+"/nvme/nvme*/ | grep -m1 '^nvme.*n1$' | sed 's/c[0-9]*n/n/'); mke2fs -q $d; mount -t ext2 $d /mnt; echo again > /mnt/x; umount /mnt")
	})
}

// testRemovalUnderLoad takes the function out while it is loaded, and puts
// another in that is then loaded.
func (m machine) testRemovalUnderLoad(t *testing.T, addr string) {
	b := m.start(t, "drive", addr, "gone")
	b.expect(t, m, "loaded")
	m.takeOut(t, "nv0")
	b.expect(t, m, "gone")
	b.finish(t, m)
	m.isOut(t, "nv0")
	m.putIn(t, "nv9", "d3", addr)
	m.do(t, "bind", addr)
	m.do(t, "drive", addr, "identify", "bells")
}
