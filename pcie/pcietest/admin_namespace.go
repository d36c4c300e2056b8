package pcietest

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// manageNamespace executes Namespace Management (5.1.21).
func (c *Controller) manageNamespace(cmd *nvme.Command) (nvme.Status, uint64) {
	if c.cfg.Capacity == 0 {
		return nvme.StatusInvalidOpcode | nvme.StatusDNR, 0
	}
	m, err := nvme.ParseNamespaceManagement(cmd)
	if err != nil {
		return invalidField, 0
	}
	if m.Delete {
		return c.deleteNamespaces(m.NSID), 0
	}
	if m.CSI != nvme.CSINVM {
		return nvme.StatusIOCommandSetNotSupported | nvme.StatusDNR, 0
	}
	b, s := c.fetchData(cmd, nvme.IdentifyDataSize)
	if s != 0 {
		return s, 0
	}
	var n nvme.NamespaceCreate
	if err := n.UnmarshalBinary(b); err != nil {
		return invalidField, 0
	}
	return c.createNamespace(&n)
}

func (c *Controller) createNamespace(n *nvme.NamespaceCreate) (nvme.Status, uint64) {
	switch {
	case int(n.FLBAS&0xf) >= len(formats) || n.FLBAS&0x60 != 0:
		return nvme.StatusInvalidFormat | nvme.StatusDNR, 0
	case n.DPS != 0 || n.NSZE == 0 || n.NVMSETID != 0 || n.ENDGID != 0:
		return invalidField, 0
	case n.NCAP != n.NSZE:
		return nvme.StatusThinProvisioningNotSupported | nvme.StatusDNR, 0
	case n.ANAGRPID > anaGroups:
		return nvme.StatusANAGroupIdentifierInvalid | nvme.StatusDNR, 0
	}
	shift := formats[n.FLBAS&0xf]
	if n.NSZE > uint64(c.unallocated())>>shift {
		return nvme.StatusNamespaceInsufficientCapacity | nvme.StatusDNR, 0
	}
	id := c.freeNSID()
	if id == 0 {
		return nvme.StatusNamespaceIDUnavailable | nvme.StatusDNR, 0
	}
	_, err := c.addNamespace(NamespaceConfig{
		NSID: id, BlockSize: 1 << shift, Size: int64(n.NSZE << shift), Detached: true,
		Shared: n.NMIC&nvme.NMICShared != 0, ANAGroup: n.ANAGRPID,
	}, true)
	if err != nil {
		return nvme.StatusInternalError, 0
	}
	return 0, uint64(id)
}

func (c *Controller) deleteNamespaces(nsid uint32) nvme.Status {
	if nsid == nvme.NSIDAll {
		for len(c.spaces) > 0 {
			if err := c.removeNamespace(len(c.spaces) - 1); err != nil {
				return nvme.StatusInternalError
			}
		}
		return 0
	}
	at, ok := c.search(nsid)
	if !ok {
		return c.noNamespace(nsid)
	}
	return status(c.removeNamespace(at))
}

// noNamespace is the status for an NSID of no namespace.
func (c *Controller) noNamespace(nsid uint32) nvme.Status {
	if c.valid(nsid) {
		return invalidField
	}
	return nvme.StatusInvalidNamespace | nvme.StatusDNR
}

// attachNamespace executes Namespace Attachment (5.1.20). There is one
// controller.
func (c *Controller) attachNamespace(cmd *nvme.Command) nvme.Status {
	if c.cfg.Capacity == 0 {
		return nvme.StatusInvalidOpcode | nvme.StatusDNR
	}
	a, err := nvme.ParseNamespaceAttachment(cmd)
	if err != nil {
		return invalidField
	}
	n := c.find(a.NSID)
	if n == nil {
		return c.noNamespace(a.NSID)
	}
	b, s := c.fetchData(cmd, nvme.IdentifyDataSize)
	if s != 0 {
		return s
	}
	ids, err := nvme.ParseIdentifierList(b)
	switch {
	case err != nil || !slices.Equal(ids, []uint16{c.cfg.ControllerID}):
		return nvme.StatusControllerListInvalid | nvme.StatusDNR
	case !a.Detach && n.attached:
		return nvme.StatusNamespaceAlreadyAttached | nvme.StatusDNR
	case a.Detach && !n.attached:
		return nvme.StatusNamespaceNotAttached | nvme.StatusDNR
	}
	n.attached = !a.Detach
	c.changed(n.nsid)
	return 0
}

// formatNVM executes Format NVM (5.1.10).
func (c *Controller) formatNVM(cmd *nvme.Command) nvme.Status {
	f, err := nvme.ParseFormat(cmd)
	switch {
	case err != nil || f.Erase > nvme.FormatEraseCrypto:
		return invalidField
	case int(f.Index) >= len(formats) || f.Extended || f.Protection != 0:
		return nvme.StatusInvalidFormat | nvme.StatusDNR
	}
	if f.NSID != nvme.NSIDAll {
		n := c.attached(f.NSID)
		if n == nil {
			return c.noNamespace(f.NSID)
		}
		return c.reformat(n, formats[f.Index])
	}
	for _, n := range c.spaces {
		if s := c.reformat(n, formats[f.Index]); s != 0 {
			return s
		}
	}
	return 0
}

// reformat erases a namespace, and gives it another block size.
func (c *Controller) reformat(n *namespace, shift uint8) nvme.Status {
	if n.cfg.ReadOnly {
		return nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
	}
	if uint64(n.cfg.Backend.Size())>>shift == 0 {
		return nvme.StatusInvalidFormat | nvme.StatusDNR
	}
	if err := zero(n.cfg.Backend, 0, n.cfg.Backend.Size()); err != nil {
		return status(err)
	}
	if n.shift == shift {
		return 0
	}
	n.shift, n.cfg.BlockSize, n.blocks = shift, 1<<shift, uint64(n.cfg.Backend.Size())>>shift
	if n.attached {
		c.changed(n.nsid)
	}
	return 0
}
