package nvme

// Bits of IdentifyController.CMIC.
const (
	CMICMultiplePorts       uint8 = 1 << 0 // the subsystem may have more than one port
	CMICMultipleControllers uint8 = 1 << 1 // the subsystem may have more than one controller
	CMICVirtualFunction     uint8 = 1 << 2 // an SR-IOV virtual function
	CMICANAReporting        uint8 = 1 << 3 // asymmetric namespace access reporting
)

// Bits of IdentifyController.CTRATT.
const (
	CTRATTHostID128              uint32 = 1 << 0  // HIDS: 128-bit host identifier
	CTRATTNonOperationalPower    uint32 = 1 << 1  // NOPSPM
	CTRATTNVMSets                uint32 = 1 << 2  // NSETS
	CTRATTReadRecoveryLevels     uint32 = 1 << 3  // RRLVLS
	CTRATTEnduranceGroups        uint32 = 1 << 4  // EGS
	CTRATTPredictableLatency     uint32 = 1 << 5  // PLM
	CTRATTTrafficKeepAlive       uint32 = 1 << 6  // TBKAS: traffic based keep alive
	CTRATTNamespaceGranularity   uint32 = 1 << 7  // NG
	CTRATTSQAssociations         uint32 = 1 << 8  // SQA
	CTRATTUUIDList               uint32 = 1 << 9  // ULIST
	CTRATTMultiDomain            uint32 = 1 << 10 // MDS
	CTRATTFixedCapacity          uint32 = 1 << 11 // FCM
	CTRATTVariableCapacity       uint32 = 1 << 12 // VCM
	CTRATTDeleteEnduranceGroup   uint32 = 1 << 13 // DEG
	CTRATTDeleteNVMSet           uint32 = 1 << 14 // DNVMS
	CTRATTExtendedLBAFormats     uint32 = 1 << 15 // ELBAS
	CTRATTSizesExcludeMetadata   uint32 = 1 << 16 // MEM: MDTS and size limits exclude metadata
	CTRATTHMBRestrict            uint32 = 1 << 17 // HMBR
	CTRATTReservationsNeedHostID uint32 = 1 << 18 // RHII
	CTRATTFlexibleDataPlacement  uint32 = 1 << 19 // FDPS
)

// Values of IdentifyController.CNTRLTYPE.
const (
	ControllerTypeNotReported    uint8 = 0 // before revision 1.4
	ControllerTypeIO             uint8 = 1
	ControllerTypeDiscovery      uint8 = 2
	ControllerTypeAdministrative uint8 = 3
)

// Values of IdentifyController.DCTYPE.
const (
	DiscoveryTypeNotReported uint8 = 0
	DiscoveryTypeDirect      uint8 = 1 // DDC
	DiscoveryTypeCentral     uint8 = 2 // CDC
)

// Bits of IdentifyController.OACS.
const (
	OACSSecurity             uint16 = 1 << 0
	OACSFormatNVM            uint16 = 1 << 1
	OACSFirmware             uint16 = 1 << 2
	OACSNamespaceManagement  uint16 = 1 << 3
	OACSDeviceSelfTest       uint16 = 1 << 4
	OACSDirectives           uint16 = 1 << 5
	OACSMI                   uint16 = 1 << 6
	OACSVirtualization       uint16 = 1 << 7
	OACSDoorbellBufferConfig uint16 = 1 << 8
	OACSGetLBAStatus         uint16 = 1 << 9
	OACSLockdown             uint16 = 1 << 10
	OACSLiveMigration        uint16 = 1 << 11
)

// Bits of IdentifyController.LPA.
const (
	LPASMARTPerNamespace uint8 = 1 << 0
	LPACommandEffects    uint8 = 1 << 1
	LPAExtendedData      uint8 = 1 << 2 // 32-bit NUMD and 64-bit offset in Get Log Page
	LPATelemetry         uint8 = 1 << 3
	LPAPersistentEvent   uint8 = 1 << 4
	LPAMiscellaneous     uint8 = 1 << 5 // supported log pages, features and MI command effects
	LPATelemetryArea4    uint8 = 1 << 6
)

