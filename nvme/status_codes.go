package nvme

// Generic command status, status code type 0 (Base Specification, figure
// "Status Code – Generic Command Status Values").
const (
	StatusSuccess                    Status = 0x000
	StatusInvalidOpcode              Status = 0x001
	StatusInvalidField               Status = 0x002
	StatusCommandIDConflict          Status = 0x003
	StatusDataTransferError          Status = 0x004
	StatusAbortedPowerLoss           Status = 0x005
	StatusInternalError              Status = 0x006
	StatusAbortRequested             Status = 0x007
	StatusAbortedSQDeletion          Status = 0x008
	StatusAbortedFailedFused         Status = 0x009
	StatusAbortedMissingFused        Status = 0x00a
	StatusInvalidNamespace           Status = 0x00b
	StatusCommandSequenceError       Status = 0x00c
	StatusInvalidSGLSegment          Status = 0x00d
	StatusInvalidSGLCount            Status = 0x00e
	StatusDataSGLLengthInvalid       Status = 0x00f
	StatusMetadataSGLLengthInvalid   Status = 0x010
	StatusSGLTypeInvalid             Status = 0x011
	StatusInvalidUseOfCMB            Status = 0x012
	StatusPRPOffsetInvalid           Status = 0x013
	StatusAtomicWriteUnitExceeded    Status = 0x014
	StatusOperationDenied            Status = 0x015
	StatusSGLOffsetInvalid           Status = 0x016
	StatusHostIDInconsistent         Status = 0x018
	StatusKeepAliveExpired           Status = 0x019
	StatusKeepAliveInvalid           Status = 0x01a
	StatusAbortedPreempt             Status = 0x01b
	StatusSanitizeFailed             Status = 0x01c
	StatusSanitizeInProgress         Status = 0x01d
	StatusSGLGranularityInvalid      Status = 0x01e
	StatusCommandNotSupportedInCMB   Status = 0x01f
	StatusNamespaceWriteProtected    Status = 0x020
	StatusCommandInterrupted         Status = 0x021
	StatusTransientTransportError    Status = 0x022
	StatusProhibitedByLockdown       Status = 0x023
	StatusAdminMediaNotReady         Status = 0x024
	StatusInvalidKeyTag              Status = 0x025
	StatusHostDispersedNSNotEnabled  Status = 0x026
	StatusHostIDNotInitialized       Status = 0x027
	StatusIncorrectKey               Status = 0x028
	StatusFDPDisabled                Status = 0x029
	StatusInvalidPlacementHandleList Status = 0x02a
	StatusLBAOutOfRange              Status = 0x080
	StatusCapacityExceeded           Status = 0x081
	StatusNamespaceNotReady          Status = 0x082
	StatusReservationConflict        Status = 0x083
	StatusFormatInProgress           Status = 0x084
	StatusInvalidValueSize           Status = 0x085 // key value command set, as are the four below
	StatusInvalidKeySize             Status = 0x086
	StatusKVKeyDoesNotExist          Status = 0x087
	StatusKVUnrecoveredError         Status = 0x088
	StatusKVKeyExists                Status = 0x089
)

