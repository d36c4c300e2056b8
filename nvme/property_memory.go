package nvme

import (
	"math/bits"
	"time"
)

// CMBLOC is the Controller Memory Buffer Location property (Base
// Specification 3.1.4.11).
type CMBLOC uint32

// BIR returns the number of the BAR that holds the buffer: 0, 2, 3, 4 or 5.
func (c CMBLOC) BIR() uint8 { return uint8(field(c, 0, 3)) }

// CQMMS tells whether a queue may lie partly in the buffer.
func (c CMBLOC) CQMMS() bool { return bit(c, 3) }

// CQPDS tells whether queues in the buffer may be discontiguous.
func (c CMBLOC) CQPDS() bool { return bit(c, 4) }

// CDPMLS tells whether one PRP list or SGL may lie partly in the buffer.
func (c CMBLOC) CDPMLS() bool { return bit(c, 5) }

// CDPCILS tells whether PRP lists and SGLs may lie in the buffer when their
// command does not.
func (c CMBLOC) CDPCILS() bool { return bit(c, 6) }

// CDMMMS tells whether data and metadata of a command may be mixed.
func (c CMBLOC) CDMMMS() bool { return bit(c, 7) }

// CQDA tells whether queues in the buffer need only dword alignment.
func (c CMBLOC) CQDA() bool { return bit(c, 8) }

// OFST returns the raw offset in the size unit of CMBSZ; see CMBSZ.Range.
func (c CMBLOC) OFST() uint32 { return uint32(field(c, 12, 20)) }

// CMBSZ is the Controller Memory Buffer Size property (Base Specification
// 3.1.4.12).
type CMBSZ uint32

// SQS tells whether submission queues may lie in the buffer.
func (c CMBSZ) SQS() bool { return bit(c, 0) }

// CQS tells whether completion queues may lie in the buffer.
func (c CMBSZ) CQS() bool { return bit(c, 1) }

// LISTS tells whether PRP lists and SGLs may lie in the buffer.
func (c CMBSZ) LISTS() bool { return bit(c, 2) }

// RDS tells whether data from the controller may go to the buffer.
func (c CMBSZ) RDS() bool { return bit(c, 3) }

// WDS tells whether data to the controller may come from the buffer.
func (c CMBSZ) WDS() bool { return bit(c, 4) }

// SZU returns the raw size unit, 4 KiB times 16 to the power of SZU.
func (c CMBSZ) SZU() uint8 { return uint8(field(c, 8, 4)) }

// SZ returns the raw size in size units.
func (c CMBSZ) SZ() uint32 { return uint32(field(c, 12, 20)) }

// Range returns where the buffer lies in its BAR, in bytes. ok is false for a
// reserved size unit. The end may lie past the end of the BAR, which then
// limits the buffer.
func (c CMBSZ) Range(loc CMBLOC) (offset, size uint64, ok bool) {
	if c.SZU() > 6 {
		return 0, 0, false
	}
	unit := uint64(4096) << (4 * c.SZU())
	return uint64(loc.OFST()) * unit, uint64(c.SZ()) * unit, true
}

// CMBMSC is the Controller Memory Buffer Memory Space Control property (Base
// Specification 3.1.4.17).
type CMBMSC uint64

// MakeCMBMSC composes CMBMSC; the low 12 bits of the base address are dropped.
func MakeCMBMSC(base uint64, capabilities, memorySpace bool) CMBMSC {
	return CMBMSC(base&^0xfff) | flag[CMBMSC](capabilities, 0) | flag[CMBMSC](memorySpace, 1)
}

// CRE tells whether CMBLOC and CMBSZ are enabled.
func (c CMBMSC) CRE() bool { return bit(c, 0) }

// CMSE tells whether addresses may refer to the buffer.
func (c CMBMSC) CMSE() bool { return bit(c, 1) }

// CBA returns the base address of the buffer as the controller sees it.
func (c CMBMSC) CBA() uint64 { return uint64(c) &^ 0xfff }

// CMBSTS is the Controller Memory Buffer Status property (Base Specification
// 3.1.4.18).
type CMBSTS uint32

// CBAI tells whether the base address in CMBMSC is invalid.
func (c CMBSTS) CBAI() bool { return bit(c, 0) }

// ElasticityBuffer is CMBEBS and PMREBS (Base Specification 3.1.4.19 and
// 3.1.4.27), which share a layout.
type ElasticityBuffer uint32

// Size returns the buffer size in bytes; 0 means that nothing is known.
func (e ElasticityBuffer) Size() uint64 { return scaled1024(uint32(e)) }

