package nvme

// FeatureID identifies a feature (Base Specification, figure "Set Features –
// Feature Identifiers").
type FeatureID uint8

// The feature identifiers of the base and NVM command sets.
const (
	FeatArbitration              FeatureID = 0x01 // Arbitration
	FeatPowerManagement          FeatureID = 0x02 // PowerManagement
	FeatLBARangeType             FeatureID = 0x03 // LBARangeType, 64 of them
	FeatTemperatureThreshold     FeatureID = 0x04 // TemperatureThreshold
	FeatErrorRecovery            FeatureID = 0x05 // ErrorRecovery
	FeatVolatileWriteCache       FeatureID = 0x06 // bit 0
	FeatNumberOfQueues           FeatureID = 0x07 // NumberOfQueues
	FeatInterruptCoalescing      FeatureID = 0x08 // InterruptCoalescing
	FeatInterruptVector          FeatureID = 0x09 // InterruptVector
	FeatWriteAtomicity           FeatureID = 0x0a // bit 0: disable normal
	FeatAsyncEventConfiguration  FeatureID = 0x0b // AsyncEventConfig... bits
	FeatPowerStateTransition     FeatureID = 0x0c // bit 0, and PowerStateTransitions
	FeatHostMemoryBuffer         FeatureID = 0x0d // HostMemoryBuffer
	FeatTimestamp                FeatureID = 0x0e // Timestamp
	FeatKeepAliveTimer           FeatureID = 0x0f // milliseconds; see KeepAliveValue
	FeatThermalManagement        FeatureID = 0x10 // ThermalManagement
	FeatNonOperationalPower      FeatureID = 0x11 // bit 0: permissive mode
	FeatReadRecoveryLevel        FeatureID = 0x12 // dword 11: NVM set; dword 12: level
	FeatPredictableLatencyConfig FeatureID = 0x13 // PredictableLatencyConfig
	FeatPredictableLatencyWindow FeatureID = 0x14 // dword 11: NVM set; dword 12: window
	FeatLBAStatusAttributes      FeatureID = 0x15 // LBAStatusAttributes
	FeatHostBehavior             FeatureID = 0x16 // HostBehavior
	FeatSanitizeConfig           FeatureID = 0x17 // bit 0: no-deallocate response mode
	FeatEnduranceGroupEvents     FeatureID = 0x18 // dword 11: group in 15:0, warnings in 23:16
	FeatIOCommandSetProfile      FeatureID = 0x19 // index in 8:0
	FeatSpinupControl            FeatureID = 0x1a // bit 0
	FeatPowerLossSignaling       FeatureID = 0x1b // mode in 1:0
	FeatPerformance              FeatureID = 0x1c // performance characteristics
	FeatFDP                      FeatureID = 0x1d // dword 11: group; dword 12: FDPConfig
	FeatFDPEvents                FeatureID = 0x1e
	FeatNamespaceLabel           FeatureID = 0x1f // 256 bytes of UTF-8
	FeatControllerDataQueue      FeatureID = 0x21
	FeatManagementAddress        FeatureID = 0x78 // embedded management controller address
	FeatHostAgentAddress         FeatureID = 0x79 // host management agent address
	FeatEnhancedMetadata         FeatureID = 0x7d // enhanced controller metadata
	FeatControllerMetadata       FeatureID = 0x7e
	FeatNamespaceMetadata        FeatureID = 0x7f
	FeatSoftwareProgress         FeatureID = 0x80 // pre-boot load count in 7:0
	FeatHostIdentifier           FeatureID = 0x81 // dword 11 bit 0: 16 bytes, else 8
	FeatReservationMask          FeatureID = 0x82 // ReservationMask... bits
	FeatReservationPersistence   FeatureID = 0x83 // bit 0
	FeatWriteProtection          FeatureID = 0x84 // WriteProtect... state
	FeatBootWriteProtection      FeatureID = 0x85 // partition 0 in 2:0, 1 in 5:3
	FeatVendorStart              FeatureID = 0xc0 // first vendor specific feature
)

