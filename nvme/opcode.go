package nvme

import "fmt"

// Opcode is the opcode of a command: bits 7:0 of its first dword. The same
// number names different commands on the admin queue and on an I/O queue, so
// the constants come in two families, Admin... and Op....
type Opcode uint8

// Admin command opcodes (Base Specification, figure "Opcodes for Admin
// Commands", and the NVM Command Set Specification for Get LBA Status).
const (
	AdminDeleteIOSQ                 Opcode = 0x00
	AdminCreateIOSQ                 Opcode = 0x01
	AdminGetLogPage                 Opcode = 0x02
	AdminDeleteIOCQ                 Opcode = 0x04
	AdminCreateIOCQ                 Opcode = 0x05
	AdminIdentify                   Opcode = 0x06
	AdminAbort                      Opcode = 0x08
	AdminSetFeatures                Opcode = 0x09
	AdminGetFeatures                Opcode = 0x0a
	AdminAsyncEvent                 Opcode = 0x0c
	AdminNamespaceManagement        Opcode = 0x0d
	AdminFirmwareCommit             Opcode = 0x10
	AdminFirmwareImageDownload      Opcode = 0x11
	AdminDeviceSelfTest             Opcode = 0x14
	AdminNamespaceAttachment        Opcode = 0x15
	AdminKeepAlive                  Opcode = 0x18
	AdminDirectiveSend              Opcode = 0x19
	AdminDirectiveReceive           Opcode = 0x1a
	AdminVirtualizationManagement   Opcode = 0x1c
	AdminMISend                     Opcode = 0x1d
	AdminMIReceive                  Opcode = 0x1e
	AdminCapacityManagement         Opcode = 0x20
	AdminDiscoveryInfoManagement    Opcode = 0x21
	AdminFabricZoningReceive        Opcode = 0x22
	AdminLockdown                   Opcode = 0x24
	AdminFabricZoningLookup         Opcode = 0x25
	AdminClearExportedNVMResource   Opcode = 0x28
	AdminFabricZoningSend           Opcode = 0x29
	AdminCreateExportedNVMSubsystem Opcode = 0x2a
	AdminManageExportedNVMSubsystem Opcode = 0x2d
	AdminManageExportedNamespace    Opcode = 0x31
	AdminManageExportedPort         Opcode = 0x35
	AdminSendDiscoveryLogPage       Opcode = 0x39
	AdminTrackSend                  Opcode = 0x3d
	AdminTrackReceive               Opcode = 0x3e
	AdminMigrationSend              Opcode = 0x41
	AdminMigrationReceive           Opcode = 0x42
	AdminControllerDataQueue        Opcode = 0x45
	AdminDoorbellBufferConfig       Opcode = 0x7c
	AdminFormatNVM                  Opcode = 0x80
	AdminSecuritySend               Opcode = 0x81
	AdminSecurityReceive            Opcode = 0x82
	AdminSanitize                   Opcode = 0x84
	AdminLoadProgram                Opcode = 0x85
	AdminGetLBAStatus               Opcode = 0x86
	AdminProgramActivation          Opcode = 0x88
	AdminMemoryRangeSetManagement   Opcode = 0x89
	AdminVendorStart                Opcode = 0xc0 // first vendor specific opcode
)

// I/O command opcodes that every I/O command set shares, and those of the NVM
// command set (Base Specification, figure "Opcodes for I/O Commands"; NVM
// Command Set Specification, same figure).
const (
	OpFlush               Opcode = 0x00
	OpWrite               Opcode = 0x01
	OpRead                Opcode = 0x02
	OpWriteUncorrectable  Opcode = 0x04
	OpCompare             Opcode = 0x05
	OpWriteZeroes         Opcode = 0x08
	OpDatasetManagement   Opcode = 0x09
	OpVerify              Opcode = 0x0c
	OpReservationRegister Opcode = 0x0d
	OpReservationReport   Opcode = 0x0e
	OpReservationAcquire  Opcode = 0x11
	OpIOManagementReceive Opcode = 0x12
	OpReservationRelease  Opcode = 0x15
	OpCancel              Opcode = 0x18
	OpCopy                Opcode = 0x19
	OpIOManagementSend    Opcode = 0x1d
	OpVendorStart         Opcode = 0x80 // first vendor specific opcode
)

// OpFabrics is the opcode of every fabrics command, on the admin queue and on
// I/O queues alike; byte 4 of the command, the low byte of Command.NSID,
// holds the FabricsType.
const OpFabrics Opcode = 0x7f

// Direction is the data transfer of a command as the two low bits of its
// opcode tell it (Base Specification 3.3.3.1).
type Direction uint8

// The four values of an opcode's data transfer bits.
const (
	DirNone Direction = 0 // no data
	DirOut  Direction = 1 // for example Write
	DirIn   Direction = 2 // for example Read
	DirBoth Direction = 3
)

// Direction returns the data transfer direction. For OpFabrics the direction
// depends on the FabricsType: use its Direction method instead.
func (o Opcode) Direction() Direction { return Direction(o & 3) }

// String returns the direction in words.
func (d Direction) String() string {
	switch d {
	case DirNone:
		return "none"
	case DirOut:
		return "host to controller"
	case DirIn:
		return "controller to host"
	case DirBoth:
		return "bidirectional"
	}
	return fmt.Sprintf("invalid direction %d", uint8(d))
}

// FabricsType tells the fabrics commands apart (Base Specification, figure
// "Fabrics Command Types").
type FabricsType uint8

// The fabrics command types.
const (
	FabricsPropertySet FabricsType = 0x00
	FabricsConnect     FabricsType = 0x01
	FabricsPropertyGet FabricsType = 0x04
	FabricsAuthSend    FabricsType = 0x05
	FabricsAuthReceive FabricsType = 0x06
	FabricsDisconnect  FabricsType = 0x08
	FabricsVendorStart FabricsType = 0xc0 // first vendor specific type
)

// Direction returns the data transfer direction of a fabrics command, which
// its two low bits give as those of an opcode do.
func (t FabricsType) Direction() Direction { return Direction(t & 3) }
