package nvme

import "fmt"

// AsyncEvent is the result of an Asynchronous Event Request command, as it
// stands in Completion.Result (Base Specification 2.1, figures "Asynchronous
// Event Request – Completion Queue Entry Dword 0" and "... Dword 1").
type AsyncEvent uint64

// Types of asynchronous events.
const (
	AsyncError     uint8 = 0
	AsyncSMART     uint8 = 1
	AsyncNotice    uint8 = 2
	AsyncImmediate uint8 = 3
	AsyncOneShot   uint8 = 4
	AsyncIOCommand uint8 = 6 // I/O command specific status
	AsyncVendor    uint8 = 7
)

// Information of events of type AsyncError.
const (
	ErrorInvalidDoorbellRegister uint8 = 0x00
	ErrorInvalidDoorbellValue    uint8 = 0x01
	ErrorDiagnosticFailure       uint8 = 0x02
	ErrorPersistentInternal      uint8 = 0x03
	ErrorTransientInternal       uint8 = 0x04
	ErrorFirmwareImageLoad       uint8 = 0x05
)

// Information of events of type AsyncSMART.
const (
	SMARTReliability uint8 = 0x00
	SMARTTemperature uint8 = 0x01
	SMARTSpare       uint8 = 0x02
)

// Information of events of type AsyncNotice.
const (
	NoticeNamespaceAttributeChanged uint8 = 0x00
	NoticeFirmwareActivation        uint8 = 0x01
	NoticeTelemetryChanged          uint8 = 0x02
	NoticeANAChange                 uint8 = 0x03
	NoticePredictableLatency        uint8 = 0x04
	NoticeLBAStatus                 uint8 = 0x05
	NoticeEnduranceGroup            uint8 = 0x06
	NoticeReachabilityGroup         uint8 = 0x07
	NoticeReachabilityAssociation   uint8 = 0x08
	NoticeAllocatedNamespaceChanged uint8 = 0x09
	NoticeZoneDescriptorChanged     uint8 = 0xef
	NoticeDiscoveryLogChange        uint8 = 0xf0
	NoticeHostDiscoveryLogChange    uint8 = 0xf1
	NoticeAVEDiscoveryLogChange     uint8 = 0xf2
	NoticePullModelRequest          uint8 = 0xf3
)

// Information of events of type AsyncImmediate.
const (
	ImmediateSubsystemShutdown uint8 = 0x00
	ImmediateTemperatureBack   uint8 = 0x01 // end of a temperature hysteresis event
)

// Information of events of type AsyncOneShot.
const (
	OneShotDataQueueTail uint8 = 0x00
	OneShotDataQueueFull uint8 = 0x01
)

// Information of events of type AsyncIOCommand.
const (
	IOCommandReservation       uint8 = 0x00
	IOCommandSanitizeCompleted uint8 = 0x01
	IOCommandSanitizeDealloc   uint8 = 0x02 // completed, with unexpected deallocation
	IOCommandSanitizeVerify    uint8 = 0x03 // entered media verification
)

// MakeAsyncEvent composes an event.
func MakeAsyncEvent(kind, info uint8, page LogID, parameter uint32) AsyncEvent {
	return AsyncEvent(kind&7) | AsyncEvent(info)<<8 | AsyncEvent(page)<<16 | AsyncEvent(parameter)<<32
}

// Type returns one of the types of events.
func (e AsyncEvent) Type() uint8 { return uint8(e & 7) }

// Info returns the information about an event of its type.
func (e AsyncEvent) Info() uint8 { return uint8(e >> 8) }

// LogPage returns the log page to read to clear the event, where it has one.
func (e AsyncEvent) LogPage() LogID { return LogID(e >> 16) }

// Parameter returns the event specific parameter.
func (e AsyncEvent) Parameter() uint32 { return uint32(e >> 32) }

// Result returns the event as it stands in Completion.Result.
func (e AsyncEvent) Result() uint64 { return uint64(e) }

type eventKey struct{ kind, info uint8 }

