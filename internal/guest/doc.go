// Package guest boots Debian's Linux kernel in QEMU from a test, to try our code
// against the kernel's own NVMe/TCP target and initiator, vfio, PCI hot-plug and
// emulated NVMe controllers. It needs no KVM and no privileges.
//
// What a guest boots from is prepared once per machine, as root on Debian:
//
//	go run ./internal/guest/cmd/guest-assets
//
// That installs the emulators, and puts a kernel and busybox into a cache. Tests
// that boot guests have the build tag guest and do not skip: without QEMU or
// assets they fail.
//
//	go test -tags guest ./internal/guest/...
//
// # Running things
//
//	g := guest.Boot(t, guest.Config{Modules: []string{"nvme-tcp"}})
//	out := g.Shell(t, "uname -r; cat /proc/modules")
//	res, err := g.Run(ctx, "dd", "if=/dev/nvme0n1", "bs=4k", "count=1") // binary output, exit code
//	p, err := g.Start(ctx, guest.Command{Argv: ...})                    // streams, signals
//	err = g.WriteFile(ctx, "/sys/...", "1")                             // one write(2), the guest's errno
//
// An agent in the guest, which is also its init, carries this out; it is on a
// virtio-serial port, so the guest's network is free for experiments. Any number
// of requests may be in progress. When their context ends, commands are killed
// with their process group. The root file system is in memory: busybox, and what
// Config.Files and Upload put there. Build and BuildTest make static programs
// from packages of the module, to run our own code inside:
//
//	test := guest.BuildTest(t, "github.com/qpoll/qpoll/pcie", "vfio")
//	g := guest.Boot(t, guest.Config{IOMMU: true, Files: map[string]string{"/opt/t": test}, ...})
//	g.Shell(t, "/opt/t -test.v")
//
// # Network
//
// Interface i of the guest is on a network of its own with QEMU in between,
// without privileges and without anything visible on the host:
//
//   - The guest reaches what listens on 127.0.0.1 of the host at HostAddr(i).
//   - The host reaches the guest through Forward, also where the service must
//     have the same port on both sides, as the discovery service of NVMe must.
//   - Guests reach each other through forwarded ports, at HostAddr(i).
//   - SetLink cuts one interface while others live: a lost path.
//
// Packages nvmet and nvmehost, below this one, drive the kernel's target and
// initiator; package interop tests ours against them.
//
// # Devices
//
//	g := guest.Boot(t, guest.Config{
//		IOMMU:   true,
//		Modules: []string{"vfio-pci", "vfio_iommu_type1"},
//		Drives:  []guest.Drive{{ID: "d0", MiB: 64}},
//		Devices: []string{"pcie-root-port,id=rp0,slot=1,chassis=1", "nvme,id=nv0,drive=d0,serial=x,bus=rp0"},
//	})
//	dev, err := g.PCIDevices(ctx, guest.ClassNVMe)
//	err = g.BindDriver(ctx, dev[0].Addr, "vfio-pci")                  // the kernel has its own driver built in
//	err = g.QMP().Execute(ctx, "device_del", map[string]any{"id": "nv0"}, nil) // surprise removal
//
// # When things go wrong
//
// A panic or an oops ends the guest; all that is in progress fails with ErrGone
// and the end of the console. Kernel warnings fail the test of Boot at its end.
// QEMU dies with the test process, however that ends.
//
// README.md beside this file has measured figures and known limits.
package guest
