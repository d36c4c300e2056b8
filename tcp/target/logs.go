package target

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// getLogPage executes a Get Log Page command.
func (c *conn) getLogPage(r *request) {
	cmd, err := nvme.ParseGetLogPage(&r.cmd)
	if err != nil || cmd.Offset%4 != 0 || cmd.Index {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	page, s, err := c.ctrl.logPage(cmd, c)
	if s == 0 && err == nil && cmd.Offset > uint64(len(page)) {
		s = nvme.StatusInvalidField
	}
	if s != 0 {
		c.fail(r, s|nvme.StatusDNR)
		return
	}
	if err == nil {
		page = page[cmd.Offset:]
	}
	if !cmd.Retain {
		c.ctrl.cleared(cmd.LID)
	}
	c.replyBytes(r, cmd.Length, page, err)
}

// cleared allows the next event that belongs to a log page: the page was read
// without retaining it.
func (ctrl *controller) cleared(id nvme.LogID) {
	switch id {
	case nvme.LogChangedNamespaces:
		ctrl.logRead(eventNamespace)
	case nvme.LogANA:
		ctrl.logRead(eventANA)
	case nvme.LogDiscovery:
		ctrl.logRead(eventDiscovery)
	}
}

// logs are the log pages of I/O controllers, discoveryLogs those of discovery
// controllers.
var (
	logs = []nvme.LogID{
		nvme.LogSupportedPages, nvme.LogError, nvme.LogSMART, nvme.LogFirmwareSlot, nvme.LogChangedNamespaces,
		nvme.LogCommandEffects, nvme.LogANA, nvme.LogFeatureEffects,
	}
	discoveryLogs = []nvme.LogID{nvme.LogSupportedPages, nvme.LogError, nvme.LogDiscovery}
)

func (ctrl *controller) logs() []nvme.LogID {
	switch {
	case ctrl.sub.discovery:
		return discoveryLogs
	case ctrl.sub.cfg.NoANA:
		return append(logs[:6:6], nvme.LogFeatureEffects)
	}
	return logs
}

// logPage returns a log page as a whole, or a status.
func (ctrl *controller) logPage(cmd nvme.GetLogPageCommand, c *conn) (page []byte, s nvme.Status, err error) {
	known := false
	for _, id := range ctrl.logs() {
		known = known || id == cmd.LID
	}
	if !known {
		return nil, nvme.StatusInvalidLogPage, nil
	}
	switch cmd.LID {
	case nvme.LogSupportedPages:
		page, err = ctrl.supportedPages()
	case nvme.LogError:
		page, err = ctrl.errorLog.page()
	case nvme.LogSMART:
		if cmd.NSID != 0 && cmd.NSID != nvme.NSIDAll {
			return nil, nvme.StatusInvalidField, nil // not per namespace
		}
		page, err = ctrl.smart()
	case nvme.LogFirmwareSlot:
		page, err = ctrl.firmwareSlots()
	case nvme.LogCommandEffects:
		page, err = ctrl.commandEffects()
	case nvme.LogFeatureEffects:
		page, err = ctrl.featureEffects()
	default:
		return ctrl.changingPage(cmd, c)
	}
	return page, 0, err
}

// changingPage returns one of the log pages that events report changes of.
func (ctrl *controller) changingPage(cmd nvme.GetLogPageCommand, c *conn) (page []byte, s nvme.Status, err error) {
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	switch cmd.LID {
	case nvme.LogChangedNamespaces:
		page, err = nvme.AppendChangedNamespaces(nil, ctrl.events.changed)
	case nvme.LogANA:
		page = ctrl.sub.anaLog(ctrl.port, cmd.LSP&nvme.LSPANAGroupsOnly != 0)
	case nvme.LogDiscovery:
		page, err = t.discoveryLog(ctrl, c, cmd.LSP)
	}
	return page, 0, err
}

func (ctrl *controller) supportedPages() ([]byte, error) {
	var p nvme.SupportedLogPages
	for _, id := range ctrl.logs() {
		p.Pages[id] = nvme.LIDSupported
	}
	return p.AppendBinary(nil)
}

func (ctrl *controller) firmwareSlots() ([]byte, error) {
	f := nvme.FirmwareSlotLog{AFI: 1}
	copy(f.FRS[0][:], "        ")
	copy(f.FRS[0][:], ctrl.sub.cfg.Firmware)
	return f.AppendBinary(nil)
}

// smart is the SMART / Health Information log page: that of a subsystem in the
// best of health, with what its I/O amounts to.
func (ctrl *controller) smart() ([]byte, error) {
	st := ctrl.sub.Stats()
	units := func(b uint64) nvme.Uint128 { return nvme.Uint128{Lo: (b + 511999) / 512000} }
	log := nvme.SMARTLog{
		AvailableSpare: 100, SpareThreshold: 10,
		DataUnitsRead: units(st.BytesRead), DataUnitsWritten: units(st.BytesWritten),
		HostReads: nvme.Uint128{Lo: st.Reads}, HostWrites: nvme.Uint128{Lo: st.Writes},
		PowerCycles:     nvme.Uint128{Lo: 1},
		PowerOnHours:    nvme.Uint128{Lo: uint64(time.Since(ctrl.sub.t.made) / time.Hour)},
		ErrorLogEntries: nvme.Uint128{Lo: ctrl.errorLog.count},
	}
	log.SetTemperature(273 + 40)
	return log.AppendBinary(nil)
}

// Commands that the effects log lists.
var (
	adminOpcodes = []nvme.Opcode{
		nvme.AdminGetLogPage, nvme.AdminIdentify, nvme.AdminAbort, nvme.AdminSetFeatures, nvme.AdminGetFeatures,
		nvme.AdminAsyncEvent, nvme.AdminKeepAlive,
	}
	readOpcodes  = []nvme.Opcode{nvme.OpRead, nvme.OpFlush, nvme.OpCompare, nvme.OpVerify}
	writeOpcodes = []nvme.Opcode{nvme.OpWrite, nvme.OpWriteZeroes, nvme.OpDatasetManagement}
)

func (ctrl *controller) commandEffects() ([]byte, error) {
	var log nvme.CommandEffectsLog
	for _, op := range adminOpcodes {
		log.Admin[op] = nvme.EffectSupported
	}
	for _, op := range readOpcodes {
		log.IO[op] = nvme.EffectSupported
	}
	for _, op := range writeOpcodes {
		log.IO[op] = nvme.EffectSupported | nvme.EffectDataChange
	}
	return log.AppendBinary(nil)
}

func (ctrl *controller) featureEffects() ([]byte, error) {
	var log nvme.FeatureEffectsLog
	for id := range log.Features {
		if ctrl.featureOf(nvme.FeatureID(id)) != featureNone {
			log.Features[id] = nvme.EffectSupported | nvme.EffectScopeController
		}
	}
	return log.AppendBinary(nil)
}
