package nvme

import "fmt"

var statusNames = map[Status]string{
	StatusSuccess:                    "Successful Completion",
	StatusInvalidOpcode:              "Invalid Command Opcode",
	StatusInvalidField:               "Invalid Field in Command",
	StatusCommandIDConflict:          "Command ID Conflict",
	StatusDataTransferError:          "Data Transfer Error",
	StatusAbortedPowerLoss:           "Commands Aborted due to Power Loss Notification",
	StatusInternalError:              "Internal Error",
	StatusAbortRequested:             "Command Abort Requested",
	StatusAbortedSQDeletion:          "Command Aborted due to SQ Deletion",
	StatusAbortedFailedFused:         "Command Aborted due to Failed Fused Command",
	StatusAbortedMissingFused:        "Command Aborted due to Missing Fused Command",
	StatusInvalidNamespace:           "Invalid Namespace or Format",
	StatusCommandSequenceError:       "Command Sequence Error",
	StatusInvalidSGLSegment:          "Invalid SGL Segment Descriptor",
	StatusInvalidSGLCount:            "Invalid Number of SGL Descriptors",
	StatusDataSGLLengthInvalid:       "Data SGL Length Invalid",
	StatusMetadataSGLLengthInvalid:   "Metadata SGL Length Invalid",
	StatusSGLTypeInvalid:             "SGL Descriptor Type Invalid",
	StatusInvalidUseOfCMB:            "Invalid Use of Controller Memory Buffer",
	StatusPRPOffsetInvalid:           "PRP Offset Invalid",
	StatusAtomicWriteUnitExceeded:    "Atomic Write Unit Exceeded",
	StatusOperationDenied:            "Operation Denied",
	StatusSGLOffsetInvalid:           "SGL Offset Invalid",
	StatusHostIDInconsistent:         "Host Identifier Inconsistent Format",
	StatusKeepAliveExpired:           "Keep Alive Timer Expired",
	StatusKeepAliveInvalid:           "Keep Alive Timeout Invalid",
	StatusAbortedPreempt:             "Command Aborted due to Preempt and Abort",
	StatusSanitizeFailed:             "Sanitize Failed",
	StatusSanitizeInProgress:         "Sanitize In Progress",
	StatusSGLGranularityInvalid:      "SGL Data Block Granularity Invalid",
	StatusCommandNotSupportedInCMB:   "Command Not Supported for Queue in CMB",
	StatusNamespaceWriteProtected:    "Namespace is Write Protected",
	StatusCommandInterrupted:         "Command Interrupted",
	StatusTransientTransportError:    "Transient Transport Error",
	StatusProhibitedByLockdown:       "Command Prohibited by Command and Feature Lockdown",
	StatusAdminMediaNotReady:         "Admin Command Media Not Ready",
	StatusInvalidKeyTag:              "Invalid Key Tag",
	StatusHostDispersedNSNotEnabled:  "Host Dispersed Namespace Support Not Enabled",
	StatusHostIDNotInitialized:       "Host Identifier Not Initialized",
	StatusIncorrectKey:               "Incorrect Key",
	StatusFDPDisabled:                "FDP Disabled",
	StatusInvalidPlacementHandleList: "Invalid Placement Handle List",
	StatusLBAOutOfRange:              "LBA Out of Range",
	StatusCapacityExceeded:           "Capacity Exceeded",
	StatusNamespaceNotReady:          "Namespace Not Ready",
	StatusReservationConflict:        "Reservation Conflict",
	StatusFormatInProgress:           "Format In Progress",
	StatusInvalidValueSize:           "Invalid Value Size",
	StatusInvalidKeySize:             "Invalid Key Size",
	StatusKVKeyDoesNotExist:          "KV Key Does Not Exist",
	StatusKVUnrecoveredError:         "Unrecovered Error",
	StatusKVKeyExists:                "Key Exists",

	StatusCompletionQueueInvalid:          "Completion Queue Invalid",
	StatusInvalidQueueIdentifier:          "Invalid Queue Identifier",
	StatusInvalidQueueSize:                "Invalid Queue Size",
	StatusAbortLimitExceeded:              "Abort Command Limit Exceeded",
	StatusAsyncEventLimitExceeded:         "Asynchronous Event Request Limit Exceeded",
	StatusInvalidFirmwareSlot:             "Invalid Firmware Slot",
	StatusInvalidFirmwareImage:            "Invalid Firmware Image",
	StatusInvalidInterruptVector:          "Invalid Interrupt Vector",
	StatusInvalidLogPage:                  "Invalid Log Page",
	StatusInvalidFormat:                   "Invalid Format",
	StatusFirmwareNeedsConventionalReset:  "Firmware Activation Requires Conventional Reset",
	StatusInvalidQueueDeletion:            "Invalid Queue Deletion",
	StatusFeatureNotSaveable:              "Feature Identifier Not Saveable",
	StatusFeatureNotChangeable:            "Feature Not Changeable",
	StatusFeatureNotNamespaceSpecific:     "Feature Not Namespace Specific",
	StatusFirmwareNeedsSubsystemReset:     "Firmware Activation Requires NVM Subsystem Reset",
	StatusFirmwareNeedsControllerReset:    "Firmware Activation Requires Controller Level Reset",
	StatusFirmwareMaximumTimeViolation:    "Firmware Activation Requires Maximum Time Violation",
	StatusFirmwareActivationProhibited:    "Firmware Activation Prohibited",
	StatusOverlappingRange:                "Overlapping Range",
	StatusNamespaceInsufficientCapacity:   "Namespace Insufficient Capacity",
	StatusNamespaceIDUnavailable:          "Namespace Identifier Unavailable",
	StatusNamespaceAlreadyAttached:        "Namespace Already Attached",
	StatusNamespaceIsPrivate:              "Namespace Is Private",
	StatusNamespaceNotAttached:            "Namespace Not Attached",
	StatusThinProvisioningNotSupported:    "Thin Provisioning Not Supported",
	StatusControllerListInvalid:           "Controller List Invalid",
	StatusSelfTestInProgress:              "Device Self-test In Progress",
	StatusBootPartitionWriteProhibited:    "Boot Partition Write Prohibited",
	StatusInvalidControllerIdentifier:     "Invalid Controller Identifier",
	StatusInvalidSecondaryControllerState: "Invalid Secondary Controller State",
	StatusInvalidControllerResourceCount:  "Invalid Number of Controller Resources",
	StatusInvalidResourceIdentifier:       "Invalid Resource Identifier",
	StatusSanitizeProhibitedPMR:           "Sanitize Prohibited While Persistent Memory Region is Enabled",
	StatusANAGroupIdentifierInvalid:       "ANA Group Identifier Invalid",
	StatusANAAttachFailed:                 "ANA Attach Failed",
	StatusInsufficientCapacity:            "Insufficient Capacity",
	StatusNamespaceAttachmentLimit:        "Namespace Attachment Limit Exceeded",
	StatusLockdownNotSupported:            "Prohibition of Command Execution Not Supported",
	StatusIOCommandSetNotSupported:        "I/O Command Set Not Supported",
	StatusIOCommandSetNotEnabled:          "I/O Command Set Not Enabled",
	StatusIOCommandSetCombination:         "I/O Command Set Combination Rejected",
	StatusInvalidIOCommandSet:             "Invalid I/O Command Set",
	StatusIdentifierUnavailable:           "Identifier Unavailable",
	StatusNamespaceIsDispersed:            "Namespace Is Dispersed",
	StatusInvalidDiscoveryInformation:     "Invalid Discovery Information",
	StatusZoningDataLocked:                "Zoning Data Structure Locked",
	StatusZoningDataNotFound:              "Zoning Data Structure Not Found",
	StatusInsufficientDiscoveryResources:  "Insufficient Discovery Resources",
	StatusRequestedFunctionDisabled:       "Requested Function Disabled",
	StatusZoneGroupOriginatorInvalid:      "ZoneGroup Originator Invalid",
	StatusInvalidHost:                     "Invalid Host",
	StatusInvalidNVMSubsystem:             "Invalid NVM Subsystem",
	StatusInvalidControllerDataQueue:      "Invalid Controller Data Queue",
	StatusNotEnoughResources:              "Not Enough Resources",
	StatusControllerSuspended:             "Controller Suspended",
	StatusControllerNotSuspended:          "Controller Not Suspended",
	StatusControllerDataQueueFull:         "Controller Data Queue Full",
	StatusStreamAllocationFailed:          "Stream Resource Allocation Failed",

	StatusConflictingAttributes:      "Conflicting Attributes",
	StatusInvalidProtectionInfo:      "Invalid Protection Information",
	StatusWriteToReadOnlyRange:       "Attempted Write to Read Only Range",
	StatusCommandSizeLimitExceeded:   "Command Size Limit Exceeded",
	StatusInvalidCommandID:           "Invalid Command ID",
	StatusIncompatibleNamespace:      "Incompatible Namespace or Format",
	StatusFastCopyNotPossible:        "Fast Copy Not Possible",
	StatusOverlappingIORange:         "Overlapping I/O Range",
	StatusNamespaceNotReachable:      "Namespace Not Reachable",
	StatusInsufficientResources:      "Insufficient Resources",
	StatusMediaVerificationRead:      "Successful Media Verification Read",
	StatusInvalidZoneOperation:       "Invalid Zone Operation Request",
	StatusZRWAResourcesUnavailable:   "ZRWA Resources Unavailable",
	StatusZonedBoundaryError:         "Zoned Boundary Error",
	StatusZoneIsFull:                 "Zone Is Full",
	StatusZoneIsReadOnly:             "Zone Is Read Only",
	StatusZoneIsOffline:              "Zone Is Offline",
	StatusZoneInvalidWrite:           "Zone Invalid Write",
	StatusTooManyActiveZones:         "Too Many Active Zones",
	StatusTooManyOpenZones:           "Too Many Open Zones",
	StatusInvalidZoneStateTransition: "Invalid Zone State Transition",

	StatusWriteFault:             "Write Fault",
	StatusUnrecoveredReadError:   "Unrecovered Read Error",
	StatusGuardCheckError:        "End-to-end Guard Check Error",
	StatusApplicationTagError:    "End-to-end Application Tag Check Error",
	StatusReferenceTagError:      "End-to-end Reference Tag Check Error",
	StatusCompareFailure:         "Compare Failure",
	StatusAccessDenied:           "Access Denied",
	StatusDeallocatedOrUnwritten: "Deallocated or Unwritten Logical Block",
	StatusStorageTagError:        "End-to-End Storage Tag Check Error",

	StatusInternalPathError:    "Internal Path Error",
	StatusANAPersistentLoss:    "Asymmetric Access Persistent Loss",
	StatusANAInaccessible:      "Asymmetric Access Inaccessible",
	StatusANATransition:        "Asymmetric Access Transition",
	StatusControllerPathError:  "Controller Pathing Error",
	StatusHostPathError:        "Host Pathing Error",
	StatusCommandAbortedByHost: "Command Aborted By Host",
}

