// Package pcietest is an NVMe controller in software, for tests of drivers and
// of programs that use one, in the manner of net/http/httptest:
//
//	c, err := pcietest.New(pcietest.Config{})
//	defer c.Close()
//	c.Start()            // or step it: c.Poll(now)
//	dev := c.Device()    // a pcie.Device, in this process
//
// or, for a driver in another process that speaks vfio-user, such as SPDK's or
// QEMU's:
//
//	err = c.ListenAndServe("/run/nvme/cntrl")
//
// The zero [Config] has one namespace with 64 MiB of memory. The controller
// checks what a driver does as a real one does, and refuses it with the status
// of the specification; [Controller.Faults] tells of each access to memory that
// was not mapped for it. It executes commands at once, one after the other, in
// the goroutine of Start or the caller of Poll.
//
// What can go wrong with a controller goes wrong on demand: [Controller.Inject]
// has rules for commands that are lost, late, completed twice or under another
// name, and [Controller.Fail], [Controller.Vanish] and [Controller.Remove] are
// for the controller as a whole.
//
// Section numbers and names are those of the NVMe Base Specification 2.1, the
// NVM Command Set Specification 1.1, and, where they begin with PCIe, of the
// NVMe over PCIe Transport Specification 1.1.
package pcietest
