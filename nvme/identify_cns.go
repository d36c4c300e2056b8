package nvme

// IdentifyDataSize is the size of the data of every Identify command in bytes.
const IdentifyDataSize = 4096

// NSIDAll is the broadcast namespace identifier.
const NSIDAll uint32 = 0xffffffff

// CNS selects what an Identify command returns (Base Specification, figure
// "Identify – CNS Values").
type CNS uint8

// The CNS values.
const (
	CNSNamespace              CNS = 0x00 // IdentifyNamespace
	CNSController             CNS = 0x01 // IdentifyController
	CNSActiveNamespaces       CNS = 0x02 // namespace list after NSID
	CNSNamespaceDescriptors   CNS = 0x03 // namespace identification descriptors
	CNSNVMSets                CNS = 0x04 // NVMSetList
	CNSNamespaceCS            CNS = 0x05 // by CSI, for NVM IdentifyNamespaceNVM
	CNSControllerCS           CNS = 0x06 // by CSI, for NVM IdentifyControllerNVM
	CNSActiveNamespacesCS     CNS = 0x07 // namespace list after NSID, by CSI
	CNSNamespaceIndependent   CNS = 0x08 // IdentifyNamespaceIndependent
	CNSNamespaceFormat        CNS = 0x09 // IdentifyNamespace for a format index
	CNSNamespaceCSFormat      CNS = 0x0a // by CSI, for a format index
	CNSAllocatedNamespaces    CNS = 0x10 // namespace list after NSID
	CNSAllocatedNamespace     CNS = 0x11 // IdentifyNamespace
	CNSNamespaceControllers   CNS = 0x12 // controllers attached to NSID
	CNSControllers            CNS = 0x13 // controllers of the subsystem
	CNSPrimaryController      CNS = 0x14 // PrimaryControllerCapabilities
	CNSSecondaryControllers   CNS = 0x15 // SecondaryControllerList
	CNSNamespaceGranularity   CNS = 0x16 // NamespaceGranularityList
	CNSUUIDs                  CNS = 0x17 // UUIDList
	CNSDomains                CNS = 0x18 // DomainList
	CNSEnduranceGroups        CNS = 0x19 // identifier list
	CNSAllocatedNamespacesCS  CNS = 0x1a // namespace list after NSID, by CSI
	CNSAllocatedNamespaceCS   CNS = 0x1b // by CSI
	CNSIOCommandSets          CNS = 0x1c // IOCommandSetVectors
	CNSUnderlyingNamespaces   CNS = 0x1d
	CNSPorts                  CNS = 0x1e
	CNSAllocatedNSIndependent CNS = 0x1f // IdentifyNamespaceIndependent
	CNSSupportedStateFormats  CNS = 0x20
)

var cnsNames = map[CNS]string{
	CNSNamespace:              "Identify Namespace",
	CNSController:             "Identify Controller",
	CNSActiveNamespaces:       "Active Namespace ID list",
	CNSNamespaceDescriptors:   "Namespace Identification Descriptor list",
	CNSNVMSets:                "NVM Set List",
	CNSNamespaceCS:            "I/O Command Set specific Identify Namespace",
	CNSControllerCS:           "I/O Command Set specific Identify Controller",
	CNSActiveNamespacesCS:     "I/O Command Set specific Active Namespace ID list",
	CNSNamespaceIndependent:   "I/O Command Set Independent Identify Namespace",
	CNSNamespaceFormat:        "Identify Namespace for a format index",
	CNSNamespaceCSFormat:      "I/O Command Set specific Identify Namespace for a format index",
	CNSAllocatedNamespaces:    "Allocated Namespace ID list",
	CNSAllocatedNamespace:     "Identify Namespace for an allocated NSID",
	CNSNamespaceControllers:   "Namespace Attached Controller list",
	CNSControllers:            "Controller list",
	CNSPrimaryController:      "Primary Controller Capabilities",
	CNSSecondaryControllers:   "Secondary Controller list",
	CNSNamespaceGranularity:   "Namespace Granularity List",
	CNSUUIDs:                  "UUID List",
	CNSDomains:                "Domain List",
	CNSEnduranceGroups:        "Endurance Group List",
	CNSAllocatedNamespacesCS:  "I/O Command Set specific Allocated Namespace ID list",
	CNSAllocatedNamespaceCS:   "I/O Command Set specific Identify Namespace for an allocated NSID",
	CNSIOCommandSets:          "Identify I/O Command Set",
	CNSUnderlyingNamespaces:   "Get Underlying Namespace List",
	CNSPorts:                  "Get Ports List",
	CNSAllocatedNSIndependent: "I/O Command Set Independent Identify Namespace for an allocated NSID",
	CNSSupportedStateFormats:  "Supported Controller State Formats",
}

// String returns the specification's name of the data structure.
func (c CNS) String() string {
	if name, ok := cnsNames[c]; ok {
		return name
	}
	return numbered("CNS", uint32(c), false)
}

// CSI identifies an I/O command set (figure "Command Set Identifiers").
type CSI uint8

// The command sets.
const (
	CSINVM           CSI = 0x00
	CSIKeyValue      CSI = 0x01
	CSIZoned         CSI = 0x02
	CSILocalMemory   CSI = 0x03
	CSIComputational CSI = 0x04
)

// String returns the name of the command set.
func (c CSI) String() string {
	switch c {
	case CSINVM:
		return "NVM"
	case CSIKeyValue:
		return "Key Value"
	case CSIZoned:
		return "Zoned Namespace"
	case CSILocalMemory:
		return "Subsystem Local Memory"
	case CSIComputational:
		return "Computational Programs"
	}
	return numbered("command set", uint32(c), c >= 0x30 && c <= 0x3f)
}

// IdentifyCommand is the Identify command (Base Specification 5.1.13). Which
// fields matter depends on the CNS; the others stay zero.
type IdentifyCommand struct {
	CNS          CNS
	CSI          CSI
	NSID         uint32
	ControllerID uint16
	SpecificID   uint16 // CNS specific identifier
	UUIDIndex    uint8  // 0 to 127
}

// Command returns the submission queue entry. Its data is IdentifyDataSize
// bytes from the controller.
func (i IdentifyCommand) Command() Command {
	return Command{
		Opcode: AdminIdentify,
		NSID:   i.NSID,
		CDW10:  uint32(i.CNS) | uint32(i.ControllerID)<<16,
		CDW11:  uint32(i.SpecificID) | uint32(i.CSI)<<24,
		CDW14:  uint32(i.UUIDIndex & 0x7f),
	}
}

// ParseIdentify reads an Identify command.
func ParseIdentify(cmd *Command) (IdentifyCommand, error) {
	if err := expectAdmin(cmd, AdminIdentify); err != nil {
		return IdentifyCommand{}, err
	}
	return IdentifyCommand{
		CNS:          CNS(cmd.CDW10),
		CSI:          CSI(cmd.CDW11 >> 24),
		NSID:         cmd.NSID,
		ControllerID: uint16(cmd.CDW10 >> 16),
		SpecificID:   uint16(cmd.CDW11),
		UUIDIndex:    uint8(cmd.CDW14 & 0x7f),
	}, nil
}

func expectAdmin(cmd *Command, op Opcode) error {
	if cmd.Opcode != op {
		return malformed(AdminName(op)+" command", "opcode is that of %s", AdminName(cmd.Opcode))
	}
	return nil
}
