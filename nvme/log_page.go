package nvme

// LogID identifies a log page (Base Specification, figure "Get Log Page – Log
// Page Identifiers").
type LogID uint8

// The log page identifiers of the base and NVM command sets and of the zoned
// namespace command set's one.
const (
	LogSupportedPages          LogID = 0x00 // SupportedLogPages
	LogError                   LogID = 0x01 // ErrorLogEntry, several
	LogSMART                   LogID = 0x02 // SMARTLog
	LogFirmwareSlot            LogID = 0x03 // FirmwareSlotLog
	LogChangedNamespaces       LogID = 0x04 // ParseChangedNamespaces
	LogCommandEffects          LogID = 0x05 // CommandEffectsLog
	LogSelfTest                LogID = 0x06 // SelfTestLog
	LogTelemetryHost           LogID = 0x07 // TelemetryHeader
	LogTelemetryController     LogID = 0x08 // TelemetryHeader
	LogEnduranceGroup          LogID = 0x09 // EnduranceGroupLog
	LogPredictableLatency      LogID = 0x0a // PredictableLatencyLog
	LogPredictableLatencyEvent LogID = 0x0b // ParseEventAggregate
	LogANA                     LogID = 0x0c // ANALog
	LogPersistentEvent         LogID = 0x0d // PersistentEventHeader
	LogLBAStatus               LogID = 0x0e // LBAStatusLog
	LogEnduranceGroupEvent     LogID = 0x0f // ParseEventAggregate
	LogMediaUnitStatus         LogID = 0x10 // MediaUnitStatusLog
	LogCapacityConfigurations  LogID = 0x11 // ParseCapacityConfigurations
	LogFeatureEffects          LogID = 0x12 // FeatureEffectsLog
	LogMIEffects               LogID = 0x13 // MIEffectsLog
	LogLockdown                LogID = 0x14 // LockdownLog
	LogBootPartition           LogID = 0x15 // BootPartitionHeader
	LogRotationalMedia         LogID = 0x16 // RotationalMediaLog
	LogDispersedNamespace      LogID = 0x17 // ParseDispersedNamespace
	LogManagementAddress       LogID = 0x18 // ManagementAddressLog
	LogPhyReceiverEye          LogID = 0x19 // PCIe transport
	LogReachabilityGroups      LogID = 0x1a // ParseReachabilityGroups
	LogReachabilityAssociation LogID = 0x1b // ParseReachabilityAssociations
	LogChangedAllocated        LogID = 0x1c // ParseChangedNamespaces
	LogFDPConfigurations       LogID = 0x20 // ParseFDPConfigurations
	LogFDPHandleUsage          LogID = 0x21 // ParseFDPHandleUsage
	LogFDPStatistics           LogID = 0x22 // FDPStatisticsLog
	LogFDPEvents               LogID = 0x23 // ParseFDPEvents
	LogDiscovery               LogID = 0x70 // DiscoveryLog
	LogHostDiscovery           LogID = 0x71 // ParseHostDiscovery
	LogAVEDiscovery            LogID = 0x72 // ParseAVEDiscovery
	LogPullModelRequest        LogID = 0x73 // ParsePullModelRequest
	LogReservation             LogID = 0x80 // ReservationLog
	LogSanitize                LogID = 0x81 // SanitizeLog
	LogChangedZones            LogID = 0xbf // zoned namespace command set
	LogVendorStart             LogID = 0xc0 // first vendor specific log page
)

var logNames = map[LogID]string{
	LogSupportedPages:          "Supported Log Pages",
	LogError:                   "Error Information",
	LogSMART:                   "SMART / Health Information",
	LogFirmwareSlot:            "Firmware Slot Information",
	LogChangedNamespaces:       "Changed Attached Namespace List",
	LogCommandEffects:          "Commands Supported and Effects",
	LogSelfTest:                "Device Self-test",
	LogTelemetryHost:           "Telemetry Host-Initiated",
	LogTelemetryController:     "Telemetry Controller-Initiated",
	LogEnduranceGroup:          "Endurance Group Information",
	LogPredictableLatency:      "Predictable Latency Per NVM Set",
	LogPredictableLatencyEvent: "Predictable Latency Event Aggregate",
	LogANA:                     "Asymmetric Namespace Access",
	LogPersistentEvent:         "Persistent Event Log",
	LogLBAStatus:               "LBA Status Information",
	LogEnduranceGroupEvent:     "Endurance Group Event Aggregate",
	LogMediaUnitStatus:         "Media Unit Status",
	LogCapacityConfigurations:  "Supported Capacity Configuration List",
	LogFeatureEffects:          "Feature Identifiers Supported and Effects",
	LogMIEffects:               "NVMe-MI Commands Supported and Effects",
	LogLockdown:                "Command and Feature Lockdown",
	LogBootPartition:           "Boot Partition",
	LogRotationalMedia:         "Rotational Media Information",
	LogDispersedNamespace:      "Dispersed Namespace Participating NVM Subsystems",
	LogManagementAddress:       "Management Address List",
	LogPhyReceiverEye:          "Physical Interface Receiver Eye Opening Measurement",
	LogReachabilityGroups:      "Reachability Groups",
	LogReachabilityAssociation: "Reachability Associations",
	LogChangedAllocated:        "Changed Allocated Namespace List",
	LogFDPConfigurations:       "FDP Configurations",
	LogFDPHandleUsage:          "Reclaim Unit Handle Usage",
	LogFDPStatistics:           "FDP Statistics",
	LogFDPEvents:               "FDP Events",
	LogDiscovery:               "Discovery",
	LogHostDiscovery:           "Host Discovery",
	LogAVEDiscovery:            "AVE Discovery",
	LogPullModelRequest:        "Pull Model DDC Request",
	LogReservation:             "Reservation Notification",
	LogSanitize:                "Sanitize Status",
	LogChangedZones:            "Changed Zone List",
}

