package pcie

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeHost is a file system like that of a machine, and a kernel that binds
// functions.
type fakeHost struct {
	t *testing.T
	Host
	writes []string
	refuse map[string]error // by driver: what its probe says
}

func newFakeHost(t *testing.T) *fakeHost {
	f := &fakeHost{t: t, Host: Host{Root: t.TempDir()}, refuse: map[string]error{}}
	f.Host.write = f.bus
	f.mkdir("sys/bus/pci/devices")
	f.mkdir("sys/bus/pci/drivers/nvme")
	f.mkdir("sys/bus/pci/drivers/vfio-pci")
	f.file("proc/self/mountinfo", "21 1 0:19 / / rw - rootfs rootfs rw\n")
	f.file("proc/swaps", "Filename Type Size Used Priority\n")
	return f
}

func (f *fakeHost) mkdir(path string) {
	f.t.Helper()
	if err := os.MkdirAll(f.path(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeHost) file(path, text string) {
	f.t.Helper()
	f.mkdir(filepath.Dir(path))
	if err := os.WriteFile(f.path(path), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeHost) link(path, target string) {
	f.t.Helper()
	f.mkdir(filepath.Dir(path))
	_ = os.Remove(f.path(path))
	if err := os.Symlink(target, f.path(path)); err != nil {
		f.t.Fatal(err)
	}
}

// function adds a PCI function in an IOMMU group, "" for none.
func (f *fakeHost) function(address, class, driver, group string) {
	dir := pciDevices + "/" + address
	for name, text := range map[string]string{
		"class": class, "vendor": "0x1b36", "device": "0x0010", "subsystem_vendor": "0x1af4",
		"subsystem_device": "0x1100", "revision": "0x02", "numa_node": "-1", "driver_override": "(null)",
		"resource": "0x00000000fe800000 0x00000000fe803fff 0x0000000000140204\n" +
			strings.Repeat("0x0000000000000000 0x0000000000000000 0x0000000000000000\n", 12),
	} {
		f.file(dir+"/"+name, text+"\n")
	}
	if driver != "" {
		f.link(dir+"/driver", "../../../../bus/pci/drivers/"+driver)
	}
	if group != "" {
		f.link(dir+"/iommu_group", "../../../kernel/iommu_groups/"+group)
		f.link("sys/kernel/iommu_groups/"+group+"/devices/"+address, "../../../../devices/"+address)
	}
}

// namespace adds a controller with a namespace of two partitions to a function.
func (f *fakeHost) namespace(address, ctrl, path, disk, number string) {
	f.mkdir(pciDevices + "/" + address + "/nvme/" + ctrl + "/" + path)
	block := "sys/class/block/"
	f.file(block+disk+"/dev", number+":0\n")
	for _, part := range []string{"1", "2"} {
		f.file(block+disk+"/"+disk+"p"+part+"/partition", part+"\n")
		f.file(block+disk+"p"+part+"/dev", number+":"+part+"\n")
	}
}

// bus is what the kernel does with a write to an attribute.
func (f *fakeHost) bus(path, text string) error {
	rel := strings.TrimPrefix(path, f.Root+"/")
	f.writes = append(f.writes, rel+"="+text)
	switch {
	case strings.HasSuffix(rel, "/driver_override"):
		return os.WriteFile(path, []byte(text), 0o644)
	case strings.HasSuffix(rel, "/driver/unbind"):
		return os.Remove(filepath.Dir(path))
	case strings.HasSuffix(rel, "/drivers_probe"):
		dir := pciDevices + "/" + text
		driver := strings.TrimSpace(readText(f.path(dir, "driver_override")))
		if driver == "" {
			driver = "nvme"
		}
		if err, ok := f.refuse[driver]; ok {
			return err
		}
		f.link(dir+"/driver", "../../../../bus/pci/drivers/"+driver)
	}
	return nil
}

const addr = "0000:01:00.0"

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"0000:01:00.0": addr, "01:00.0": addr, "1:0.0": addr, "10000:E1:1f.7": "10000:e1:1f.7",
		"": "", "01:00": "", "01:00.8": "", "01:20.0": "", "100:00.0.0": "", "0000:01:00.0/..": "",
		"../../etc": "", "0000:01:00:00.0": "", "0000:+1:00.0": "", "123456789:01:00.0": "",
	} {
		got, err := ParseAddress(in)
		if got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestFunctions(t *testing.T) {
	f := newFakeHost(t)
	f.function("0000:02:00.0", "0x010802", "vfio-pci", "3")
	f.function(addr, "0x010802", "nvme", "2")
	f.function("0000:01:00.1", "0x020000", "e1000e", "2")
	f.function("0000:00:01.0", "0x060400", "shpchp", "2")
	f.function("0000:03:00.0", "0x010601", "ahci", "4")
	f.file(pciDevices+"/0000:02:00.0/vfio-dev/vfio0/dev", "511:0\n")
	f.file(pciDevices+"/0000:02:00.0/numa_node", "1\n")
	all, err := f.Functions()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	a, b := all[0], all[1]
	if a.Address != addr || a.Driver != "nvme" || a.Vendor != 0x1b36 || a.Device != 0x10 || a.SubsystemVendor != 0x1af4 ||
		a.SubsystemDevice != 0x1100 || a.Revision != 2 || a.NUMANode != -1 || a.IOMMUGroup != 2 || a.Class != ClassNVMe {
		t.Errorf("first: %+v", a)
	}
	if a.BARs[0] != (BAR{0xfe800000, 0x4000, 0x140204}) || a.BARs[1].Size != 0 {
		t.Errorf("BARs: %+v", a.BARs)
	}
	if h := a.hindering(); len(a.Peers) != 2 || len(h) != 1 || h[0].Address != "0000:01:00.1" {
		t.Errorf("peers %v, in the way %v", a.Peers, h)
	}
	if b.Cdev != "vfio0" || b.NUMANode != 1 || b.Driver != "vfio-pci" || len(b.Peers) != 0 {
		t.Errorf("second: %+v", b)
	}
	if _, err := f.Function("03:00.0"); !errors.Is(err, ErrNotNVMe) {
		t.Errorf("a disk controller of another kind: %v", err)
	}
	if _, err := f.Function("0000:09:00.0"); !errors.Is(err, ErrNoFunction) {
		t.Errorf("nothing there: %v", err)
	}
	if all, err := (Host{Root: t.TempDir()}).Functions(); all != nil || err != nil {
		t.Errorf("no PCI: %v, %v", all, err)
	}
}

func TestFunctionsHostile(t *testing.T) {
	for name, text := range map[string]string{
		"class": "gibberish", "vendor": "0xzz", "resource": "0x1 0x2\n",
	} {
		f := newFakeHost(t)
		f.function(addr, "0x010802", "nvme", "2")
		f.file(pciDevices+"/"+addr+"/"+name, text)
		if _, err := f.Functions(); err == nil {
			t.Errorf("%s of %q: no error", name, text)
		}
	}
}

func TestUses(t *testing.T) {
	const disk = "nvme0n1"
	for _, c := range []struct {
		name  string
		build func(*fakeHost)
		want  string // part of the message; "": not in use
	}{
		{"free", func(*fakeHost) {}, ""},
		{"mount", func(f *fakeHost) {
			f.file("proc/self/mountinfo", "30 1 259:2 / /mnt/my\\040data rw shared:1 - ext4 /dev/root rw\n")
		}, "nvme0n1p2 is mounted at /mnt/my data"},
		{"btrfs", func(f *fakeHost) {
			f.file("proc/self/mountinfo", "30 1 0:99 /sub /srv rw - btrfs /dev/nvme0n1 rw\n")
		}, "nvme0n1 is mounted at /srv"},
		{"swap", func(f *fakeHost) { f.file("proc/swaps", "Filename\n/dev/nvme0n1p1 partition 1 0 -2\n") }, "nvme0n1p1 is swap"},
		{"dm", func(f *fakeHost) {
			f.mkdir("sys/class/block/nvme0n1p1/holders/dm-0")
			f.file("sys/class/block/dm-0/dm/name", "vg-root\n")
		}, "nvme0n1p1 is part of dm-0 (/dev/mapper/vg-root)"},
		{"md", func(f *fakeHost) { f.mkdir("sys/class/block/nvme0n1/holders/md127") }, "part of md127"},
		{"loop", func(f *fakeHost) {
			f.file("sys/class/block/loop3/loop/backing_file", "/dev/nvme0n1\n")
		}, "nvme0n1 is behind loop3"},
		{"nvmet", func(f *fakeHost) {
			ns := "sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/"
			f.file(ns+"device_path", "/dev/nvme0n1\n")
			f.file(ns+"enable", "1\n")
		}, "exported by nvmet subsystem nqn.x"},
		{"nvmet, disabled", func(f *fakeHost) {
			ns := "sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/"
			f.file(ns+"device_path", "/dev/nvme0n1\n")
			f.file(ns+"enable", "0\n")
		}, ""},
		{"open", func(f *fakeHost) {
			f.link("proc/4711/fd/3", "/dev/nvme0")
			f.file("proc/4711/comm", "nvme-cli\n")
		}, "nvme0 is open in process 4711 (nvme-cli)"},
		{"open character device", func(f *fakeHost) {
			f.link("proc/4711/fd/3", "/dev/ng0n1")
			f.file("proc/4711/comm", "fio\n")
		}, "ng0n1 is open in process 4711 (fio)"},
		{"virtual functions", func(f *fakeHost) { f.file(pciDevices+"/"+addr+"/sriov_numvfs", "2\n") }, "2 virtual functions"},
		{"something else", func(f *fakeHost) {
			f.link("proc/4711/fd/3", "/dev/nvme1n1")
			f.file("proc/self/mountinfo", "30 1 259:20 / /mnt rw - ext4 /dev/nvme0n10 rw\nshort\n")
		}, ""},
	} {
		for _, path := range []string{disk, "nvme0c3n1"} { // the latter with native multipath
			f := newFakeHost(t)
			f.function(addr, "0x010802", "nvme", "2")
			f.namespace(addr, "nvme0", path, disk, "259")
			c.build(f)
			uses, err := f.Uses(addr)
			if err != nil || (len(uses) > 0) != (c.want != "") || len(uses) > 1 {
				t.Errorf("%s, %s: %v, %v", c.name, path, uses, err)
				continue
			}
			err = f.Bind(t.Context(), addr)
			var in *InUseError
			if c.want == "" {
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			if !errors.As(err, &in) || !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			if len(f.writes) > 0 {
				t.Errorf("%s: in use, and yet it wrote %q", c.name, f.writes)
			}
		}
	}
}

func TestBind(t *testing.T) {
	f := newFakeHost(t)
	f.function(addr, "0x010802", "nvme", "2")
	for range 2 {
		if err := f.Bind(t.Context(), "01:00.0"); err != nil {
			t.Fatal(err)
		}
	}
	dev := pciDevices + "/" + addr
	want := []string{dev + "/driver_override=vfio-pci", dev + "/driver/unbind=" + addr, "sys/bus/pci/drivers_probe=" + addr}
	if !slices.Equal(f.writes, want) {
		t.Errorf("wrote %q", f.writes)
	}
	f.writes = nil
	for range 2 {
		if err := f.GiveBack(t.Context(), addr); err != nil {
			t.Fatal(err)
		}
	}
	want[0] = dev + "/driver_override=\n"
	if !slices.Equal(f.writes, want) {
		t.Errorf("wrote %q", f.writes)
	}
	if got, _ := f.Function(addr); got.Driver != "nvme" {
		t.Errorf("driver %q", got.Driver)
	}
}

func TestBindOpen(t *testing.T) {
	for _, file := range []string{"/dev/vfio/2", "/dev/vfio/devices/vfio7"} {
		f := newFakeHost(t)
		f.function(addr, "0x010802", "vfio-pci", "2")
		f.file(pciDevices+"/"+addr+"/vfio-dev/vfio7/dev", "511:7\n")
		f.link("proc/4711/fd/9", file)
		f.file("proc/4711/comm", "qemu\n")
		if err := f.GiveBack(t.Context(), addr); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "4711 (qemu)") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestBindErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*fakeHost)
		want  error
		say   string
	}{
		{"no IOMMU", func(f *fakeHost) { f.function(addr, "0x010802", "nvme", "") }, ErrNoIOMMU, "intel_iommu=on"},
		{"no module", func(f *fakeHost) {
			f.function(addr, "0x010802", "nvme", "1")
			if err := os.Remove(f.path("sys/bus/pci/drivers/vfio-pci")); err != nil {
				t.Fatal(err)
			}
		}, ErrModule, "modprobe vfio-pci"},
		{"permission", func(f *fakeHost) {
			f.function(addr, "0x010802", "nvme", "1")
			f.Host.write = func(path, _ string) error { return &os.PathError{Op: "open", Path: path, Err: os.ErrPermission} }
		}, ErrPermission, "/sys/bus/pci/devices/" + addr + "/driver_override"},
		{"nothing", func(*fakeHost) {}, ErrNoFunction, addr},
	} {
		f := newFakeHost(t)
		c.build(f)
		if err := f.Bind(t.Context(), addr); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// vfio-pci does not want it: nvme gets it back.
	f := newFakeHost(t)
	f.function(addr, "0x010802", "nvme", "")
	f.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n")
	why := errors.New("probe failed")
	f.refuse["vfio-pci"] = why
	if err := f.Bind(t.Context(), addr); !errors.Is(err, why) {
		t.Errorf("refused: %v", err)
	}
	if got, _ := f.Function(addr); got.Driver != "nvme" {
		t.Errorf("driver %q", got.Driver)
	}
	// nor does nvme.
	f.refuse["nvme"] = why
	delete(f.refuse, "vfio-pci")
	if err := f.Bind(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	if err := f.GiveBack(t.Context(), addr); !errors.Is(err, ErrNoDriver) || !errors.Is(err, why) {
		t.Errorf("no driver: %v", err)
	}
}
