package guest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Binary is the emulator; it is looked up in PATH.
const Binary = "qemu-system-x86_64"

// files of a running guest in its directory.
const (
	initrdFile = "initrd"
	agentFile  = "agent.sock"
	qmpFile    = "qmp.sock"
)

// kernelArgs are given to every kernel. An oops ends the guest, and its text is
// on the console. What measures wall-clock time, be it watchdogs or the checks of
// the timer interrupt and of the time stamp counter, would take a busy host for
// broken hardware.
var kernelArgs = []string{
	"console=ttyS0", "quiet", "panic=-1", "oops=panic",
	"nowatchdog", "no_timer_check", "tsc=reliable", "rcupdate.rcu_cpu_stall_suppress=1",
	"mitigations=off", "audit=0", "apparmor=0", "cryptomgr.notests", "random.trust_cpu=on",
	"rdinit=/init",
}

// qemuArgs returns the command line of QEMU, without the program. Sockets are
// clients: the harness listens, so there is no waiting for them to appear.
func qemuArgs(c *Config, kernel, dir string) []string {
	machine, accel := "q35", "tcg,thread=single"
	if c.Parallel {
		accel = "tcg,thread=multi"
	}
	kargs := kernelArgs
	a := []string{"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"}
	if c.IOMMU {
		machine += ",kernel-irqchip=split"
		kargs = append(kargs[:len(kargs):len(kargs)], "intel_iommu=on")
		// It must come before the devices behind it.
		a = append(a, "-device", "intel-iommu,intremap=on,caching-mode=on")
	}
	kargs = append(kargs[:len(kargs):len(kargs)], c.KernelArgs...)
	a = append(a,
		"-machine", machine, "-accel", accel, "-cpu", c.CPU,
		"-smp", strconv.Itoa(c.CPUs), "-m", strconv.Itoa(c.MemoryMiB),
		"-kernel", kernel, "-initrd", filepath.Join(dir, initrdFile), "-append", strings.Join(kargs, " "),
		"-serial", "stdio",
		"-chardev", "socket,id=agent,path="+filepath.Join(dir, agentFile),
		"-device", "virtio-serial-pci,id=agentbus",
		"-device", "virtserialport,bus=agentbus.0,chardev=agent,name="+portName,
		"-chardev", "socket,id=qmp,path="+filepath.Join(dir, qmpFile),
		"-mon", "chardev=qmp,mode=control",
	)
	for i := range c.NICs {
		a = append(a,
			"-netdev", fmt.Sprintf("user,id=%s,net=%s,host=%s,dhcpstart=%s,ipv6=off", nicID(i), nicNet(i), hostAddr(i), guestAddr(i)),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=%s,id=%sdev,mac=%s,romfile=", nicID(i), nicID(i), nicMAC(i)))
	}
	for _, d := range c.Drives {
		a = append(a, "-drive", fmt.Sprintf("if=none,id=%s,format=raw,cache=unsafe,discard=unmap,file=%s", d.ID, drivePath(dir, d)))
	}
	for _, d := range c.Devices {
		a = append(a, "-device", d)
	}
	return append(a, c.QEMUArgs...)
}

func drivePath(dir string, d Drive) string { return filepath.Join(dir, "drive-"+d.ID) }

// The addresses of interface i: a network of its own, on which the host, and
// what listens on the loopback interface of the host, is address 2.
func nicID(i int) string     { return fmt.Sprintf("nic%d", i) }
func nicNet(i int) string    { return fmt.Sprintf("10.0.%d.0/24", 2+i) }
func hostAddr(i int) string  { return fmt.Sprintf("10.0.%d.2", 2+i) }
func guestAddr(i int) string { return fmt.Sprintf("10.0.%d.15", 2+i) }
func nicMAC(i int) string    { return fmt.Sprintf("52:54:00:71:70:%02x", i) }
