//go:build guest

package vfio

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/pcie"
)

const workerPath = "/opt/worker"

// machine is a guest with the worker.
type machine struct{ *guest.Guest }

// boot boots a guest behind an IOMMU. The first controller is in a slot that it
// can be taken out of.
func boot(t *testing.T, cfg guest.Config) machine {
	t.Helper()
	cfg.IOMMU, cfg.NICs = true, guest.NoNIC
	cfg.Files = map[string]string{workerPath: guest.Build(t, "github.com/qpoll/qpoll/internal/guest/vfio/worker")}
	return machine{guest.Boot(t, cfg)}
}

// worker runs the worker and returns what it printed, and what went wrong.
func (m machine) worker(t *testing.T, args ...string) (string, error) {
	t.Helper()
	res, err := m.Run(t.Context(), append([]string{workerPath}, args...)...)
	var exit *guest.ExitError
	if errors.As(err, &exit) {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	if res == nil {
		return "", err
	}
	return string(res.Stdout), err
}

// do is worker for what has to work.
func (m machine) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.worker(t, args...)
	if err != nil {
		t.Fatalf("worker %q: %v\n%s", args, err, out)
	}
	return out
}

// refused runs the worker, which has to fail with a message that has all of say.
func (m machine) refused(t *testing.T, args []string, say ...string) {
	t.Helper()
	out, err := m.worker(t, args...)
	for _, s := range say {
		if err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("worker %q: %v (%q), want %q", args, err, out, s)
		}
	}
}

// functions lists the functions of the guest.
func (m machine) functions(t *testing.T) []pcie.Function {
	t.Helper()
	var all []pcie.Function
	if err := json.Unmarshal([]byte(m.do(t, "list")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDevice has all that is below the driver: finding, binding, opening and
// losing a function.
func TestDevice(t *testing.T) {
	m := boot(t, guest.Config{
		Drives: []guest.Drive{{ID: "d0", MiB: 16}, {ID: "d1", MiB: 16}},
		Devices: []string{
			"pcie-root-port,id=rp0,slot=1,chassis=1",
			"nvme,id=nv0,drive=d0,serial=first,bus=rp0",
		},
	})
	all := m.functions(t)
	if len(all) != 1 || all[0].Driver != "nvme" || all[0].IOMMUGroup < 0 || all[0].BARs[0].Size < 0x2000 {
		t.Fatalf("functions %+v", all)
	}
	addr := all[0].Address
	m.refused(t, []string{"device", addr}, "not bound to vfio-pci", "nvme")
	m.refused(t, []string{"bind", addr}, "modprobe vfio-pci")
	if err := m.LoadModule(t.Context(), "vfio-pci", ""); err != nil {
		t.Fatal(err)
	}
	m.testInUse(t, addr)
	m.do(t, "bind", addr)
	m.refused(t, []string{"device", addr}, "modprobe vfio_iommu_type1")
	if err := m.LoadModule(t.Context(), "vfio_iommu_type1", ""); err != nil {
		t.Fatal(err)
	}
	m.testNobody(t, addr)
	t.Log(m.do(t, "device", addr, "group"))
	if c := m.Console(); strings.Count(c, "DMAR: [DMA Write") < 2 {
		t.Error("the IOMMU has not complained of writes that it kept away")
	}
	m.do(t, "giveback", addr)
	m.kernelHas(t, addr)
	m.Shell(t, "mount -t ext2 /dev/nvme0n1 /mnt; cat /mnt/file; umount /mnt")
	m.do(t, "bind", addr)
	m.testRemoval(t, addr)
}

// testInUse refuses to take a function whose namespace is in use.
func (m machine) testInUse(t *testing.T, addr string) {
	m.Shell(t, "mke2fs -q /dev/nvme0n1; mount -t ext2 /dev/nvme0n1 /mnt; echo hello > /mnt/file")
	m.refused(t, []string{"bind", addr}, "in use", "nvme0n1 is mounted at /mnt")
	m.Shell(t, "umount /mnt; sleep 1000 < /dev/nvme0n1 >/dev/null 2>&1 & echo $! > /tmp/pid; sleep 0.2")
	m.refused(t, []string{"bind", addr}, "nvme0n1 is open in process", "sleep")
	m.Shell(t, "kill $(cat /tmp/pid); while [ -e /proc/$(cat /tmp/pid)/exe ]; do sleep 0.01; done")
	m.Shell(t, "dd if=/dev/nvme0n1 of=/dev/null bs=4k count=1 2>/dev/null")
}

// asNobody runs the worker on the function without privileges, and returns what
// it complained of.
func (m machine) asNobody(t *testing.T, script, addr string) string {
	t.Helper()
	m.Shell(t, "grep -q nobody /etc/passwd || echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd")
	res, err := m.Run(t.Context(), "sh", "-euc", script+"; exec su -s /bin/sh nobody -c '"+workerPath+" device "+addr+"'")
	if res == nil || err == nil {
		t.Fatalf("nobody can use the device: %v", err)
	}
	return string(res.Stderr)
}

// testNobody: what keeps a user without privileges from the device is named, and
// the value that a limit needs.
func (m machine) testNobody(t *testing.T, addr string) {
	got := m.asNobody(t, "chmod 600 /dev/vfio/[0-9]*; chmod 666 /dev/vfio/vfio", addr)
	if !strings.Contains(got, "no permission for /dev/vfio/") || !strings.Contains(got, "udev") {
		t.Errorf("permission: %s", got)
	}
	got = m.asNobody(t, "chmod 666 /dev/vfio/*; ulimit -l 64", addr)
	if !strings.Contains(got, "RLIMIT_MEMLOCK of 65536 bytes is too low, at least 2097152 are needed") {
		t.Errorf("memlock: %s", got)
	}
}

// testRemoval takes the function out while registers are read, and puts another
// in.
func (m machine) testRemoval(t *testing.T, addr string) {
	b := m.start(t, "hold", addr)
	b.expect(t, m, "holding")
	m.refused(t, []string{"giveback", addr}, "in use", "worker")
	m.takeOut(t, "nv0")
	b.expect(t, m, "gone")
	b.finish(t, m) // the kernel waits until it is closed
	m.isOut(t, "nv0")
	m.refused(t, []string{"device", addr}, "no such PCI function")
	m.putIn(t, "nv1", "d1", addr)
	m.do(t, "bind", addr)
	m.do(t, "device", addr)
	m.do(t, "giveback", addr)
}
