package pcietest

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// getLogPage executes Get Log Page (5.1.12).
func (c *Controller) getLogPage(cmd *nvme.Command) nvme.Status {
	g, err := nvme.ParseGetLogPage(cmd)
	if err != nil || g.Offset%4 != 0 || g.Index || g.Length > uint64(c.cfg.MaxTransfer) {
		return invalidField
	}
	page, s, err := c.logPage(g)
	switch {
	case err != nil:
		return nvme.StatusInternalError
	case s != 0:
		return s | nvme.StatusDNR
	case g.Offset > uint64(len(page)):
		return invalidField
	}
	if s := c.sendData(cmd, page[g.Offset:], int(g.Length)); s != 0 {
		return s
	}
	if !g.Retain {
		c.wasRead(g.LID)
	}
	return 0
}

// logs are the log pages there are.
var logs = []nvme.LogID{
	nvme.LogSupportedPages, nvme.LogError, nvme.LogSMART, nvme.LogFirmwareSlot, nvme.LogChangedNamespaces,
	nvme.LogCommandEffects, nvme.LogFeatureEffects,
}

func (c *Controller) logPage(g nvme.GetLogPageCommand) (b []byte, s nvme.Status, err error) {
	switch g.LID {
	case nvme.LogSupportedPages:
		b, err = c.supportedPages()
	case nvme.LogError:
		b, err = c.errors.page()
	case nvme.LogSMART:
		if g.NSID != 0 && g.NSID != nvme.NSIDAll {
			return nil, nvme.StatusInvalidField, nil // not per namespace
		}
		b, err = c.smart()
	case nvme.LogFirmwareSlot:
		f := nvme.FirmwareSlotLog{AFI: 1}
		copy(f.FRS[0][:], "        ")
		copy(f.FRS[0][:], c.cfg.Firmware)
		b, err = f.AppendBinary(nil)
	case nvme.LogChangedNamespaces:
		b, err = nvme.AppendChangedNamespaces(nil, c.events.changed)
	case nvme.LogCommandEffects:
		b, err = c.commandEffects()
	case nvme.LogFeatureEffects:
		b, err = featureEffects()
	case nvme.LogANA:
		if !c.cfg.ANA {
			return nil, nvme.StatusInvalidLogPage, nil
		}
		b, err = c.anaLog(g.LSP&nvme.LSPANAGroupsOnly != 0)
	default:
		return nil, nvme.StatusInvalidLogPage, nil
	}
	return b, 0, err
}

func (c *Controller) supportedPages() ([]byte, error) {
	var p nvme.SupportedLogPages
	for _, id := range logs {
		p.Pages[id] = nvme.LIDSupported
	}
	if c.cfg.ANA {
		p.Pages[nvme.LogANA] = nvme.LIDSupported
	}
	return p.AppendBinary(nil)
}

// smart is the SMART / Health Information of a controller in good health.
func (c *Controller) smart() ([]byte, error) {
	l := nvme.SMARTLog{
		AvailableSpare: 100, SpareThreshold: 10,
		HostReads: nvme.Uint128{Lo: c.stats.Reads}, HostWrites: nvme.Uint128{Lo: c.stats.Writes},
		PowerCycles: nvme.Uint128{Lo: 1}, PowerOnHours: nvme.Uint128{Lo: uint64(c.now) / uint64(time.Hour)},
		ErrorLogEntries: nvme.Uint128{Lo: c.errors.count},
	}
	l.SetTemperature(273 + 40)
	return l.AppendBinary(nil)
}

// commandEffects lists the commands there are.
func (c *Controller) commandEffects() ([]byte, error) {
	var l nvme.CommandEffectsLog
	for _, op := range []nvme.Opcode{
		nvme.AdminDeleteIOSQ, nvme.AdminCreateIOSQ, nvme.AdminGetLogPage, nvme.AdminDeleteIOCQ, nvme.AdminCreateIOCQ,
		nvme.AdminIdentify, nvme.AdminAbort, nvme.AdminSetFeatures, nvme.AdminGetFeatures, nvme.AdminAsyncEvent, nvme.AdminKeepAlive,
	} {
		l.Admin[op] = nvme.EffectSupported
	}
	l.Admin[nvme.AdminFormatNVM] = nvme.EffectSupported | nvme.EffectDataChange | nvme.EffectNamespaceCapability
	if !c.cfg.NoShadow {
		l.Admin[nvme.AdminDoorbellBufferConfig] = nvme.EffectSupported
	}
	if c.cfg.Capacity > 0 {
		l.Admin[nvme.AdminNamespaceManagement] = nvme.EffectSupported | nvme.EffectNamespaceInventory
		l.Admin[nvme.AdminNamespaceAttachment] = nvme.EffectSupported | nvme.EffectNamespaceInventory
	}
	for op := range l.IO {
		if knownIO(nvme.Opcode(op)) {
			l.IO[op] = nvme.EffectSupported
		}
	}
	for _, op := range []nvme.Opcode{nvme.OpWrite, nvme.OpWriteZeroes, nvme.OpDatasetManagement, nvme.OpCopy} {
		l.IO[op] |= nvme.EffectDataChange
	}
	return l.AppendBinary(nil)
}

func featureEffects() ([]byte, error) {
	var l nvme.FeatureEffectsLog
	for id := range l.Features {
		if featureOf(nvme.FeatureID(id)) != noFeature {
			l.Features[id] = nvme.EffectSupported | nvme.EffectScopeController
		}
	}
	return l.AppendBinary(nil)
}

// errorLog is the Error Information log: what commands were refused for.
type errorLog struct {
	count   uint64
	entries [errorLimit]nvme.ErrorLogEntry // a ring
}

func (l *errorLog) add(cmd *nvme.Command, sqid uint16, s nvme.Status) {
	l.count++
	l.entries[l.count%errorLimit] = nvme.ErrorLogEntry{
		ECNT: l.count, SQID: sqid, CID: cmd.CID, StatusPhase: uint16(s) << 1, PEL: 0xffff, LBA: cmd.SLBA(), NSID: cmd.NSID,
		OPC: cmd.Opcode, LPVER: 1,
	}
}

// page is the log, the latest entry first.
func (l *errorLog) page() (b []byte, err error) {
	for i := range uint64(errorLimit) {
		e := nvme.ErrorLogEntry{}
		if i < l.count {
			e = l.entries[(l.count-i)%errorLimit]
		}
		if b, err = e.AppendBinary(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}