// Command specific status, status code type 1, of the base specification
// (figure "Status Code – Command Specific Status Values").
const (
	StatusCompletionQueueInvalid          Status = 0x100
	StatusInvalidQueueIdentifier          Status = 0x101
	StatusInvalidQueueSize                Status = 0x102
	StatusAbortLimitExceeded              Status = 0x103
	StatusAsyncEventLimitExceeded         Status = 0x105
	StatusInvalidFirmwareSlot             Status = 0x106
	StatusInvalidFirmwareImage            Status = 0x107
	StatusInvalidInterruptVector          Status = 0x108
	StatusInvalidLogPage                  Status = 0x109
	StatusInvalidFormat                   Status = 0x10a
	StatusFirmwareNeedsConventionalReset  Status = 0x10b
	StatusInvalidQueueDeletion            Status = 0x10c
	StatusFeatureNotSaveable              Status = 0x10d
	StatusFeatureNotChangeable            Status = 0x10e
	StatusFeatureNotNamespaceSpecific     Status = 0x10f
	StatusFirmwareNeedsSubsystemReset     Status = 0x110
	StatusFirmwareNeedsControllerReset    Status = 0x111
	StatusFirmwareMaximumTimeViolation    Status = 0x112
	StatusFirmwareActivationProhibited    Status = 0x113
	StatusOverlappingRange                Status = 0x114
	StatusNamespaceInsufficientCapacity   Status = 0x115
	StatusNamespaceIDUnavailable          Status = 0x116
	StatusNamespaceAlreadyAttached        Status = 0x118
	StatusNamespaceIsPrivate              Status = 0x119
	StatusNamespaceNotAttached            Status = 0x11a
	StatusThinProvisioningNotSupported    Status = 0x11b
	StatusControllerListInvalid           Status = 0x11c
	StatusSelfTestInProgress              Status = 0x11d
	StatusBootPartitionWriteProhibited    Status = 0x11e
	StatusInvalidControllerIdentifier     Status = 0x11f
	StatusInvalidSecondaryControllerState Status = 0x120
	StatusInvalidControllerResourceCount  Status = 0x121
	StatusInvalidResourceIdentifier       Status = 0x122
	StatusSanitizeProhibitedPMR           Status = 0x123
	StatusANAGroupIdentifierInvalid       Status = 0x124
	StatusANAAttachFailed                 Status = 0x125
	StatusInsufficientCapacity            Status = 0x126
	StatusNamespaceAttachmentLimit        Status = 0x127
	StatusLockdownNotSupported            Status = 0x128
	StatusIOCommandSetNotSupported        Status = 0x129
	StatusIOCommandSetNotEnabled          Status = 0x12a
	StatusIOCommandSetCombination         Status = 0x12b
	StatusInvalidIOCommandSet             Status = 0x12c
	StatusIdentifierUnavailable           Status = 0x12d
	StatusNamespaceIsDispersed            Status = 0x12e
	StatusInvalidDiscoveryInformation     Status = 0x12f
	StatusZoningDataLocked                Status = 0x130
	StatusZoningDataNotFound              Status = 0x131
	StatusInsufficientDiscoveryResources  Status = 0x132
	StatusRequestedFunctionDisabled       Status = 0x133
	StatusZoneGroupOriginatorInvalid      Status = 0x134
	StatusInvalidHost                     Status = 0x135
	StatusInvalidNVMSubsystem             Status = 0x136
	StatusInvalidControllerDataQueue      Status = 0x137
	StatusNotEnoughResources              Status = 0x138
	StatusControllerSuspended             Status = 0x139
	StatusControllerNotSuspended          Status = 0x13a
	StatusControllerDataQueueFull         Status = 0x13b
	StatusStreamAllocationFailed          Status = 0x17f
)

// Command specific status of the NVM and zoned namespace command sets. Values
// from 0x180 up mean something else on a fabrics command.
const (
	StatusConflictingAttributes      Status = 0x180
	StatusInvalidProtectionInfo      Status = 0x181
	StatusWriteToReadOnlyRange       Status = 0x182
	StatusCommandSizeLimitExceeded   Status = 0x183
	StatusInvalidCommandID           Status = 0x184
	StatusIncompatibleNamespace      Status = 0x185
	StatusFastCopyNotPossible        Status = 0x186
	StatusOverlappingIORange         Status = 0x187
	StatusNamespaceNotReachable      Status = 0x188
	StatusInsufficientResources      Status = 0x189
	StatusMediaVerificationRead      Status = 0x19c
	StatusInvalidZoneOperation       Status = 0x1b6
	StatusZRWAResourcesUnavailable   Status = 0x1b7
	StatusZonedBoundaryError         Status = 0x1b8
	StatusZoneIsFull                 Status = 0x1b9
	StatusZoneIsReadOnly             Status = 0x1ba
	StatusZoneIsOffline              Status = 0x1bb
	StatusZoneInvalidWrite           Status = 0x1bc
	StatusTooManyActiveZones         Status = 0x1bd
	StatusTooManyOpenZones           Status = 0x1be
	StatusInvalidZoneStateTransition Status = 0x1bf
)

// Command specific status of the fabrics commands, and of Get Log Page for
// the discovery log (0x190). Several values mean something else on an I/O
// command.
const (
	StatusConnectIncompatibleFormat Status = 0x180
	StatusConnectControllerBusy     Status = 0x181
	StatusConnectInvalidParameters  Status = 0x182
	StatusConnectRestartDiscovery   Status = 0x183
	StatusConnectInvalidHost        Status = 0x184
	StatusInvalidQueueType          Status = 0x185
	StatusDiscoverRestart           Status = 0x190
	StatusAuthenticationRequired    Status = 0x191
)

// Media and data integrity errors, status code type 2 (figure "Status Code –
// Media and Data Integrity Error Values").
const (
	StatusWriteFault             Status = 0x280
	StatusUnrecoveredReadError   Status = 0x281
	StatusGuardCheckError        Status = 0x282
	StatusApplicationTagError    Status = 0x283
	StatusReferenceTagError      Status = 0x284
	StatusCompareFailure         Status = 0x285
	StatusAccessDenied           Status = 0x286
	StatusDeallocatedOrUnwritten Status = 0x287
	StatusStorageTagError        Status = 0x288
)

// Path related status, status code type 3 (figure "Status Code – Path Related
// Status Values"). Codes 0x70 and up are set by the host, never by a
// controller.
const (
	StatusInternalPathError    Status = 0x300
	StatusANAPersistentLoss    Status = 0x301
	StatusANAInaccessible      Status = 0x302
	StatusANATransition        Status = 0x303
	StatusControllerPathError  Status = 0x360
	StatusHostPathError        Status = 0x370
	StatusCommandAbortedByHost Status = 0x371
)
