package nvme

import (
	"reflect"
	"slices"
	"testing"
)

// Layout: NVM Command Set Specification 1.1 section 3.3, the figures of command
// dwords 2, 3 and 10 to 15; the Linux struct nvme_rw_command with its NVME_RW_
// flags, and SPDK's SPDK_NVME_IO_FLAGS_ agree.
func TestIOCommandGolden(t *testing.T) {
	wantBuilt(t, IOCommand{
		Opcode: OpWrite, NSID: 1, SLBA: 0x1122334455667788, Blocks: 8, Flags: IOFUA | IOLimitedRetry,
		Directive: DirectiveDataPlacement, DirectiveID: 0x0304, Hint: HintSequential | HintOnce,
	}, ParseIO, "01", "01", "", "", "88776655 44332211 070020c0 46000403")
	wantBuilt(t, IOCommand{
		Opcode: OpRead, NSID: 2, Blocks: 65536, Flags: IOProtectAction | IOCheckGuard | IOCheckAppTag | IOCheckRefTag | IOStorageTagCheck,
		Extension: 1, ExtensionVal: 0x0506, Tags: IOTags{Lower: 0x01020304, Upper: 0x0000aabbccddeeff, App: 0x1112, AppMask: 0x1314},
	}, ParseIO, "02", "02", "ffeeddcc bbaa0000", "", "00000000 00000000 ffff013d 06050000 04030201 12111413")
	wantBuilt(t, IOCommand{Opcode: OpWriteZeroes, NSID: 1, Blocks: 1, Flags: IODeallocate | IONamespaceZeroes, Directive: 2},
		ParseIO, "08", "01", "", "", "00000000 00000000 0000a002")
	for _, op := range []Opcode{OpCompare, OpVerify, OpWriteUncorrectable} {
		i := IOCommand{Opcode: op, NSID: 1, SLBA: 9, Blocks: 2}
		cmd := build(t, i)
		if got, err := ParseIO(&cmd); err != nil || got != i {
			t.Errorf("%v: parsed %+v, %v", IOName(op), got, err)
		}
	}
}

// Bit 23 of CDW12 belongs to the directive type but for Write Zeroes, where it
// stands for the whole namespace: neither may turn into the other.
func TestIOCommandBit23(t *testing.T) {
	w := build(t, IOCommand{Opcode: OpWrite, Blocks: 1, Flags: IONamespaceZeroes, Directive: 15})
	if w.CDW12 != 0x00f00000 {
		t.Errorf("write: %#x", w.CDW12)
	}
	if i, err := ParseIO(&w); err != nil || i.Flags != 0 || i.Directive != 15 {
		t.Errorf("write: %+v, %v", i, err)
	}
	z := build(t, IOCommand{Opcode: OpWriteZeroes, Blocks: 1, Directive: 15})
	if z.CDW12 != 0x00700000 {
		t.Errorf("write zeroes: %#x", z.CDW12)
	}
	z.CDW12 |= IONamespaceZeroes
	if i, err := ParseIO(&z); err != nil || i.Flags != IONamespaceZeroes || i.Directive != 7 {
		t.Errorf("write zeroes: %+v, %v", i, err)
	}
}

func TestIOCommandRefused(t *testing.T) {
	for _, i := range []IOCommand{{}, {Blocks: 65537}, {Blocks: 1, Tags: IOTags{Upper: 1 << 48}}} {
		_, err := i.Command()
		wantRangeError(t, err)
	}
	for _, op := range []Opcode{OpFlush, OpDatasetManagement, OpCopy, OpCancel, 0xff} {
		_, err := ParseIO(&Command{Opcode: op})
		wantDecodeError(t, err, "opcode is that of")
	}
}

// Layout: NVM Command Set Specification 1.1 section 3.3.3; the Linux structures
// nvme_dsm_cmd and nvme_dsm_range, and SPDK's spdk_nvme_dsm_range agree.
func TestDSMGolden(t *testing.T) {
	wantBuilt(t, DSMCommand{NSID: 1, Ranges: 256, Deallocate: true}, ParseDSM, "09", "01", "", "", "ff000000 04000000")
	wantBuilt(t, DSMCommand{NSID: 1, Ranges: 1, IntegralRead: true, IntegralWrite: true}, ParseDSM, "09", "01", "", "", "00000000 03000000")
	for _, n := range []int{-1, 0, 257} {
		_, err := DSMCommand{Ranges: n}.Command()
		wantRangeError(t, err)
	}
	ranges := []DSMRange{{Attributes: 0x01020304, Length: 0x05060708, LBA: 0x1112131415161718}, {Length: 1}}
	b := AppendDSMRanges(nil, ranges)
	wantImage(t, b, hexBytes(t, "04030201 08070605 1817161514131211 00000000 01000000 0000000000000000"))
	if got, err := ParseDSMRanges(b, 2); err != nil || !slices.Equal(got, ranges) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseDSMRanges(b, -1); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseDSMRanges(b, 2); return err })
}

