// Package nvmet sets up the Linux kernel's NVMe/TCP target in a test guest, and
// changes it while initiators use it: namespaces come and go, ANA groups change
// state, ports stop and start.
//
// All is done through configfs, as described in the kernel's
// drivers/nvme/target/configfs.c, so what fails, fails with the kernel's errno.
// An attribute that a kernel lacks gives fs.ErrNotExist or fs.ErrPermission.
//
//	g := guest.Boot(t, guest.Config{})
//	tgt, err := nvmet.Start(ctx, g)
//	sub, err := tgt.AddSubsystem(ctx, nvmet.SubsystemConfig{
//		NQN:        "nqn.2014-08.org.example:a",
//		Namespaces: []nvmet.NamespaceConfig{{NSID: 1, Backend: nvmet.NullBlk{MiB: 64}}},
//	})
//	port, err := tgt.AddPort(ctx, nvmet.PortConfig{Subsystems: []*nvmet.Subsystem{sub}})
//	// An initiator on the host connects to port.HostAddr().
package nvmet
