// Package nvmehost drives the Linux kernel's own NVMe/TCP initiator and its
// native multipath in a test guest: to test a target of ours with it, or to
// compare an initiator of ours with it.
//
//	g := guest.Boot(t, guest.Config{Modules: nvmehost.Modules})
//	c, err := nvmehost.Connect(ctx, g, nvmehost.ConnectConfig{
//		NQN:     "nqn.2014-08.org.example:a",
//		Traddr:  guest.HostAddr(0), // what listens on 127.0.0.1 of the host
//		Trsvcid: port,
//	})
//	ns, err := nvmehost.WaitNamespace(ctx, g, c.NQN, 1)
//	// ns.Device is a block device in the guest, such as /dev/nvme0n1.
//
// The names of options and attributes are those of /dev/nvme-fabrics and of
// /sys/class/nvme (drivers/nvme/host/fabrics.c and sysfs.c of the kernel).
package nvmehost