// Layout: NVM Command Set Specification 1.1 section 3.3.2; libnvme struct
// nvme_copy_range_f2 and nvme_copy_range_f3 agree on the fields that they have.
func TestCopyGolden(t *testing.T) {
	wantBuilt(t, CopyCommand{
		NSID: 1, SDLBA: 0x1122334455667788, Ranges: 3, Format: CopyFormat2, Flags: IOFUA | CopyStorageTagRead | IOStorageTagCheck,
		ReadProtect: 0xf, Directive: 8, DirectiveID: 0x0102, Extension: 1, ExtensionV: 0x0304,
		Tags: IOTags{Lower: 5, Upper: 0x060000000007, App: 8, AppMask: 9},
	}, ParseCopy, "19", "01", "07000000 00060000", "", "88776655 44332211 02f28143 04030201 05000000 08000900")
	for _, c := range []CopyCommand{{}, {Ranges: 257}, {Ranges: 1, Format: 4}, {Ranges: 1, Tags: IOTags{Upper: 1 << 48}}} {
		_, err := c.Command()
		wantRangeError(t, err)
	}
	r := &CopyRange{SNSID: 1, SLBA: 2, NLB: 3, CETYPE: 4, CEV: 5, SOPT: CopyFastOnly, ELBT: 6, ELBAT: 7, ELBATM: 8}
	golden := newImage(32).put(t, 0, "01000000 00000000 0200000000000000 0300 04 00 0500 0080 06000000 0700 0800")
	roundTrip(t, golden, r, new(CopyRange))
	long := &CopyRangeLong{SNSID: 1, SLBA: 2, NLB: 3, CETYPE: 4, CEV: 5, SOPT: CopyFastOnly, ELBT: [10]byte{6, 9: 9}, ELBAT: 7, ELBATM: 8}
	roundTrip(t, newImage(40).put(t, 0, "01000000 00000000 0200000000000000 0300 04 00 0500 0080 0000 06000000000000000009 0700 0800"), long, new(CopyRangeLong))
	b, err := AppendCopyRanges(nil, []CopyRange{*r, {SLBA: 9}})
	if err != nil || len(b) != 64 || !slices.Equal(b[:32], golden) {
		t.Errorf("%x, %v", b, err)
	}
	if got, err := ParseCopyRanges(b, 2); err != nil || len(got) != 2 || got[0] != *r || got[1].SLBA != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseCopyRanges(b, 2); return err })
}

// Layout: NVM Command Set Specification 1.1 section 4.2.1; libnvme struct
// nvme_lba_status and nvme_lba_status_desc agree.
func TestLBAStatusGolden(t *testing.T) {
	wantBuilt(t, GetLBAStatusCommand{NSID: 1, SLBA: 0x1122334455667788, Length: 0x1000, Range: 0x0102, Action: LBAStatusTracked},
		ParseGetLBAStatus, "86", "01", "", "", "88776655 44332211 ff030000 02010011")
	for _, n := range []uint64{0, 6, 1<<34 + 4} {
		_, err := GetLBAStatusCommand{Length: n}.Command()
		wantRangeError(t, err)
	}
	list := []LBAStatus{{SLBA: 1, Blocks: 2, Status: LBARangeUncorrectable}, {SLBA: 5, Blocks: 1 << 32}}
	b, err := AppendLBAStatus(nil, list, LBAStatusIncomplete)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, hexBytes(t, "02000000 01 000000 0100000000000000 01000000 00 03 0000 0500000000000000 ffffffff 00 00 0000"))
	got, condition, err := ParseLBAStatus(b)
	if err != nil || condition != LBAStatusIncomplete || !slices.Equal(got, list) {
		t.Errorf("%+v, %d, %v", got, condition, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, _, err := ParseLBAStatus(b); return err })
	for _, n := range []uint64{0, 1<<32 + 1} {
		_, err := AppendLBAStatus(nil, []LBAStatus{{Blocks: n}}, 0)
		wantRangeError(t, err)
	}
}

// Layout: Base Specification 2.1 figures 561 to 567; libnvme struct
// nvme_fdp_ruh_status_desc agrees.
func TestHandleStatusGolden(t *testing.T) {
	wantBuilt(t, HandleStatusCommand{NSID: 1, Length: 0x1000}, ParseHandleStatusCommand, "12", "01", "", "", "01000000 ff030000")
	wantBuilt(t, HandleUpdateCommand{NSID: 1, Count: 65536}, ParseHandleUpdate, "1d", "01", "", "", "0100ffff")
	_, err := HandleStatusCommand{Length: 2}.Command()
	wantRangeError(t, err)
	for _, n := range []int{-1, 0, 65537} {
		_, err := HandleUpdateCommand{Count: n}.Command()
		wantRangeError(t, err)
	}
	_, err = ParseHandleStatusCommand(&Command{Opcode: OpIOManagementReceive, CDW10: 2})
	wantDecodeError(t, err, "operation 2")
	_, err = ParseHandleUpdate(&Command{Opcode: OpIOManagementSend, CDW10: 0xff})
	wantDecodeError(t, err, "operation 255")

	list := []HandleStatus{{PID: 1, RUHID: 2, EARUTR: 3, RUAMW: 4}, {PID: 5}}
	b, err := AppendHandleStatus(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	golden := newImage(80).put(t, 14, "0200 0100 0200 03000000 0400000000000000").put(t, 48, "05")
	wantImage(t, b, golden)
	if got, err := ParseHandleStatus(b); err != nil || !reflect.DeepEqual(got, list) {
		t.Errorf("%+v, %v", got, err)
	}
	everyPrefix(t, b, func(b []byte) error { _, err := ParseHandleStatus(b); return err })
	roundTrip(t, golden[16:48], &list[0], new(HandleStatus))
	_, err = AppendHandleStatus(nil, make([]HandleStatus, 1<<16))
	wantRangeError(t, err)

	ids := AppendPlacementIDs(nil, []uint16{1, 0x0203})
	wantImage(t, ids, hexBytes(t, "0100 0302"))
	if got, err := ParsePlacementIDs(ids, 2); err != nil || !slices.Equal(got, []uint16{1, 0x0203}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, n := range []int{-1, 3} {
		_, err := ParsePlacementIDs(ids, n)
		wantDecodeError(t, err, "placement identifiers")
	}
}