var asyncEventNames = map[eventKey]string{
	{AsyncError, ErrorInvalidDoorbellRegister}: "Write to Invalid Doorbell Register",
	{AsyncError, ErrorInvalidDoorbellValue}:    "Invalid Doorbell Write Value",
	{AsyncError, ErrorDiagnosticFailure}:       "Diagnostic Failure",
	{AsyncError, ErrorPersistentInternal}:      "Persistent Internal Error",
	{AsyncError, ErrorTransientInternal}:       "Transient Internal Error",
	{AsyncError, ErrorFirmwareImageLoad}:       "Firmware Image Load Error",

	{AsyncSMART, SMARTReliability}: "NVM subsystem Reliability",
	{AsyncSMART, SMARTTemperature}: "Temperature Threshold",
	{AsyncSMART, SMARTSpare}:       "Spare Below Threshold",

	{AsyncNotice, NoticeNamespaceAttributeChanged}: "Attached Namespace Attribute Changed",
	{AsyncNotice, NoticeFirmwareActivation}:        "Firmware Activation Starting",
	{AsyncNotice, NoticeTelemetryChanged}:          "Telemetry Log Changed",
	{AsyncNotice, NoticeANAChange}:                 "Asymmetric Namespace Access Change",
	{AsyncNotice, NoticePredictableLatency}:        "Predictable Latency Event Aggregate Log Change",
	{AsyncNotice, NoticeLBAStatus}:                 "LBA Status Information Alert",
	{AsyncNotice, NoticeEnduranceGroup}:            "Endurance Group Event Aggregate Log Page Change",
	{AsyncNotice, NoticeReachabilityGroup}:         "Reachability Group Change",
	{AsyncNotice, NoticeReachabilityAssociation}:   "Reachability Association Change",
	{AsyncNotice, NoticeAllocatedNamespaceChanged}: "Allocated Namespace Attribute Changed",
	{AsyncNotice, NoticeZoneDescriptorChanged}:     "Zone Descriptor Changed",
	{AsyncNotice, NoticeDiscoveryLogChange}:        "Discovery Log Page Change",
	{AsyncNotice, NoticeHostDiscoveryLogChange}:    "Host Discovery Log Page Change",
	{AsyncNotice, NoticeAVEDiscoveryLogChange}:     "AVE Discovery Log Page Change",
	{AsyncNotice, NoticePullModelRequest}:          "Pull Model DDC Request",

	{AsyncImmediate, ImmediateSubsystemShutdown}: "NVM Subsystem Normal Shutdown",
	{AsyncImmediate, ImmediateTemperatureBack}:   "Temperature Threshold Hysteresis Recovery",

	{AsyncOneShot, OneShotDataQueueTail}: "Controller Data Queue Tail Pointer",
	{AsyncOneShot, OneShotDataQueueFull}: "Controller Data Queue Full Error",

	{AsyncIOCommand, IOCommandReservation}:       "Reservation Log Page Available",
	{AsyncIOCommand, IOCommandSanitizeCompleted}: "Sanitize Operation Completed",
	{AsyncIOCommand, IOCommandSanitizeDealloc}:   "Sanitize Operation Completed With Unexpected Deallocation",
	{AsyncIOCommand, IOCommandSanitizeVerify}:    "Sanitize Operation Entered Media Verification State",
}

// String returns the specification's name of the event, or a description with
// the numbers.
func (e AsyncEvent) String() string {
	if name, ok := asyncEventNames[eventKey{e.Type(), e.Info()}]; ok {
		return name
	}
	kind := "reserved"
	if e.Type() == AsyncVendor {
		kind = "vendor specific"
	}
	return fmt.Sprintf("%s event (type %d, information 0x%02x, log page 0x%02x)", kind, e.Type(), e.Info(), uint8(e.LogPage()))
}

// Bits of FeatAsyncEventConfiguration: events that the host wants. Bits 7:0 are
// those of SMARTLog.CriticalWarning. IdentifyController.OAES has the same bits
// for what the controller offers, with bit 17 for both kinds of reachability.
const (
	AsyncConfigNamespaceAttribute      uint32 = 1 << 8
	AsyncConfigFirmwareActivation      uint32 = 1 << 9
	AsyncConfigTelemetry               uint32 = 1 << 10
	AsyncConfigANAChange               uint32 = 1 << 11
	AsyncConfigPredictableLatency      uint32 = 1 << 12
	AsyncConfigLBAStatus               uint32 = 1 << 13
	AsyncConfigEnduranceGroup          uint32 = 1 << 14
	AsyncConfigSubsystemShutdown       uint32 = 1 << 15
	AsyncConfigTemperatureBack         uint32 = 1 << 16
	AsyncConfigReachabilityAssociation uint32 = 1 << 17
	AsyncConfigReachabilityGroup       uint32 = 1 << 18
	AsyncConfigAllocatedNamespace      uint32 = 1 << 19
	AsyncConfigZoneDescriptor          uint32 = 1 << 27
	AsyncConfigPullModelRequest        uint32 = 1 << 28
	AsyncConfigAVEDiscovery            uint32 = 1 << 29
	AsyncConfigHostDiscovery           uint32 = 1 << 30
	AsyncConfigDiscovery               uint32 = 1 << 31
)
