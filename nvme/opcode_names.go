package nvme

import "fmt"

var adminNames = map[Opcode]string{
	AdminDeleteIOSQ:                 "Delete I/O Submission Queue",
	AdminCreateIOSQ:                 "Create I/O Submission Queue",
	AdminGetLogPage:                 "Get Log Page",
	AdminDeleteIOCQ:                 "Delete I/O Completion Queue",
	AdminCreateIOCQ:                 "Create I/O Completion Queue",
	AdminIdentify:                   "Identify",
	AdminAbort:                      "Abort",
	AdminSetFeatures:                "Set Features",
	AdminGetFeatures:                "Get Features",
	AdminAsyncEvent:                 "Asynchronous Event Request",
	AdminNamespaceManagement:        "Namespace Management",
	AdminFirmwareCommit:             "Firmware Commit",
	AdminFirmwareImageDownload:      "Firmware Image Download",
	AdminDeviceSelfTest:             "Device Self-test",
	AdminNamespaceAttachment:        "Namespace Attachment",
	AdminKeepAlive:                  "Keep Alive",
	AdminDirectiveSend:              "Directive Send",
	AdminDirectiveReceive:           "Directive Receive",
	AdminVirtualizationManagement:   "Virtualization Management",
	AdminMISend:                     "NVMe-MI Send",
	AdminMIReceive:                  "NVMe-MI Receive",
	AdminCapacityManagement:         "Capacity Management",
	AdminDiscoveryInfoManagement:    "Discovery Information Management",
	AdminFabricZoningReceive:        "Fabric Zoning Receive",
	AdminLockdown:                   "Lockdown",
	AdminFabricZoningLookup:         "Fabric Zoning Lookup",
	AdminClearExportedNVMResource:   "Clear Exported NVM Resource Configuration",
	AdminFabricZoningSend:           "Fabric Zoning Send",
	AdminCreateExportedNVMSubsystem: "Create Exported NVM Subsystem",
	AdminManageExportedNVMSubsystem: "Manage Exported NVM Subsystem",
	AdminManageExportedNamespace:    "Manage Exported Namespace",
	AdminManageExportedPort:         "Manage Exported Port",
	AdminSendDiscoveryLogPage:       "Send Discovery Log Page",
	AdminTrackSend:                  "Track Send",
	AdminTrackReceive:               "Track Receive",
	AdminMigrationSend:              "Migration Send",
	AdminMigrationReceive:           "Migration Receive",
	AdminControllerDataQueue:        "Controller Data Queue",
	AdminDoorbellBufferConfig:       "Doorbell Buffer Config",
	OpFabrics:                       "Fabrics Command",
	AdminFormatNVM:                  "Format NVM",
	AdminSecuritySend:               "Security Send",
	AdminSecurityReceive:            "Security Receive",
	AdminSanitize:                   "Sanitize",
	AdminLoadProgram:                "Load Program",
	AdminGetLBAStatus:               "Get LBA Status",
	AdminProgramActivation:          "Program Activation Management",
	AdminMemoryRangeSetManagement:   "Memory Range Set Management",
}

var ioNames = map[Opcode]string{
	OpFlush:               "Flush",
	OpWrite:               "Write",
	OpRead:                "Read",
	OpWriteUncorrectable:  "Write Uncorrectable",
	OpCompare:             "Compare",
	OpWriteZeroes:         "Write Zeroes",
	OpDatasetManagement:   "Dataset Management",
	OpVerify:              "Verify",
	OpReservationRegister: "Reservation Register",
	OpReservationReport:   "Reservation Report",
	OpReservationAcquire:  "Reservation Acquire",
	OpIOManagementReceive: "I/O Management Receive",
	OpReservationRelease:  "Reservation Release",
	OpCancel:              "Cancel",
	OpCopy:                "Copy",
	OpIOManagementSend:    "I/O Management Send",
	OpFabrics:             "Fabrics Command",
}

var fabricsNames = map[FabricsType]string{
	FabricsPropertySet: "Property Set",
	FabricsConnect:     "Connect",
	FabricsPropertyGet: "Property Get",
	FabricsAuthSend:    "Authentication Send",
	FabricsAuthReceive: "Authentication Receive",
	FabricsDisconnect:  "Disconnect",
}

// AdminName returns the specification's name of an admin command, or a
// description with the number for a reserved or vendor specific opcode.
func AdminName(o Opcode) string {
	if name, ok := adminNames[o]; ok {
		return name
	}
	return numbered("admin opcode", uint32(o), o >= AdminVendorStart)
}

// IOName returns the specification's name of a command of the NVM command
// set, or a description with the number for a reserved or vendor specific
// opcode.
func IOName(o Opcode) string {
	if name, ok := ioNames[o]; ok {
		return name
	}
	return numbered("I/O opcode", uint32(o), o >= OpVendorStart)
}

// String returns the specification's name of the fabrics command, or a
// description with the number for a reserved or vendor specific type.
func (t FabricsType) String() string {
	if name, ok := fabricsNames[t]; ok {
		return name
	}
	return numbered("fabrics type", uint32(t), t >= FabricsVendorStart)
}

// numbered describes a value that the specification gives no name.
func numbered(what string, v uint32, vendor bool) string {
	if vendor {
		return fmt.Sprintf("vendor specific %s 0x%02x", what, v)
	}
	return fmt.Sprintf("reserved %s 0x%02x", what, v)
}
