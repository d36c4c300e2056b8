package target

import (
	"math/bits"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Limits that are reported, and kept to.
const (
	asyncLimit = 16 // outstanding Asynchronous Event Requests
	abortLimit = 4  // outstanding Abort commands
	errorLimit = 64 // entries of the Error Information log
)

// offeredEvents are the notices that controllers can report.
const (
	offeredEvents          = nvme.AsyncConfigNamespaceAttribute | nvme.AsyncConfigANAChange
	offeredDiscoveryEvents = nvme.AsyncConfigDiscovery
)

// identifyController describes a controller.
func (ctrl *controller) identifyController() *nvme.IdentifyController {
	sub := ctrl.sub
	cfg := &sub.cfg
	id := &nvme.IdentifyController{
		MDTS:      uint8(bits.TrailingZeros32(cfg.MaxTransfer / 4096)),
		CNTLID:    ctrl.id,
		VER:       version,
		AERL:      asyncLimit - 1,
		ELPE:      errorLimit - 1,
		LPA:       nvme.LPAExtendedData,
		KAS:       uint16(cfg.KeepAlive.Granularity / granularityUnit),
		CTRATT:    nvme.CTRATTHostID128,
		CQT:       uint16((cfg.QuiesceTime + time.Millisecond - 1) / time.Millisecond),
		MAXCMD:    uint16(cfg.QueueEntries),
		SGLS:      nvme.SGLSByteAligned | nvme.SGLSOffset | nvme.SGLSTransport,
		IOCCSZ:    (nvme.CommandSize + uint32(sub.t.cfg.Transport.InCapsule)) / 16,
		IORCSZ:    nvme.CompletionSize / 16,
		MSDBD:     1,
		FRMW:      1<<1 | 1, // one slot, read only
		OFCS:      nvme.OFCSDisconnect,
		RTD3E:     1000000,
		CNTRLTYPE: nvme.ControllerTypeIO,
	}
	if cfg.KeepAlive.Traffic {
		id.CTRATT |= nvme.CTRATTTrafficKeepAlive
	}
	id.SetSerialNumber(cfg.Serial)
	id.SetModelNumber(cfg.Model)
	id.SetFirmwareRevision(cfg.Firmware)
	// The name was checked when the subsystem was added.
	_ = id.SetSubsystemNQN(cfg.NQN)
	if sub.discovery {
		id.CNTRLTYPE = nvme.ControllerTypeDiscovery
		id.DCTYPE = nvme.DiscoveryTypeDirect
		id.OAES = offeredDiscoveryEvents
		id.OFCS = 0
		return id
	}
	ctrl.identifyIO(id)
	return id
}

// identifyIO adds what only I/O controllers have.
func (ctrl *controller) identifyIO(id *nvme.IdentifyController) {
	cfg := &ctrl.sub.cfg
	id.CMIC = nvme.CMICMultiplePorts | nvme.CMICMultipleControllers
	id.OAES = offeredEvents &^ nvme.AsyncConfigANAChange
	id.ACL = abortLimit - 1
	id.LPA |= nvme.LPACommandEffects | nvme.LPAMiscellaneous
	id.SQES, id.CQES = 6|6<<4, 4|4<<4
	id.NN = cfg.MaxNSID
	id.MNAN = uint32(cfg.MaxNamespaces)
	id.ONCS = nvme.ONCSCompare | nvme.ONCSDatasetManagement | nvme.ONCSWriteZeroes | nvme.ONCSSaveSelect |
		nvme.ONCSTimestamp | nvme.ONCSVerify
	if !cfg.NoFused {
		id.FUSES = nvme.FUSESCompareAndWrite
		id.ACWU = uint16(min(cfg.MaxTransfer/maxBlockSize-1, 0xffff))
	}
	id.VWC = nvme.VWCFlushAll
	for _, n := range ctrl.sub.namespaces {
		if n.cfg.Backend.Info().VolatileCache {
			id.VWC |= nvme.VWCPresent
		}
	}
	if cfg.NoANA {
		return
	}
	id.CMIC |= nvme.CMICANAReporting
	id.OAES |= nvme.AsyncConfigANAChange
	id.ANATT = uint8((cfg.TransitionTime + time.Second - 1) / time.Second)
	id.ANACAP = nvme.ANACAPOptimized | nvme.ANACAPNonOptimized | nvme.ANACAPInaccessible |
		nvme.ANACAPPersistentLoss | nvme.ANACAPChange
	id.ANAGRPMAX, id.NANAGRPID = cfg.ANAGroups, cfg.ANAGroups
}

// data is the Identify Namespace data structure.
func (n *Namespace) data() *nvme.IdentifyNamespace {
	c := &n.cfg
	id := &nvme.IdentifyNamespace{
		NSZE: n.blocks, NCAP: n.blocks, NUSE: n.blocks,
		NOIOB: c.Boundary,
		NGUID: c.NGUID, EUI64: c.EUI64,
		ANAGRPID: n.group(),
	}
	id.LBAF[0].LBADS = uint8(bits.TrailingZeros32(c.BlockSize))
	size := uint64(c.BlockSize)
	hi, lo := bits.Mul64(n.blocks, size)
	id.NVMCAP = nvme.Uint128{Lo: lo, Hi: hi}
	if !c.Private {
		id.NMIC = nvme.NMICShared
	}
	if c.ReadOnly {
		id.NSATTR = nvme.NSATTRWriteProtected
	}
	if c.Backend.Info().Zeroes {
		id.DLFEAT = nvme.DLFEATReadZeroes | nvme.DLFEATWriteZeroesDEAC
	}
	n.hints(id)
	return id
}

// hints fills in what the configuration says about good sizes.
func (n *Namespace) hints(id *nvme.IdentifyNamespace) {
	c := &n.cfg
	if c.WriteGranularity|c.WriteAlignment|c.DeallocateGranularity|c.DeallocateAlignment|c.OptimalWrite == 0 {
		return
	}
	minusOne := func(v uint16) uint16 { return max(v, 1) - 1 }
	id.NSFEAT |= 1 << 4 // OPTPERF
	id.NPWG, id.NPWA = minusOne(c.WriteGranularity), minusOne(c.WriteAlignment)
	id.NPDG, id.NPDA = minusOne(c.DeallocateGranularity), minusOne(c.DeallocateAlignment)
	id.NOWS = minusOne(c.OptimalWrite)
}

// group is the ANA group as it is reported.
func (n *Namespace) group() uint32 {
	if n.sub.cfg.NoANA {
		return 0
	}
	return n.cfg.ANAGroup
}

// independent is the I/O Command Set Independent Identify Namespace data
// structure.
func (n *Namespace) independent() *nvme.IdentifyNamespaceIndependent {
	id := &nvme.IdentifyNamespaceIndependent{
		ANAGRPID: n.group(),
		NSTAT:    nvme.NSTATReady,
	}
	if !n.cfg.Private {
		id.NMIC = nvme.NMICShared
	}
	if n.cfg.ReadOnly {
		id.NSATTR = nvme.NSATTRWriteProtected
	}
	if !n.cfg.Backend.Info().VolatileCache {
		id.NSFEAT |= nvme.NSFEATIndependentNoCache
	}
	return id
}
