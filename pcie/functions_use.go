package pcie

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// UseKind is a way of using a block device.
type UseKind int

// The ways of using a function, a namespace or a partition.
const (
	UseMount     UseKind = iota // mounted; By is the mount point
	UseSwap                     // swapped to
	UseHolder                   // part of another block device (device mapper, md); By names it
	UseLoop                     // behind a loop device; By names it
	UseTarget                   // exported by nvmet; By names the subsystem
	UseOpen                     // open in a process; By is its number and name
	UseClaimed                  // claimed by something that cannot be seen from here
	UseFunctions                // virtual functions of it exist; By says how many
)

// Use is one reason why a function is not free.
type Use struct {
	Device string // "nvme0n1p2", "nvme0", "/dev/vfio/12"
	Kind   UseKind
	By     string
}

// String says it in words.
func (u Use) String() string {
	switch u.Kind {
	case UseMount:
		return fmt.Sprintf("%s is mounted at %s", u.Device, u.By)
	case UseSwap:
		return u.Device + " is swap space"
	case UseHolder:
		return fmt.Sprintf("%s is part of %s", u.Device, u.By)
	case UseLoop:
		return fmt.Sprintf("%s is behind %s", u.Device, u.By)
	case UseTarget:
		return fmt.Sprintf("%s is exported by nvmet subsystem %s", u.Device, u.By)
	case UseOpen:
		return fmt.Sprintf("%s is open in process %s", u.Device, u.By)
	case UseFunctions:
		return fmt.Sprintf("%s has %s", u.Device, u.By)
	}
	return u.Device + " is claimed (by a mount in another mount namespace, a device mapping, or a program)"
}

// Uses tells what uses a function's namespaces: mounts, swap space, device
// mappings, loop devices, the kernel's NVMe target, and programs that have them
// open, as far as the caller may see those. None means that it can be taken from
// the kernel's driver. A function that is bound to vfio-pci is in use by the
// programs that have its group or character device open.
func (h Host) Uses(address string) ([]Use, error) {
	f, err := h.Function(address)
	if err != nil {
		return nil, err
	}
	uses, claims, err := h.claim(&f)
	claims.close()
	return uses, err
}

// claims are block devices held open exclusively, so that nobody can mount or
// map them.
type claims []*os.File

func (c claims) close() {
	for _, f := range c {
		f.Close()
	}
}

// claim looks for uses of a function and takes hold of its namespaces.
func (h Host) claim(f *Function) ([]Use, claims, error) {
	if f.Driver == "vfio-pci" {
		uses, err := h.openIn(vfioFiles(f))
		return uses, nil, err
	}
	disks, chars, err := h.namespaces(f)
	if err != nil {
		return nil, nil, err
	}
	var uses []Use
	if n, err := strconv.Atoi(readText(h.path(pciDevices, f.Address, "sriov_numvfs"))); err == nil && n > 0 {
		uses = append(uses, Use{f.Address, UseFunctions, fmt.Sprintf("%d virtual functions", n)})
	}
	nodes := make(map[string]bool)
	for _, c := range chars {
		nodes["/dev/"+c] = true
	}
	for _, d := range disks {
		u, err := h.diskUses(d, nodes)
		if err != nil {
			return nil, nil, err
		}
		uses = append(uses, u...)
	}
	// Programs are looked for before the claims are, which are files of this one.
	open, err := h.openIn(nodes)
	if err != nil {
		return nil, nil, err
	}
	uses = append(uses, open...)
	held, busy := h.claimDisks(disks)
	if len(uses) == 0 {
		uses = busy
	}
	return uses, held, nil
}

// claimDisks opens disks exclusively, which the kernel refuses where anything
// has claimed the disk or a partition, in whatever namespace.
func (h Host) claimDisks(disks []string) (held claims, busy []Use) {
	for _, d := range disks {
		f, err := os.OpenFile(h.path("dev", d), os.O_RDONLY|syscall.O_EXCL|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			held = append(held, f)
		case errors.Is(err, syscall.EBUSY):
			busy = append(busy, Use{Device: d, Kind: UseClaimed})
		}
	}
	return held, busy
}

// pathDisk matches the name of one path of a multipath namespace, whose block
// device has the name without the controller's part.
var pathDisk = regexp.MustCompile(`^nvme(\d+)c\d+n(\d+)$`)

// namespaces returns the names of a function's block devices, and of the
// character devices of its controller and namespaces.
func (h Host) namespaces(f *Function) (disks, chars []string, err error) {
	ctrls, err := filepath.Glob(h.path(pciDevices, f.Address, "nvme", "nvme*"))
	if err != nil {
		return nil, nil, err
	}
	for _, c := range ctrls {
		chars = append(chars, filepath.Base(c))
		entries, err := os.ReadDir(c)
		if err != nil {
			return nil, nil, gone(err, f.Address)
		}
		for _, e := range entries {
			name := e.Name()
			if m := pathDisk.FindStringSubmatch(name); m != nil {
				name = "nvme" + m[1] + "n" + m[2]
			}
			if _, err := os.Stat(h.path("sys/class/block", name)); err != nil || !strings.HasPrefix(name, "nvme") {
				continue
			}
			disks = append(disks, name)
			chars = append(chars, "ng"+strings.TrimPrefix(name, "nvme"))
		}
	}
	slices.Sort(disks)
	return slices.Compact(disks), chars, nil
}

