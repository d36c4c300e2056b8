//qpoll:hot

package pdu

import (
	"encoding/binary"

	"github.com/qpoll/qpoll/nvme"
)

// CapsuleCmd is a view of the header of a Command Capsule: the common header
// and the submission queue entry, bytes 71:8.
type CapsuleCmd [CapsuleCmdSize]byte

// Encode writes the whole header of a capsule with datal bytes of in-capsule
// data. l is the layout for TypeCapsuleCmd.
func (h *CapsuleCmd) Encode(l *Layout, cmd *nvme.Command, datal uint32) {
	head, plen := l.bare, l.bareLen
	if datal != 0 {
		head, plen = l.data, l.over+datal
	}
	h.Common().put(head, plen)
	*h.sqe() = *commandBytes(cmd)
}

// Common returns the common header.
func (h *CapsuleCmd) Common() *Common { return (*Common)(h[:]) }

// CID returns the command identifier, bytes 11:10.
func (h *CapsuleCmd) CID() uint16 { return binary.LittleEndian.Uint16(h[10:]) }

// Command copies the submission queue entry to cmd.
func (h *CapsuleCmd) Command(cmd *nvme.Command) { *commandBytes(cmd) = *h.sqe() }

// SetCommand sets the submission queue entry.
func (h *CapsuleCmd) SetCommand(cmd *nvme.Command) { *h.sqe() = *commandBytes(cmd) }

func (h *CapsuleCmd) sqe() *[nvme.CommandSize]byte {
	return (*[nvme.CommandSize]byte)(h[CommonSize:])
}

// CapsuleResp is a view of the header of a Response Capsule: the common header
// and the completion queue entry, bytes 23:8.
type CapsuleResp [CapsuleRespSize]byte

// Encode writes the whole header. l is the layout for TypeCapsuleResp.
func (h *CapsuleResp) Encode(l *Layout, cpl *nvme.Completion) {
	h.Common().put(l.bare, l.bareLen)
	*h.cqe() = *completionBytes(cpl)
}

// Common returns the common header.
func (h *CapsuleResp) Common() *Common { return (*Common)(h[:]) }

// CID returns the command identifier, bytes 21:20.
func (h *CapsuleResp) CID() uint16 { return binary.LittleEndian.Uint16(h[20:]) }

// Completion copies the completion queue entry to cpl.
func (h *CapsuleResp) Completion(cpl *nvme.Completion) { *completionBytes(cpl) = *h.cqe() }

// SetCompletion sets the completion queue entry.
func (h *CapsuleResp) SetCompletion(cpl *nvme.Completion) { *h.cqe() = *completionBytes(cpl) }

func (h *CapsuleResp) cqe() *[nvme.CompletionSize]byte {
	return (*[nvme.CompletionSize]byte)(h[CommonSize:])
}