// Values of the computational programs command set. They have no constants
// here, and the two that fabrics uses on any command (0x190, 0x191) keep the
// fabrics name alone, as a host meets those.
var programStatusNames = map[Status]string{
	0x18a: "Insufficient Program Resources",
	0x18b: "Invalid Memory Namespace",
	0x18c: "Invalid Memory Range Set",
	0x18d: "Invalid Memory Range Set Identifier",
	0x18e: "Invalid Program Data",
	0x18f: "Invalid Program Index",
	0x192: "Maximum Memory Range Sets Exceeded",
	0x193: "Maximum Programs Activated",
	0x194: "Maximum Program Bytes Exceeded",
	0x195: "Memory Range Set In Use",
	0x196: "No Program",
	0x197: "Overlapping Memory Ranges",
	0x198: "Program Not Activated",
	0x199: "Program In Use",
	0x19a: "Program Index Not Downloadable",
	0x19b: "Program Too Big",
}

var fabricsStatusNames = map[Status]string{
	StatusConnectIncompatibleFormat: "Incompatible Format",
	StatusConnectControllerBusy:     "Controller Busy",
	StatusConnectInvalidParameters:  "Connect Invalid Parameters",
	StatusConnectRestartDiscovery:   "Connect Restart Discovery",
	StatusConnectInvalidHost:        "Connect Invalid Host",
	StatusInvalidQueueType:          "Invalid Queue Type",
	StatusDiscoverRestart:           "Discover Restart",
	StatusAuthenticationRequired:    "Authentication Required",
}

// Name returns the specification's name of the status code. A value that an
// I/O command set and fabrics both define gives both names; a value without a
// name is described as vendor specific or reserved.
func (s Status) Name() string {
	io, hasIO := statusNames[s.Code()]
	fabrics, hasFabrics := fabricsStatusNames[s.Code()]
	switch {
	case hasIO && hasFabrics:
		return io + " or " + fabrics
	case hasIO:
		return io
	case hasFabrics:
		return fabrics
	}
	return s.unnamed()
}

// NameFor returns the name of the status code as it is meant on a command of
// opcode op, which settles the values that fabrics and an I/O command set
// share.
func (s Status) NameFor(op Opcode) string {
	if op == OpFabrics {
		if name, ok := fabricsStatusNames[s.Code()]; ok {
			return name
		}
	}
	if name, ok := statusNames[s.Code()]; ok {
		return name
	}
	return s.Name()
}

func (s Status) unnamed() string {
	if name, ok := programStatusNames[s.Code()]; ok {
		return name
	}
	if s.IsVendor() {
		return fmt.Sprintf("vendor specific status 0x%03x", uint16(s.Code()))
	}
	return fmt.Sprintf("reserved status 0x%03x", uint16(s.Code()))
}
