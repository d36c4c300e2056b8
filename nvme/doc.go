// Package nvme holds the NVMe command set and the parts of a host that do not
// depend on a transport: wire structures, status codes, the controller, its
// namespaces, and the contract that a transport's queue pair fulfils.
//
// Section numbers in comments refer to the NVM Express Base Specification,
// revision 2.0, unless another document is named.
package nvme