// ReadBypass tells whether reads pass writes that they do not conflict with.
func (e ElasticityBuffer) ReadBypass() bool { return bit(e, 4) }

// WriteThroughput is CMBSWTP and PMRSWTP (Base Specification 3.1.4.20 and
// 3.1.4.28), which share a layout.
type WriteThroughput uint32

// BytesPerSecond returns the sustained write throughput; 0 means unknown.
func (w WriteThroughput) BytesPerSecond() uint64 { return scaled1024(uint32(w)) }

// scaled1024 is bits 31:8 times 1024 to the power of bits 3:0; reserved units
// give 0.
func scaled1024(v uint32) uint64 {
	unit := v & 0xf
	if unit > 3 {
		return 0
	}
	return uint64(v>>8) << (10 * unit)
}

// PMRCAP is the Persistent Memory Region Capabilities property (Base
// Specification 3.1.4.23).
type PMRCAP uint32

// RDS tells whether data from the controller may go to the region.
func (p PMRCAP) RDS() bool { return bit(p, 3) }

// WDS tells whether data to the controller may come from the region.
func (p PMRCAP) WDS() bool { return bit(p, 4) }

// BIR returns the number of the BAR that holds the region: 2, 3, 4 or 5.
func (p PMRCAP) BIR() uint8 { return uint8(field(p, 5, 3)) }

// BarrierRead tells whether a read of the region makes earlier writes persist.
func (p PMRCAP) BarrierRead() bool { return bit(p, 10) }

// BarrierStatus tells whether a read of PMRSTS makes earlier writes persist.
func (p PMRCAP) BarrierStatus() bool { return bit(p, 11) }

// Timeout returns the least time to wait for the region after PMRCTL.EN
// changes; a reserved time unit gives 0.
func (p PMRCAP) Timeout() time.Duration {
	n := time.Duration(field(p, 16, 8))
	switch field(p, 8, 2) {
	case 0:
		return n * timeoutUnit
	case 1:
		return n * time.Minute
	}
	return 0
}

// CMSS tells whether addresses may refer to the region.
func (p PMRCAP) CMSS() bool { return bit(p, 24) }

// PMRSTS is the Persistent Memory Region Status property (Base Specification
// 3.1.4.25).
type PMRSTS uint32

// Values of PMRSTS.HSTS: the health of the region.
const (
	PMRNormal       uint8 = 0
	PMRRestoreError uint8 = 1
	PMRReadOnly     uint8 = 2
	PMRUnreliable   uint8 = 3
)

// ERR returns the vendor's error code of a write that failed, 0 for none.
func (p PMRSTS) ERR() uint8 { return uint8(p) }

// NRDY tells whether the region is not ready.
func (p PMRSTS) NRDY() bool { return bit(p, 8) }

// HSTS returns one of the PMR... health values.
func (p PMRSTS) HSTS() uint8 { return uint8(field(p, 9, 3)) }

// CBAI tells whether the base address in PMRMSCL and PMRMSCU is invalid.
func (p PMRSTS) CBAI() bool { return bit(p, 12) }

// BPINFO is the Boot Partition Information property (Base Specification
// 3.1.4.13).
type BPINFO uint32

// Values of BPINFO.BRS: the status of a boot partition read.
const (
	BootReadNone       uint8 = 0
	BootReadInProgress uint8 = 1
	BootReadComplete   uint8 = 2
	BootReadError      uint8 = 3
)

// Size returns the size of each boot partition in bytes.
func (b BPINFO) Size() uint64 { return uint64(field(b, 0, 15)) * (128 << 10) }

// BRS returns one of the BootRead... values.
func (b BPINFO) BRS() uint8 { return uint8(field(b, 24, 2)) }

// ABPID returns the active boot partition, 0 or 1.
func (b BPINFO) ABPID() uint8 { return uint8(field(b, 31, 1)) }

// BPRSEL is the Boot Partition Read Select property (Base Specification
// 3.1.4.14).
type BPRSEL uint32

// MakeBPRSEL composes BPRSEL. offset and size are in bytes, multiples of 4096
// below 4 GiB and 4 MiB.
func MakeBPRSEL(partition uint8, offset, size uint64) (BPRSEL, error) {
	if partition > 1 || (offset|size)&0xfff != 0 || bits.Len64(offset) > 32 || bits.Len64(size) > 22 {
		return 0, outOfRange("boot partition read", "partition %d, offset 0x%x, size 0x%x", partition, offset, size)
	}
	return BPRSEL(size>>12) | BPRSEL(offset>>12)<<10 | BPRSEL(partition)<<31, nil
}
