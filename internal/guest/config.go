package guest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Config describes a guest. The zero value boots one with two CPUs, 512 MiB and
// one network interface. It is not changed by Start and Boot.
type Config struct {
	// Name appears in error messages; Boot sets it to the name of the test.
	Name string
	// Modules to load at boot, with what they need: "null_blk" or, with
	// parameters, "null_blk nr_devices=0". More can be loaded later.
	Modules []string
	// CPUs is the number of virtual CPUs; default 2.
	CPUs int
	// MemoryMiB is the size of the memory in MiB; default 512.
	MemoryMiB int
	// CPU is the CPU model of QEMU; default "max".
	CPU string
	// NICs is the number of network interfaces, at most MaxNICs; default 1.
	// NoNIC gives none.
	NICs int
	// Parallel gives each virtual CPU a thread of its own instead of running
	// them in turn. QEMU before 8.1 may then execute stale code after one CPU
	// has patched kernel code that another one runs, which the kernel reports
	// as "Oops: int3", mostly on a busy host. It is for measurements.
	Parallel bool
	// IOMMU adds an Intel IOMMU, which vfio-pci in the guest needs.
	IOMMU bool
	// Drives are sparse scratch disks, to be used by Devices.
	Drives []Drive
	// Devices are arguments of -device, such as "nvme,drive=d0,serial=x".
	Devices []string
	// QEMUArgs are appended to the command line as they are.
	QEMUArgs []string
	// KernelArgs are appended to the kernel's command line.
	KernelArgs []string
	// Files are put into the root file system, by path in the guest: the
	// path of a file of the host. They keep their execute permission.
	Files map[string]string
	// AllowFaults keeps a kernel warning on the console from failing the test
	// of Boot. A panic or an oops always does: it ends the guest.
	AllowFaults bool
	// BootTimeout bounds the time until the agent answers; default 3 minutes,
	// for a machine that is very busy.
	BootTimeout time.Duration
	// Console receives a copy of the console as it comes; nil for none.
	Console io.Writer
}

// Drive is a sparse file of zeros that lives as long as the guest.
type Drive struct {
	ID  string // the drive's id, for "drive=" of a device
	MiB int    // size in MiB
}

// NoNIC as Config.NICs gives a guest without network interfaces.
const NoNIC = -1

// MaxNICs is the largest number of network interfaces.
const MaxNICs = 8

// ErrConfig is wrapped by errors about a Config that cannot work.
var ErrConfig = errors.New("guest: bad configuration")

// withDefaults returns c with defaults filled in, or an error for what QEMU
// would not say clearly.
func (c Config) withDefaults() (Config, error) {
	c.Name = cmp.Or(c.Name, "guest")
	c.CPUs = cmp.Or(c.CPUs, 2)
	c.MemoryMiB = cmp.Or(c.MemoryMiB, 512)
	c.CPU = cmp.Or(c.CPU, "max")
	c.NICs = cmp.Or(c.NICs, 1)
	c.BootTimeout = cmp.Or(c.BootTimeout, 3*time.Minute)
	if c.NICs == NoNIC {
		c.NICs = 0
	}
	switch {
	case c.CPUs < 1 || c.CPUs > 64:
		return c, fmt.Errorf("%w: %d CPUs", ErrConfig, c.CPUs)
	case c.MemoryMiB < 128:
		return c, fmt.Errorf("%w: %d MiB of memory, want 128 or more", ErrConfig, c.MemoryMiB)
	case c.NICs < 0 || c.NICs > MaxNICs:
		return c, fmt.Errorf("%w: %d NICs, want at most %d", ErrConfig, c.NICs, MaxNICs)
	}
	for _, d := range c.Drives {
		if d.ID == "" || d.MiB <= 0 || strings.ContainsAny(d.ID, ",=/ ") {
			return c, fmt.Errorf("%w: drive %q of %d MiB", ErrConfig, d.ID, d.MiB)
		}
	}
	return c, nil
}

// splitModule splits an entry of Config.Modules.
func splitModule(m string) (name, params string) {
	name, params, _ = strings.Cut(strings.TrimSpace(m), " ")
	return name, strings.TrimSpace(params)
}