// diskUses returns the uses of a disk and its partitions, and adds their device
// nodes to nodes.
func (h Host) diskUses(disk string, nodes map[string]bool) ([]Use, error) {
	parts, err := filepath.Glob(h.path("sys/class/block", disk, disk+"p*", "partition"))
	if err != nil {
		return nil, err
	}
	devs := []string{disk}
	for _, p := range parts {
		devs = append(devs, filepath.Base(filepath.Dir(p)))
	}
	var uses []Use
	for _, d := range devs {
		nodes["/dev/"+d] = true
		for _, look := range []func(string) ([]Use, error){h.mounts, h.swaps, h.holders, h.loops, h.targets} {
			u, err := look(d)
			if err != nil {
				return nil, err
			}
			uses = append(uses, u...)
		}
	}
	return uses, nil
}

// lines calls f with the fields of each line of a file, which may be missing.
func (h Host) lines(path string, f func(fields []string)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(strings.Fields(s.Text()))
	}
	return s.Err()
}

// octal are the characters that the kernel writes as octal numbers in tables.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounts looks into mountinfo (proc(5)): by device number, and by source for
// file systems that have a number of their own.
func (h Host) mounts(dev string) (uses []Use, err error) {
	number := readText(h.path("sys/class/block", dev, "dev"))
	err = h.lines(h.path("proc/self/mountinfo"), func(f []string) {
		sep := slices.Index(f, "-")
		if len(f) < 6 || sep < 0 || sep+2 >= len(f) {
			return
		}
		if f[2] == number && number != "" || f[sep+2] == "/dev/"+dev {
			uses = append(uses, Use{dev, UseMount, octal.Replace(f[4])})
		}
	})
	return uses, err
}

func (h Host) swaps(dev string) (uses []Use, err error) {
	err = h.lines(h.path("proc/swaps"), func(f []string) {
		if len(f) > 1 && octal.Replace(f[0]) == "/dev/"+dev {
			uses = append(uses, Use{dev, UseSwap, ""})
		}
	})
	return uses, err
}

func (h Host) holders(dev string) ([]Use, error) {
	entries, err := os.ReadDir(h.path("sys/class/block", dev, "holders"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var uses []Use
	for _, e := range entries {
		by := e.Name()
		if name := readText(h.path("sys/class/block", by, "dm/name")); name != "" {
			by = fmt.Sprintf("%s (/dev/mapper/%s)", by, name)
		}
		uses = append(uses, Use{dev, UseHolder, by})
	}
	return uses, err
}

func (h Host) loops(dev string) ([]Use, error) {
	files, err := filepath.Glob(h.path("sys/class/block/loop*/loop/backing_file"))
	var uses []Use
	for _, f := range files {
		if readText(f) == "/dev/"+dev {
			uses = append(uses, Use{dev, UseLoop, filepath.Base(filepath.Dir(filepath.Dir(f)))})
		}
	}
	return uses, err
}

func (h Host) targets(dev string) ([]Use, error) {
	files, err := filepath.Glob(h.path("sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"))
	var uses []Use
	for _, f := range files {
		ns := filepath.Dir(f)
		if readText(f) == "/dev/"+dev && readText(filepath.Join(ns, "enable")) == "1" {
			uses = append(uses, Use{dev, UseTarget, filepath.Base(filepath.Dir(filepath.Dir(ns)))})
		}
	}
	return uses, err
}

// openIn finds processes that have one of the files open, this one left out.
// What the caller may not see is passed over.
func (h Host) openIn(files map[string]bool) ([]Use, error) {
	procs, err := os.ReadDir(h.path("proc"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	self := strconv.Itoa(os.Getpid())
	var uses []Use
	for _, p := range procs {
		if _, err := strconv.Atoi(p.Name()); err != nil || h.Root == "" && p.Name() == self {
			continue
		}
		seen := map[string]bool{}
		fds, _ := os.ReadDir(h.path("proc", p.Name(), "fd"))
		for _, fd := range fds {
			target, err := os.Readlink(h.path("proc", p.Name(), "fd", fd.Name()))
			if err != nil || !files[target] || seen[target] {
				continue
			}
			seen[target] = true
			by := fmt.Sprintf("%s (%s)", p.Name(), readText(h.path("proc", p.Name(), "comm")))
			uses = append(uses, Use{strings.TrimPrefix(target, "/dev/"), UseOpen, by})
		}
	}
	return uses, nil
}

// vfioFiles are the device files through which programs have a function.
func vfioFiles(f *Function) map[string]bool {
	files := map[string]bool{}
	if f.IOMMUGroup >= 0 {
		files[groupPath(f)] = true
	}
	if f.Cdev != "" {
		files["/dev/vfio/devices/"+f.Cdev] = true
	}
	return files
}

// groupPath is the file of a function's IOMMU group.
func groupPath(f *Function) string {
	if f.NoIOMMU {
		return fmt.Sprintf("/dev/vfio/noiommu-%d", f.IOMMUGroup)
	}
	return fmt.Sprintf("/dev/vfio/%d", f.IOMMUGroup)
}
