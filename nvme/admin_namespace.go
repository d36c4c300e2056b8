package nvme

import "structs"

// NamespaceCreate is the data of a Namespace Management command that creates a
// namespace of the NVM command set, 4096 bytes (NVM Command Set Specification
// 1.1, figure "Namespace Management – Host Software Specified Fields").
type NamespaceCreate struct {
	_        structs.HostLayout
	NSZE     uint64 // size in logical blocks
	NCAP     uint64 // capacity in logical blocks
	_        [10]byte
	FLBAS    uint8 // format, as in IdentifyNamespace.FLBAS
	_        [2]byte
	DPS      uint8 // data protection settings
	NMIC     uint8 // NMIC... bits
	_        [61]byte
	ANAGRPID uint32 // ANA group; 0 for the controller to choose
	_        [4]byte
	NVMSETID uint16 // NVM set; 0 for the controller to choose
	ENDGID   uint16 // endurance group; 0 for the controller to choose
	_        [280]byte
	LBSTM    uint64 // logical block storage tag mask
	NPHNDLS  uint16 // number of placement handles in use
	_        [118]byte
	PHNDL    [128]uint16 // placement handles: reclaim unit handle identifiers
	_        [3328]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (n *NamespaceCreate) AppendBinary(b []byte) ([]byte, error) { return encode(b, n) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (n *NamespaceCreate) UnmarshalBinary(b []byte) error {
	if err := decode("namespace creation", b, n); err != nil {
		return err
	}
	return checkCount("namespace creation", int(n.NPHNDLS), len(n.PHNDL))
}

// Handles returns the placement handles in use.
func (n *NamespaceCreate) Handles() []uint16 {
	return n.PHNDL[:min(int(n.NPHNDLS), len(n.PHNDL))]
}

// NamespaceManagementCommand is the Namespace Management command (Base
// Specification 5.1.21). Creating returns the NSID in dword 0 of the response.
type NamespaceManagementCommand struct {
	Delete bool   // delete NSID, else create from a NamespaceCreate
	NSID   uint32 // to delete; NSIDAll for all
	CSI    CSI    // to create
}

// Command returns the submission queue entry.
func (n NamespaceManagementCommand) Command() Command {
	cmd := Command{Opcode: AdminNamespaceManagement}
	if n.Delete {
		cmd.NSID, cmd.CDW10 = n.NSID, 1
		return cmd
	}
	cmd.CDW11 = uint32(n.CSI) << 24
	return cmd
}

// ParseNamespaceManagement reads a Namespace Management command. A reserved
// operation is a DecodeError.
func ParseNamespaceManagement(cmd *Command) (NamespaceManagementCommand, error) {
	if err := expectAdmin(cmd, AdminNamespaceManagement); err != nil {
		return NamespaceManagementCommand{}, err
	}
	switch sel := cmd.CDW10 & 0xf; sel {
	case 0:
		return NamespaceManagementCommand{CSI: CSI(cmd.CDW11 >> 24)}, nil
	case 1:
		return NamespaceManagementCommand{Delete: true, NSID: cmd.NSID}, nil
	default:
		return NamespaceManagementCommand{}, malformed("Namespace Management command", "operation %d", sel)
	}
}

// NamespaceAttachmentCommand is the Namespace Attachment command (Base
// Specification 5.1.20). Its data is a controller list, see
// AppendIdentifierList.
type NamespaceAttachmentCommand struct {
	NSID   uint32
	Detach bool
}

// Command returns the submission queue entry.
func (n NamespaceAttachmentCommand) Command() Command {
	return Command{Opcode: AdminNamespaceAttachment, NSID: n.NSID, CDW10: flag[uint32](n.Detach, 0)}
}

// ParseNamespaceAttachment reads a Namespace Attachment command. A reserved
// operation is a DecodeError.
func ParseNamespaceAttachment(cmd *Command) (NamespaceAttachmentCommand, error) {
	if err := expectAdmin(cmd, AdminNamespaceAttachment); err != nil {
		return NamespaceAttachmentCommand{}, err
	}
	sel := cmd.CDW10 & 0xf
	if sel > 1 {
		return NamespaceAttachmentCommand{}, malformed("Namespace Attachment command", "operation %d", sel)
	}
	return NamespaceAttachmentCommand{NSID: cmd.NSID, Detach: sel == 1}, nil
}

// Values of FormatCommand.Erase.
const (
	FormatEraseNone   uint8 = 0
	FormatEraseData   uint8 = 1
	FormatEraseCrypto uint8 = 2
)

// FormatCommand is the Format NVM command (Base Specification 5.1.10, NVM
// Command Set Specification 4.1.2).
type FormatCommand struct {
	NSID            uint32 // NSIDAll where FNA allows it
	Index           uint8  // LBA format, 0 to 63; above 15 needs HostBehavior.LBAFEE
	Extended        bool   // metadata at the end of each block, else separate
	Protection      uint8  // protection information type, 0 to 3
	ProtectionFirst bool   // in the first bytes of the metadata
	Erase           uint8  // a FormatErase... value
}

// Command returns the submission queue entry.
func (f FormatCommand) Command() Command {
	return Command{
		Opcode: AdminFormatNVM,
		NSID:   f.NSID,
		CDW10: uint32(f.Index&0xf) | flag[uint32](f.Extended, 4) | uint32(f.Protection&7)<<5 |
			flag[uint32](f.ProtectionFirst, 8) | uint32(f.Erase&7)<<9 | uint32(f.Index>>4&3)<<12,
	}
}

// ParseFormat reads a Format NVM command.
func ParseFormat(cmd *Command) (FormatCommand, error) {
	if err := expectAdmin(cmd, AdminFormatNVM); err != nil {
		return FormatCommand{}, err
	}
	v := cmd.CDW10
	return FormatCommand{
		NSID: cmd.NSID, Index: uint8(field(v, 0, 4) | field(v, 12, 2)<<4), Extended: bit(v, 4),
		Protection: uint8(field(v, 5, 3)), ProtectionFirst: bit(v, 8), Erase: uint8(field(v, 9, 3)),
	}, nil
}
