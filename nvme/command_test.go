package nvme

import "testing"

// builder is what the command descriptions of this package offer, with or
// without an error.
type builder interface{ Command() Command }

type checkedBuilder interface{ Command() (Command, error) }

func build(t testing.TB, v any) Command {
	t.Helper()
	switch b := v.(type) {
	case builder:
		return b.Command()
	case checkedBuilder:
		cmd, err := b.Command()
		if err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	t.Fatalf("%T builds no command", v)
	return Command{}
}

// wantBuilt compares the command that v builds with its golden bytes: opcode,
// NSID, CDW2 and CDW3, DPTR, CDW10 to CDW15; those left out at the end are
// zero. Then it parses the command back and refuses it with another opcode.
func wantBuilt[T comparable](t *testing.T, v T, parse func(*Command) (T, error), parts ...string) {
	t.Helper()
	golden := newImage(64)
	for i, offset := range []int{0, 4, 8, 24, 40} {
		if i < len(parts) {
			golden.put(t, offset, parts[i])
		}
	}
	cmd := build(t, v)
	b := commandBytes(t, cmd)
	wantImage(t, b, golden)
	if got, err := parse(&cmd); err != nil || got != v {
		t.Errorf("parsed %+v, %v, want %+v", got, err, v)
	}
	cmd.Opcode ^= 0x80
	_, err := parse(&cmd)
	wantDecodeError(t, err, "opcode")
}

// Layout: Base Specification 2.1 figures 143, 474, 475, 478 to 480, 482, 484,
// 487, 488; the Linux structures nvme_create_cq, nvme_create_sq,
// nvme_delete_queue and nvme_abort_cmd agree.
func TestQueueCommandsGolden(t *testing.T) {
	wantBuilt(t, CreateCQCommand{QID: 1, Size: 0x3ff, Address: 0x1122334455667000, Contiguous: true, Interrupts: true, Vector: 7},
		ParseCreateCQ, "05", "", "", "0070665544332211", "0100ff03 03000700")
	wantBuilt(t, CreateSQCommand{QID: 2, Size: 0x1f, Address: 0x1000, Contiguous: true, Priority: PriorityLow, CQID: 1, NVMSetID: 3},
		ParseCreateSQ, "01", "", "", "0010", "02001f00 07000100 03000000")
	wantCommand(t, DeleteCQCommand(0x0102), "04000000 00000000"+zero16+zero16+"02010000 00000000 00000000 00000000 00000000 00000000")
	wantCommand(t, DeleteSQCommand(0x0102), "00000000 00000000"+zero16+zero16+"02010000 00000000 00000000 00000000 00000000 00000000")
	wantCommand(t, DoorbellBufferCommand(0x1000, 0x2000), "7c000000 00000000"+zero16+"0010000000000000 0020000000000000"+zero16+"00000000 00000000")
	wantBuilt(t, AbortCommand{SQID: 4, CID: 0x1234}, ParseAbort, "08", "", "", "", "04003412")
}

// Layout: Base Specification 2.1 figures 556, 557 and 559.
func TestCancelGolden(t *testing.T) {
	wantBuilt(t, CancelCommand{NSID: 1, SQID: 4, CID: 0x1234}, ParseCancel, "18", "01", "", "", "04003412 00000000")
	wantBuilt(t, CancelCommand{NSID: NSIDAll, SQID: 4, CID: CancelAll}, ParseCancel, "18", "ffffffff", "", "", "0400ffff 01000000")
	for _, cmd := range []Command{{CDW11: 1}, {CDW10: 0xffff0000, CDW11: 2}, {CDW11: 3}} {
		cmd.Opcode = OpCancel
		_, err := ParseCancel(&cmd)
		wantDecodeError(t, err, "action")
	}
	r := CancelResult{Aborted: 2, Deferred: 3}
	if r.Result() != 0x00030002 || ParseCancelResult(0xffffffff_00030002) != r {
		t.Errorf("%#x, %+v", r.Result(), ParseCancelResult(0x00030002))
	}
}

// Layout: Base Specification 2.1 figures 364, 367, 368; libnvme builds the same
// dwords for namespace management and attachment.
func TestNamespaceCommandsGolden(t *testing.T) {
	wantBuilt(t, NamespaceManagementCommand{CSI: CSIZoned}, ParseNamespaceManagement, "0d", "", "", "", "00000000 00000002")
	wantBuilt(t, NamespaceManagementCommand{Delete: true, NSID: 5}, ParseNamespaceManagement, "0d", "05", "", "", "01")
	_, err := ParseNamespaceManagement(&Command{Opcode: AdminNamespaceManagement, CDW10: 2})
	wantDecodeError(t, err, "operation 2")
	wantBuilt(t, NamespaceAttachmentCommand{NSID: 5}, ParseNamespaceAttachment, "15", "05")
	wantBuilt(t, NamespaceAttachmentCommand{NSID: 5, Detach: true}, ParseNamespaceAttachment, "15", "05", "", "", "01")
	_, err = ParseNamespaceAttachment(&Command{Opcode: AdminNamespaceAttachment, CDW10: 2})
	wantDecodeError(t, err, "operation 2")
}

// Offsets: NVM Command Set Specification 1.1 figure "Namespace Management –
// Host Software Specified Fields"; libnvme struct nvme_ns_mgmt_host_sw_specified
// agrees.
func TestNamespaceCreateGolden(t *testing.T) {
	n := &NamespaceCreate{
		NSZE: 1, NCAP: 2, FLBAS: 3, DPS: 4, NMIC: 5, ANAGRPID: 6, NVMSETID: 7, ENDGID: 8, LBSTM: 9, NPHNDLS: 2,
		PHNDL: [128]uint16{10, 11, 127: 12},
	}
	golden := newImage(4096).put(t, 0, "0100000000000000 0200000000000000").put(t, 26, "03").put(t, 29, "04 05").put(t, 92, "06").
		put(t, 100, "0700 0800").put(t, 384, "0900000000000000 0200").put(t, 512, "0a00 0b00").put(t, 766, "0c00")
	roundTrip(t, golden, n, new(NamespaceCreate))
	if h := n.Handles(); len(h) != 2 || h[1] != 11 {
		t.Errorf("handles %v", h)
	}
	golden.put(t, 392, "8100")
	wantDecodeError(t, n.UnmarshalBinary(golden), "namespace creation")
	if len(n.Handles()) > 128 {
		t.Error("handles past the end")
	}
}

// Layout: Base Specification 2.1 figure 189 and NVM Command Set Specification
// 1.1 figure "Format NVM – Command Dword 10"; SPDK struct spdk_nvme_format
// agrees on bits 11:0.
func TestFormatGolden(t *testing.T) {
	wantBuilt(t, FormatCommand{NSID: NSIDAll, Index: 0x35, Extended: true, Protection: 3, ProtectionFirst: true, Erase: FormatEraseCrypto},
		ParseFormat, "80", "ffffffff", "", "", "75350000")
	wantBuilt(t, FormatCommand{NSID: 1, Erase: FormatEraseData}, ParseFormat, "80", "01", "", "", "00020000")
}

// Layout: Base Specification 2.1 figures 181, 185, 186; SPDK struct
// spdk_nvme_fw_commit and libnvme's firmware download agree.
func TestFirmwareCommandsGolden(t *testing.T) {
	wantBuilt(t, FirmwareDownloadCommand{Offset: 0x8000, Length: 0x1000}, ParseFirmwareDownload, "11", "", "", "", "ff030000 00200000")
	wantBuilt(t, FirmwareDownloadCommand{Offset: 1<<34 - 4, Length: 1 << 34}, ParseFirmwareDownload, "11", "", "", "", "ffffffff ffffffff")
	for _, f := range []FirmwareDownloadCommand{{}, {Length: 6}, {Length: 1<<34 + 4}, {Length: 4, Offset: 2}, {Length: 4, Offset: 1 << 34}} {
		_, err := f.Command()
		wantRangeError(t, err)
	}
	wantBuilt(t, FirmwareCommitCommand{Slot: 7, Action: FirmwareActivateNow}, ParseFirmwareCommit, "10", "", "", "", "1f")
	wantBuilt(t, FirmwareCommitCommand{Action: FirmwareActivateBoot, BootPartition: 1}, ParseFirmwareCommit, "10", "", "", "", "38000080")
}

// Layout: Base Specification 2.1 figures 171, 172, 337, 338, 372, 373, 376, 377,
// 489, 490; SPDK struct spdk_nvme_sanitize and libnvme's enumerations agree.
func TestMaintenanceCommandsGolden(t *testing.T) {
	wantBuilt(t, SanitizeCommand{Action: SanitizeOverwrite, Unrestricted: true, Passes: 16, Invert: true, NoDeallocate: true, Verify: true, Pattern: 0xdeadbeef},
		ParseSanitize, "84", "", "", "", "0b070000 efbeadde")
	wantBuilt(t, SanitizeCommand{Action: SanitizeCryptoErase, Passes: 3}, ParseSanitize, "84", "", "", "", "34")
	wantBuilt(t, SelfTestCommand{NSID: NSIDAll, Code: SelfTestVendor, Parameter: 0x12345678},
		ParseSelfTest, "14", "ffffffff", "", "", "0e000000 00000000 00000000 00000000 00000000 78563412")
	wantBuilt(t, LockdownCommand{Scope: LockdownScopeFeatures, Prohibit: true, Interface: LockdownOutOfBand, ID: 0x81, UUIDIndex: 0x7f},
		ParseLockdown, "24", "", "", "", "52810000 00000000 00000000 00000000 7f")
	wantBuilt(t, SecurityCommand{NSID: 1, Protocol: 0xea, ProtocolSpecific: 0x0102, Specific: 3, Length: 0x200},
		ParseSecurity, "81", "01", "", "", "030201ea 00020000")
	wantBuilt(t, SecurityCommand{Receive: true, Length: 8}, ParseSecurity, "82", "", "", "", "00000000 08000000")
	wantBuilt(t, VirtualizationCommand{Action: VirtualizationAssign, Interrupts: true, ControllerID: 0x0102, Count: 0x0304},
		ParseVirtualization, "1c", "", "", "", "08010201 04030000")
}