// String returns the specification's name of the log page.
func (l LogID) String() string {
	if name, ok := logNames[l]; ok {
		return name
	}
	return numbered("log page", uint32(l), l >= LogVendorStart)
}

// Values of GetLogPageCommand.LSP: the log specific parameter, CDW10 bits
// 14:08, of the pages that have one.
const (
	LSPTelemetryCreate     uint8 = 1 << 0 // LogTelemetryHost: capture the state now; area in bits 3:1
	LSPANAGroupsOnly       uint8 = 1 << 0 // LogANA: no namespace identifiers
	LSPReachGroupsOnly     uint8 = 1 << 0 // LogReachabilityGroups and ...Association: headers only
	LSPPersistentRead      uint8 = 0      // LogPersistentEvent: read in the present context
	LSPPersistentEstablish uint8 = 1      // establish a context and read
	LSPPersistentRelease   uint8 = 2      // release the context
	LSPPersistentHeader    uint8 = 3      // establish a context and read 512 bytes
	LSPBootPartition1      uint8 = 1 << 0 // LogBootPartition: partition 1, else 0
	LSPFDPHostEvents       uint8 = 1 << 0 // LogFDPEvents: host events, else controller events
	LSPDiscoveryExtended   uint8 = 1 << 0 // LogDiscovery: extended entries
	LSPDiscoveryPortLocal  uint8 = 1 << 1 // LogDiscovery: entries of this port only
	LSPDiscoveryAll        uint8 = 1 << 2 // LogDiscovery: all subsystems, whatever the host
	LSPHostDiscoveryAll    uint8 = 1 << 0 // LogHostDiscovery: all hosts
)

// GetLogPageCommand is the Get Log Page command (Base Specification 5.1.12).
type GetLogPageCommand struct {
	LID       LogID
	NSID      uint32 // NSIDAll or 0 for the pages that are not of a namespace
	Length    uint64 // bytes to return: a multiple of 4 from 4 to 16 GiB
	Offset    uint64 // in bytes, a multiple of 4; with Index in entries
	Index     bool   // Offset counts entries (OT); needs SupportedLogPages.IndexOffset
	Retain    bool   // keep the asynchronous event of this page (RAE)
	LSP       uint8  // log specific parameter, 0 to 127
	LSI       uint16 // log specific identifier: endurance group, NVM set or domain
	UUIDIndex uint8  // 0 to 127
	CSI       CSI
}

// Command returns the submission queue entry. Length and Offset above 32 bits,
// and Length above 16 KiB on an old controller, need LPAExtendedData.
func (g GetLogPageCommand) Command() (Command, error) {
	dwords := g.Length / 4
	switch {
	case g.Length == 0 || g.Length%4 != 0 || dwords > 1<<32:
		return Command{}, outOfRange("get log page command", "length %d", g.Length)
	case !g.Index && g.Offset%4 != 0:
		return Command{}, outOfRange("get log page command", "offset %d", g.Offset)
	case g.LSP > 0x7f:
		return Command{}, outOfRange("get log page command", "log specific parameter 0x%x", g.LSP)
	case g.UUIDIndex > 0x7f:
		return Command{}, outOfRange("get log page command", "UUID index %d", g.UUIDIndex)
	}
	numd := uint32(dwords - 1)
	return Command{
		Opcode: AdminGetLogPage,
		NSID:   g.NSID,
		CDW10:  uint32(g.LID) | uint32(g.LSP)<<8 | flag[uint32](g.Retain, 15) | numd<<16,
		CDW11:  numd>>16 | uint32(g.LSI)<<16,
		CDW12:  uint32(g.Offset),
		CDW13:  uint32(g.Offset >> 32),
		CDW14:  uint32(g.UUIDIndex) | flag[uint32](g.Index, 23) | uint32(g.CSI)<<24,
	}, nil
}

// GetLogPage returns a Get Log Page command for n bytes of a log page from byte
// offset on: the plain case of GetLogPageCommand. n is rounded down to dwords,
// at least one, and offset likewise.
func GetLogPage(page LogID, nsid uint32, n int, offset uint64) Command {
	numd := uint32(max(n/4, 1) - 1)
	return Command{
		Opcode: AdminGetLogPage,
		NSID:   nsid,
		CDW10:  uint32(page) | numd<<16,
		CDW11:  numd >> 16,
		CDW12:  uint32(offset) &^ 3,
		CDW13:  uint32(offset >> 32),
	}
}

// ParseGetLogPage reads a Get Log Page command. Whether the offset is aligned
// and within the page is the caller's to check.
func ParseGetLogPage(cmd *Command) (GetLogPageCommand, error) {
	if err := expectAdmin(cmd, AdminGetLogPage); err != nil {
		return GetLogPageCommand{}, err
	}
	numd := cmd.CDW10>>16 | cmd.CDW11<<16
	return GetLogPageCommand{
		LID:       LogID(cmd.CDW10),
		NSID:      cmd.NSID,
		Length:    (uint64(numd) + 1) * 4,
		Offset:    uint64(cmd.CDW12) | uint64(cmd.CDW13)<<32,
		Index:     bit(cmd.CDW14, 23),
		Retain:    bit(cmd.CDW10, 15),
		LSP:       uint8(field(cmd.CDW10, 8, 7)),
		LSI:       uint16(cmd.CDW11 >> 16),
		UUIDIndex: uint8(cmd.CDW14 & 0x7f),
		CSI:       CSI(cmd.CDW14 >> 24),
	}, nil
}
