//qpoll:hot

package nvme

import "structs"

// Completion is a completion queue entry of 16 bytes, exactly as it stands on
// the wire (Base Specification 3.3.3.2, figure "Common Completion Queue Entry
// Layout"). The phase tag is bit 0 of StatusPhase; on fabrics it is reserved.
type Completion struct {
	_           structs.HostLayout
	Result      uint64 // DW0 and DW1: command specific
	SQHead      uint16
	SQID        uint16
	CID         uint16
	StatusPhase uint16 // status in bits 15:1, phase tag in bit 0
}

// CompletionSize is the size of a completion queue entry in bytes.
const CompletionSize = 16

// Status returns the status field without the phase tag.
func (c *Completion) Status() Status { return Status(c.StatusPhase >> 1) }

// Phase returns the phase tag (PCIe only).
func (c *Completion) Phase() bool { return c.StatusPhase&1 != 0 }
