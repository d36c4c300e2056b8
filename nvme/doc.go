// Package nvme holds the NVMe command set and the parts of a host that do not
// depend on a transport: wire structures, status codes, the controller, its
// namespaces, and the contract that a transport's queue pair fulfils.
//
// Sections and figures in comments are those of the NVM Express Base
// Specification, revision 2.1, and of the NVM Command Set Specification, revision
// 1.1, unless another document is named.
package nvme