var featureNames = map[FeatureID]string{
	FeatArbitration:              "Arbitration",
	FeatPowerManagement:          "Power Management",
	FeatLBARangeType:             "LBA Range Type",
	FeatTemperatureThreshold:     "Temperature Threshold",
	FeatErrorRecovery:            "Error Recovery",
	FeatVolatileWriteCache:       "Volatile Write Cache",
	FeatNumberOfQueues:           "Number of Queues",
	FeatInterruptCoalescing:      "Interrupt Coalescing",
	FeatInterruptVector:          "Interrupt Vector Configuration",
	FeatWriteAtomicity:           "Write Atomicity Normal",
	FeatAsyncEventConfiguration:  "Asynchronous Event Configuration",
	FeatPowerStateTransition:     "Autonomous Power State Transition",
	FeatHostMemoryBuffer:         "Host Memory Buffer",
	FeatTimestamp:                "Timestamp",
	FeatKeepAliveTimer:           "Keep Alive Timer",
	FeatThermalManagement:        "Host Controlled Thermal Management",
	FeatNonOperationalPower:      "Non-Operational Power State Config",
	FeatReadRecoveryLevel:        "Read Recovery Level Config",
	FeatPredictableLatencyConfig: "Predictable Latency Mode Config",
	FeatPredictableLatencyWindow: "Predictable Latency Mode Window",
	FeatLBAStatusAttributes:      "LBA Status Information Attributes",
	FeatHostBehavior:             "Host Behavior Support",
	FeatSanitizeConfig:           "Sanitize Config",
	FeatEnduranceGroupEvents:     "Endurance Group Event Configuration",
	FeatIOCommandSetProfile:      "I/O Command Set Profile",
	FeatSpinupControl:            "Spinup Control",
	FeatPowerLossSignaling:       "Power Loss Signaling Config",
	FeatPerformance:              "Performance Characteristics",
	FeatFDP:                      "Flexible Data Placement",
	FeatFDPEvents:                "Flexible Data Placement Events",
	FeatNamespaceLabel:           "Namespace Admin Label",
	FeatControllerDataQueue:      "Controller Data Queue",
	FeatManagementAddress:        "Embedded Management Controller Address",
	FeatHostAgentAddress:         "Host Management Agent Address",
	FeatEnhancedMetadata:         "Enhanced Controller Metadata",
	FeatControllerMetadata:       "Controller Metadata",
	FeatNamespaceMetadata:        "Namespace Metadata",
	FeatSoftwareProgress:         "Software Progress Marker",
	FeatHostIdentifier:           "Host Identifier",
	FeatReservationMask:          "Reservation Notification Mask",
	FeatReservationPersistence:   "Reservation Persistence",
	FeatWriteProtection:          "Namespace Write Protection Config",
	FeatBootWriteProtection:      "Boot Partition Write Protection Config",
}

// String returns the specification's name of the feature.
func (f FeatureID) String() string {
	if name, ok := featureNames[f]; ok {
		return name
	}
	return numbered("feature", uint32(f), f >= FeatVendorStart)
}

// Values of GetFeaturesCommand.Select.
const (
	SelectCurrent      uint8 = 0
	SelectDefault      uint8 = 1
	SelectSaved        uint8 = 2
	SelectCapabilities uint8 = 3 // dword 0 of the response holds FeatureCapability... bits
)

// Bits of the result of Get Features with SelectCapabilities.
const (
	FeatureCapabilitySaveable   uint32 = 1 << 0
	FeatureCapabilityNamespace  uint32 = 1 << 1 // has a namespace scope
	FeatureCapabilityChangeable uint32 = 1 << 2
)

// GetFeaturesCommand is the Get Features command (Base Specification 5.1.11).
// The value comes back in dword 0 of Completion.Result, in a buffer, or both.
type GetFeaturesCommand struct {
	FeatureID FeatureID
	Select    uint8 // a Select... value
	NSID      uint32
	UUIDIndex uint8  // 0 to 127
	Value     uint32 // dword 11, where the feature takes one
}

// Command returns the submission queue entry.
func (g GetFeaturesCommand) Command() Command {
	return Command{
		Opcode: AdminGetFeatures,
		NSID:   g.NSID,
		CDW10:  uint32(g.FeatureID) | uint32(g.Select&7)<<8,
		CDW11:  g.Value,
		CDW14:  uint32(g.UUIDIndex & 0x7f),
	}
}

// ParseGetFeatures reads a Get Features command.
func ParseGetFeatures(cmd *Command) (GetFeaturesCommand, error) {
	if err := expectAdmin(cmd, AdminGetFeatures); err != nil {
		return GetFeaturesCommand{}, err
	}
	return GetFeaturesCommand{
		FeatureID: FeatureID(cmd.CDW10),
		Select:    uint8(field(cmd.CDW10, 8, 3)),
		NSID:      cmd.NSID,
		UUIDIndex: uint8(cmd.CDW14 & 0x7f),
		Value:     cmd.CDW11,
	}, nil
}

// SetFeaturesCommand is the Set Features command (Base Specification 5.1.25).
type SetFeaturesCommand struct {
	FeatureID FeatureID
	Save      bool // persist through power states and resets; needs ONCSSaveSelect
	NSID      uint32
	UUIDIndex uint8     // 0 to 127; not with a feature that uses dword 14
	Value     uint32    // dword 11
	More      [4]uint32 // dwords 12 to 15, for the few features that use them
}

// Command returns the submission queue entry.
func (s SetFeaturesCommand) Command() Command {
	return Command{
		Opcode: AdminSetFeatures,
		NSID:   s.NSID,
		CDW10:  uint32(s.FeatureID) | flag[uint32](s.Save, 31),
		CDW11:  s.Value,
		CDW12:  s.More[0],
		CDW13:  s.More[1],
		CDW14:  s.More[2] | uint32(s.UUIDIndex&0x7f),
		CDW15:  s.More[3],
	}
}

// ParseSetFeatures reads a Set Features command. The UUID index is left in
// More[2], since some features use dword 14 for something else.
func ParseSetFeatures(cmd *Command) (SetFeaturesCommand, error) {
	if err := expectAdmin(cmd, AdminSetFeatures); err != nil {
		return SetFeaturesCommand{}, err
	}
	return SetFeaturesCommand{
		FeatureID: FeatureID(cmd.CDW10),
		Save:      bit(cmd.CDW10, 31),
		NSID:      cmd.NSID,
		Value:     cmd.CDW11,
		More:      [4]uint32{cmd.CDW12, cmd.CDW13, cmd.CDW14, cmd.CDW15},
	}, nil
}
