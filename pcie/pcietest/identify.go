package pcietest

import (
	"math/bits"

	"github.com/qpoll/qpoll/nvme"
)

// Limits that are reported, and kept to.
const (
	asyncLimit = 8
	abortLimit = 4
	errorLimit = 64
	anaGroups  = 32
)

// identify executes Identify (5.1.13).
func (c *Controller) identify(cmd *nvme.Command) nvme.Status {
	i, err := nvme.ParseIdentify(cmd)
	if err != nil {
		return invalidField
	}
	b, s, err := c.identifyData(i)
	switch {
	case err != nil:
		return nvme.StatusInternalError
	case s != 0:
		return s | nvme.StatusDNR
	}
	return c.sendData(cmd, b, nvme.IdentifyDataSize)
}

func (c *Controller) identifyData(i nvme.IdentifyCommand) (b []byte, s nvme.Status, err error) {
	switch i.CNS {
	case nvme.CNSController:
		b, err = c.identifyController().AppendBinary(nil)
	case nvme.CNSActiveNamespaces:
		return c.namespaceList(i.NSID, false)
	case nvme.CNSAllocatedNamespaces:
		return c.namespaceList(i.NSID, true)
	case nvme.CNSActiveNamespacesCS, nvme.CNSAllocatedNamespacesCS, nvme.CNSControllerCS:
		if i.CSI != nvme.CSINVM {
			return nil, nvme.StatusInvalidIOCommandSet, nil
		}
		if i.CNS != nvme.CNSControllerCS {
			return c.namespaceList(i.NSID, i.CNS == nvme.CNSAllocatedNamespacesCS)
		}
		b, err = (&nvme.IdentifyControllerNVM{VER: nvme.Version11}).AppendBinary(nil)
	case nvme.CNSIOCommandSets:
		b, err = nvme.AppendIOCommandSets(nil, []nvme.IOCommandSetVector{1 << nvme.CSINVM})
	case nvme.CNSControllers:
		return c.controllerList(i.ControllerID, true)
	default:
		return c.identifyNamespace(i)
	}
	return b, 0, err
}

// namespaceList lists attached namespaces, or all, above an NSID.
func (c *Controller) namespaceList(after uint32, all bool) ([]byte, nvme.Status, error) {
	if after >= nvme.NSIDAll-1 {
		return nil, nvme.StatusInvalidNamespace, nil
	}
	var ids []uint32
	for _, n := range c.spaces {
		if n.nsid > after && (all || n.attached) && len(ids) < nvme.IdentifyDataSize/4 {
			ids = append(ids, n.nsid)
		}
	}
	b, err := nvme.AppendNamespaceList(nil, ids)
	return b, 0, err
}

// controllerList lists this controller, if it is there and not below from.
func (c *Controller) controllerList(from uint16, there bool) ([]byte, nvme.Status, error) {
	var ids []uint16
	if there && c.cfg.ControllerID >= from {
		ids = []uint16{c.cfg.ControllerID}
	}
	b, err := nvme.AppendIdentifierList(nil, ids)
	return b, 0, err
}

// identifyNamespace is for what is about one namespace. One that is inactive
// reads as zeros, by some CNS.
func (c *Controller) identifyNamespace(i nvme.IdentifyCommand) (b []byte, s nvme.Status, err error) {
	allocated := false
	switch i.CNS {
	case nvme.CNSNamespace, nvme.CNSNamespaceDescriptors, nvme.CNSNamespaceCS, nvme.CNSNamespaceIndependent:
	case nvme.CNSAllocatedNamespace, nvme.CNSAllocatedNamespaceCS, nvme.CNSAllocatedNSIndependent, nvme.CNSNamespaceControllers:
		allocated = true
	default:
		return nil, nvme.StatusInvalidField, nil
	}
	if (i.CNS == nvme.CNSNamespaceCS || i.CNS == nvme.CNSAllocatedNamespaceCS) && i.CSI != nvme.CSINVM {
		return nil, nvme.StatusInvalidIOCommandSet, nil
	}
	n := c.find(i.NSID)
	if n == nil || !allocated && !n.attached {
		return c.identifyNone(i)
	}
	switch i.CNS {
	case nvme.CNSNamespaceDescriptors:
		id := nvme.NamespaceIdentity{EUI64: n.cfg.EUI64, NGUID: n.cfg.NGUID, UUID: n.cfg.UUID, CSI: nvme.CSINVM, HasCSI: true}
		b, err = id.AppendBinary(nil)
	case nvme.CNSNamespaceCS, nvme.CNSAllocatedNamespaceCS:
		b, err = (&nvme.IdentifyNamespaceNVM{}).AppendBinary(nil)
	case nvme.CNSNamespaceIndependent, nvme.CNSAllocatedNSIndependent:
		b, err = c.independent(n).AppendBinary(nil)
	case nvme.CNSNamespaceControllers:
		return c.controllerList(i.ControllerID, n.attached)
	default:
		b, err = c.namespaceData(n).AppendBinary(nil)
	}
	return b, 0, err
}

// identifyNone is for an NSID without a namespace. The broadcast value asks for
// what all have in common.
func (c *Controller) identifyNone(i nvme.IdentifyCommand) ([]byte, nvme.Status, error) {
	zeros := i.CNS == nvme.CNSNamespace || i.CNS == nvme.CNSNamespaceCS ||
		i.CNS == nvme.CNSAllocatedNamespace || i.CNS == nvme.CNSAllocatedNamespaceCS
	switch {
	case i.CNS == nvme.CNSNamespace && i.NSID == nvme.NSIDAll && c.cfg.Capacity > 0:
		id := &nvme.IdentifyNamespace{}
		setFormats(id)
		b, err := id.AppendBinary(nil)
		return b, 0, err
	case !c.valid(i.NSID):
		return nil, nvme.StatusInvalidNamespace, nil
	case zeros:
		return make([]byte, nvme.IdentifyDataSize), 0, nil
	}
	return nil, nvme.StatusInvalidField, nil
}

