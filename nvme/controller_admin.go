package nvme

import (
	"context"
	"fmt"
)

// adminReserve is the number of admin trackers kept for the library: events,
// aborts, keep-alive, and initialisation.
const adminReserve = maxAsyncRequests + maxAborts + 2

// Admin sends one admin command and waits for its completion: raw passthrough.
// cmd.CID, the data pointer and the PSDT bits are set by the library; buf is
// read or written as the opcode's low bits say. A status other than success
// comes back as an error that wraps the Status, beside the completion. While the
// controller reconnects, the command waits. If ctx ends first, a command that
// was not sent will not be; else its fate is unknown. buf may be reused at once.
//
// After a command that formats, deletes, attaches or detaches a namespace, the
// handles of what it changed are brought up to date, since a controller need not
// report to a host what that host has done.
func (c *Controller) Admin(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	cpl, err := c.adminCommand(ctx, cmd, buf)
	if err != nil {
		err = c.opError(fmt.Sprintf("admin command %#x", uint8(cmd.Opcode)), 0, err)
	}
	return cpl, err
}

// adminCommand is Admin for callers who say better what was attempted.
func (c *Controller) adminCommand(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	cpl, err := c.passthrough(ctx, c.admin, nil, cmd, buf)
	if err == nil {
		err = c.afterAdmin(ctx, cmd)
	}
	return cpl, err
}

// afterAdmin looks at the namespaces that a command may have changed.
func (c *Controller) afterAdmin(ctx context.Context, cmd *Command) error {
	switch cmd.Opcode {
	case AdminFormatNVM, AdminNamespaceManagement, AdminNamespaceAttachment:
	default:
		return nil
	}
	var list []uint32 // all
	if cmd.NSID != NSIDAll {
		list = []uint32{cmd.NSID}
	}
	return c.opError("look at namespaces", 0, c.refreshNamespaces(ctx, list))
}

// MaxTransfer returns the most bytes that one command may move, from MDTS and
// the transport's limit; 0 means no limit.
func (c *Controller) MaxTransfer() uint32 {
	c.mu.Lock()
	m := c.limits.MaxTransfer
	page := c.cap.MinPageSize()
	c.mu.Unlock()
	if id := c.id.Load(); id != nil {
		if limit := id.MaxTransferSize(page); limit != 0 && limit < 1<<32 && (m == 0 || uint32(limit) < m) {
			m = uint32(limit)
		}
	}
	return m
}

// stripe returns the transport's Limits.Stripe.
func (c *Controller) stripe() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Stripe
}

// GetFeature reads a feature's value: the result dword, and buf where the
// feature has a data structure. sel is 0 for the current value, 1 default, 2
// saved, 3 capabilities.
func (c *Controller) GetFeature(ctx context.Context, fid FeatureID, sel uint8, nsid, cdw11 uint32, buf []byte) (uint32, error) {
	cmd := Command{Opcode: AdminGetFeatures, NSID: nsid, CDW10: uint32(fid) | uint32(sel&7)<<8, CDW11: cdw11}
	cpl, err := c.adminCommand(ctx, &cmd, buf)
	return uint32(cpl.Result), c.opError(fmt.Sprintf("get feature %#x", uint8(fid)), 0, err)
}

// SetFeature writes a feature's value and returns the result dword. save asks
// the controller to keep it across resets.
func (c *Controller) SetFeature(ctx context.Context, fid FeatureID, save bool, nsid, cdw11 uint32, buf []byte) (uint32, error) {
	cmd := Command{Opcode: AdminSetFeatures, NSID: nsid, CDW10: uint32(fid), CDW11: cdw11}
	if save {
		cmd.CDW10 |= 1 << 31
	}
	cpl, err := c.adminCommand(ctx, &cmd, buf)
	return uint32(cpl.Result), c.opError(fmt.Sprintf("set feature %#x", uint8(fid)), 0, err)
}

// Abort asks the controller to abort a command of queue sqid. It returns
// whether the controller says that it did (bit 0 of the result clear); an
// aborted command completes with StatusAbortRequested.
func (c *Controller) Abort(ctx context.Context, sqid, cid uint16) (bool, error) {
	cmd := AbortCommand{SQID: sqid, CID: cid}.Command()
	cpl, err := c.adminCommand(ctx, &cmd, nil)
	if err != nil {
		return false, c.opError("abort", 0, err)
	}
	return uint32(cpl.Result)&AbortNotPerformed == 0, nil
}