// Bits of IdentifyController.SANICAP.
const (
	SANICAPCryptoErase  uint32 = 1 << 0
	SANICAPBlockErase   uint32 = 1 << 1
	SANICAPOverwrite    uint32 = 1 << 2
	SANICAPVerification uint32 = 1 << 3
	SANICAPNDI          uint32 = 1 << 29 // no-deallocate inhibited
)

// Bits of IdentifyController.ANACAP.
const (
	ANACAPOptimized      uint8 = 1 << 0 // states that the controller is able to report
	ANACAPNonOptimized   uint8 = 1 << 1
	ANACAPInaccessible   uint8 = 1 << 2
	ANACAPPersistentLoss uint8 = 1 << 3
	ANACAPChange         uint8 = 1 << 4
	ANACAPGroupIDFixed   uint8 = 1 << 6 // ANAGRPID does not change while attached
	ANACAPGroupIDSet     uint8 = 1 << 7 // namespace management may set ANAGRPID
)

// Bits of IdentifyController.ONCS.
const (
	ONCSCompare            uint16 = 1 << 0
	ONCSWriteUncorrectable uint16 = 1 << 1
	ONCSDatasetManagement  uint16 = 1 << 2
	ONCSWriteZeroes        uint16 = 1 << 3
	ONCSSaveSelect         uint16 = 1 << 4 // Save and Select fields of the feature commands
	ONCSReservations       uint16 = 1 << 5
	ONCSTimestamp          uint16 = 1 << 6
	ONCSVerify             uint16 = 1 << 7
	ONCSCopy               uint16 = 1 << 8
	ONCSCopySingleAtomic   uint16 = 1 << 9
	ONCSAllFastCopy        uint16 = 1 << 10
	ONCSWriteZeroesDealloc uint16 = 1 << 11 // MAXWZD: WZDSL applies with DEAC set
	ONCSNamespaceZeroes    uint16 = 1 << 12
)

// FUSESCompareAndWrite in IdentifyController.FUSES.
const FUSESCompareAndWrite uint16 = 1 << 0

// Bits of IdentifyController.FNA.
const (
	FNAFormatAll    uint8 = 1 << 0 // a format applies to all namespaces
	FNAEraseAll     uint8 = 1 << 1 // a secure erase applies to all namespaces
	FNACryptoErase  uint8 = 1 << 2 // cryptographic erase is supported
	FNANoBroadcasts uint8 = 1 << 3 // NSIDAll is not supported
)

// Bits and values of IdentifyController.VWC.
const (
	VWCPresent      uint8 = 1 << 0
	VWCFlushMask    uint8 = 3 << 1
	VWCFlushUnknown uint8 = 0 << 1 // Flush of NSIDAll: not told
	VWCFlushNoAll   uint8 = 2 << 1 // not supported
	VWCFlushAll     uint8 = 3 << 1 // supported
)

// Bits and values of IdentifyController.SGLS.
const (
	SGLSMask            uint32 = 3 << 0
	SGLSNone            uint32 = 0 << 0
	SGLSByteAligned     uint32 = 1 << 0 // data blocks of any alignment and length
	SGLSDwordAligned    uint32 = 2 << 0 // data blocks in dwords
	SGLSKeyed           uint32 = 1 << 2
	SGLSThresholdMask   uint32 = 0xff << 8 // recommended maximum of descriptors; 0 none
	SGLSBitBucket       uint32 = 1 << 16
	SGLSMetadataByte    uint32 = 1 << 17 // metadata buffer of any alignment
	SGLSLongerThanData  uint32 = 1 << 18
	SGLSMetadataPointer uint32 = 1 << 19 // MPTR may point to an SGL descriptor
	SGLSOffset          uint32 = 1 << 20 // address as an offset: in-capsule data
	SGLSTransport       uint32 = 1 << 21 // transport SGL data block
)

// Bits of IdentifyController.FCATT.
const (
	FCATTStaticController uint8 = 1 << 0 // static controller model, else dynamic
	FCATTNonZeroNVMSet    uint8 = 1 << 1 // NVMSETID of Connect may be set
)

// OFCSDisconnect in IdentifyController.OFCS: Disconnect and the deletion of
// single I/O queues are supported.
const OFCSDisconnect uint16 = 1 << 0