func setFormats(id *nvme.IdentifyNamespace) {
	id.NLBAF = uint8(len(formats) - 1)
	for i, shift := range formats {
		id.LBAF[i].LBADS = shift
	}
}

// namespaceData is the Identify Namespace data structure.
func (c *Controller) namespaceData(n *namespace) *nvme.IdentifyNamespace {
	id := &nvme.IdentifyNamespace{
		NSZE: n.blocks, NCAP: n.blocks, NUSE: n.blocks,
		FLBAS: n.format(), NGUID: n.cfg.NGUID, EUI64: n.cfg.EUI64,
		DLFEAT: nvme.DLFEATReadZeroes | nvme.DLFEATWriteZeroesDEAC,
		MSSRL:  copyRangeLimit, MCL: copyLimit, MSRC: copyRangesLimit - 1,
	}
	setFormats(id)
	hi, lo := bits.Mul64(n.blocks, 1<<n.shift)
	id.NVMCAP = nvme.Uint128{Lo: lo, Hi: hi}
	if n.cfg.Shared {
		id.NMIC = nvme.NMICShared
	}
	if n.cfg.ReadOnly {
		id.NSATTR = nvme.NSATTRWriteProtected
	}
	if c.cfg.ANA {
		id.ANAGRPID = n.cfg.ANAGroup
	}
	return id
}

// independent is the I/O Command Set Independent Identify Namespace data
// structure.
func (c *Controller) independent(n *namespace) *nvme.IdentifyNamespaceIndependent {
	id := &nvme.IdentifyNamespaceIndependent{NSTAT: nvme.NSTATReady}
	if n.cfg.Shared {
		id.NMIC = nvme.NMICShared
	}
	if n.cfg.ReadOnly {
		id.NSATTR = nvme.NSATTRWriteProtected
	}
	if c.cfg.ANA {
		id.ANAGRPID = n.cfg.ANAGroup
	}
	return id
}

// identifyController describes the controller.
func (c *Controller) identifyController() *nvme.IdentifyController {
	cfg := &c.cfg
	id := &nvme.IdentifyController{
		VID: cfg.Info.Vendor, SSVID: cfg.Info.SubsystemVendor,
		MDTS: uint8(bits.TrailingZeros64(uint64(cfg.MaxTransfer) >> (12 + cfg.MinPage))), CNTLID: cfg.ControllerID,
		VER: cfg.Version, OAES: c.offered(), CTRATT: nvme.CTRATTHostID128, CNTRLTYPE: nvme.ControllerTypeIO,
		RTD3E: 1000000, OACS: nvme.OACSFormatNVM, ACL: abortLimit - 1, AERL: asyncLimit - 1, ELPE: errorLimit - 1,
		FRMW: 1<<1 | 1, LPA: nvme.LPACommandEffects | nvme.LPAExtendedData,
		WCTEMP: 273 + 70, CCTEMP: 273 + 80, KAS: 1, SQES: 6 | 6<<4, CQES: 4 | 4<<4,
		NN: cfg.MaxNamespaces, MNAN: cfg.MaxNamespaces, FNA: nvme.FNACryptoErase, VWC: nvme.VWCFlushAll | nvme.VWCPresent,
		ONCS: nvme.ONCSCompare | nvme.ONCSDatasetManagement | nvme.ONCSWriteZeroes | nvme.ONCSSaveSelect |
			nvme.ONCSTimestamp | nvme.ONCSVerify | nvme.ONCSCopy,
		CDFS: 1 << nvme.CopyFormat0,
	}
	if !cfg.NoSGL {
		id.SGLS = nvme.SGLSByteAligned | nvme.SGLSBitBucket
	}
	if !cfg.NoShadow {
		id.OACS |= nvme.OACSDoorbellBufferConfig
	}
	if cfg.Capacity > 0 {
		id.OACS |= nvme.OACSNamespaceManagement
		id.TNVMCAP.Lo, id.UNVMCAP.Lo = uint64(c.total()), uint64(max(0, c.unallocated()))
	}
	for _, n := range c.spaces {
		if n.cfg.Shared {
			id.CMIC |= nvme.CMICMultipleControllers
		}
	}
	if cfg.ANA {
		id.CMIC |= nvme.CMICANAReporting
		id.ANATT, id.ANAGRPMAX, id.NANAGRPID = 10, anaGroups, anaGroups
		id.ANACAP = nvme.ANACAPOptimized | nvme.ANACAPNonOptimized | nvme.ANACAPInaccessible | nvme.ANACAPPersistentLoss | nvme.ANACAPChange
	}
	id.SetSerialNumber(cfg.Serial)
	id.SetModelNumber(cfg.Model)
	id.SetFirmwareRevision(cfg.Firmware)
	_ = id.SetSubsystemNQN(cfg.NQN) // was checked by New
	return id
}

// offered are the asynchronous events that can be asked for.
func (c *Controller) offered() uint32 {
	v := nvme.AsyncConfigNamespaceAttribute
	if c.cfg.ANA {
		v |= nvme.AsyncConfigANAChange
	}
	return v
}
