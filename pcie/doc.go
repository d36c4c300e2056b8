// Package pcie drives NVMe controllers over PCI Express in user space: the
// registers of a controller are mapped into the process, and each queue pair is
// a pair of rings in memory that the controller reads and writes by itself. It
// registers itself with package nvme under the transport name "pcie".
//
// A controller is reached through a [Device]. Sections and figures in comments
// are those of the NVM Express Base Specification, revision 2.1, and, where they
// begin with "PCIe", of the NVMe over PCIe Transport Specification, revision 1.1.
package pcie
