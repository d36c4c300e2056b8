package nvme

import (
	"testing"
)

// Offsets: NVM Command Set Specification 1.1, Identify Namespace figure;
// libnvme struct nvme_id_ns and struct nvme_lbaf agree.
func TestIdentifyNamespaceGolden(t *testing.T) {
	n := &IdentifyNamespace{
		NSZE: 0x1122334455667788, NCAP: 2, NUSE: 3, NSFEAT: 0x1e, NLBAF: 1, FLBAS: 0x11, MC: 3, DPC: 0x1f, DPS: 9,
		NMIC: 1, RESCAP: 0xff, FPI: 0x99, DLFEAT: 9, NAWUN: 0x101, NAWUPF: 0x202, NACWU: 0x303, NABSN: 0x404, NABO: 0x505,
		NABSPF: 0x606, NOIOB: 0x707, NVMCAP: Uint128{Lo: 0x0102030405060708, Hi: 9}, NPWG: 0x808, NPWA: 0x909, NPDG: 0xa0a,
		NPDA: 0xb0b, NOWS: 0xc0c, MSSRL: 0xd0d, MCL: 0x0e0e0e0e, MSRC: 0xf, KPIOS: 1, NULBAF: 2, KPIODAAG: 0x10101010,
		ANAGRPID: 0x11111111, NSATTR: 1, NVMSETID: 0x1212, ENDGID: 0x1313,
	}
	n.NGUID[0], n.NGUID[15], n.EUI64[0], n.EUI64[7] = 0xa0, 0xa1, 0xb0, 0xb1
	n.LBAF[0] = LBAFormat{MS: 0, LBADS: 9, RP: 2}
	n.LBAF[1] = LBAFormat{MS: 0x108, LBADS: 12, RP: 0}
	n.LBAF[63] = LBAFormat{LBADS: 13}
	n.VendorBytes[0], n.VendorBytes[3711] = 0xaa, 0xbb
	golden := newImage(4096).
		put(t, 0, "8877665544332211 0200000000000000 0300000000000000 1e 01 11 03 1f 09 01 ff 99 09 0101 0202 0303 0404 0505 0606 0707").
		put(t, 48, "0807060504030201 0900000000000000 0808 0909 0a0a 0b0b 0c0c 0d0d 0e0e0e0e 0f 01 02 00 10101010 00000000 11111111 000000 01 1212 1313").
		put(t, 104, "a0").put(t, 119, "a1 b0").put(t, 127, "b1 0000 09 02 0801 0c 00").
		put(t, 380, "0000 0d 00 aa").put(t, 4095, "bb")
	roundTrip(t, golden, n, new(IdentifyNamespace))
	f, err := n.Format()
	if err != nil || f != n.LBAF[1] || !n.ExtendedMetadata() || n.ProtectionType() != 1 || !n.HasWriteHints() || !n.Active() {
		t.Errorf("format %+v, %v", f, err)
	}
	if p, ok := n.FormatRemaining(); p != 25 || !ok {
		t.Errorf("format remaining %d, %v", p, ok)
	}
}

func TestFormatIndex(t *testing.T) {
	for _, c := range []struct {
		nlbaf, nulbaf, flbas uint8
		index, formats       int
	}{
		{0, 0, 0x00, 0, 1},
		{3, 0, 0x03, 3, 4},
		{15, 0, 0x6f, 15, 16}, // 16 formats: the upper bits are ignored
		{16, 0, 0x20, 16, 17},
		{63, 0, 0x6f, 63, 64},
		{63, 0, 0x7f, 63, 64}, // bit 4 is the metadata setting
		{15, 1, 0x20, 16, 17},
		{255, 255, 0x45, 0x25, 64},
	} {
		n := IdentifyNamespace{NLBAF: c.nlbaf, NULBAF: c.nulbaf, FLBAS: c.flbas}
		if n.FormatIndex() != c.index || len(n.Formats()) != c.formats {
			t.Errorf("%+v: index %d of %d", c, n.FormatIndex(), len(n.Formats()))
		}
	}
}

func TestFormatRefused(t *testing.T) {
	n := IdentifyNamespace{NLBAF: 1, FLBAS: 2}
	n.LBAF[2].LBADS = 12
	_, err := n.Format()
	wantDecodeError(t, err, "LBA format 2 of 2")
	for _, lbads := range []uint8{0, 1, 8, 25, 32, 64, 255} {
		n := IdentifyNamespace{NSZE: 1}
		n.LBAF[0].LBADS = lbads
		_, err := n.Format()
		wantDecodeError(t, err, "data size")
		_, err = n.Bytes()
		wantDecodeError(t, err, "data size")
	}
}

func TestNamespaceBytes(t *testing.T) {
	n := IdentifyNamespace{NSZE: 1 << 31}
	n.LBAF[0].LBADS = 12
	if b, err := n.Bytes(); b != 1<<43 || err != nil {
		t.Errorf("%d, %v", b, err)
	}
	n.NSZE = 1<<51 - 1
	if b, err := n.Bytes(); b != 1<<63-4096 || err != nil {
		t.Errorf("%d, %v", b, err)
	}
	for _, size := range []uint64{1 << 51, 1 << 52, 1<<64 - 1} {
		n.NSZE = size
		_, err := n.Bytes()
		wantDecodeError(t, err, "blocks of 2^12")
	}
}

// Offsets: Base Specification 2.1 figure 319, NVM Command Set Specification
// 1.1 (CNS 05h and 06h); libnvme struct nvme_id_independent_id_ns, struct
// nvme_nvm_id_ns and struct nvme_id_ctrl_nvm agree.
func TestIdentifySpecificGolden(t *testing.T) {
	roundTrip(t, newImage(4096).put(t, 0, "28 01 ff 80 04030201 01 00 0605 0807 05 03 0a09 0000 0e0d0c0b"),
		&IdentifyNamespaceIndependent{
			NSFEAT: NSFEATIndependentUIDReuse | NSFEATIndependentNoCache, NMIC: NMICShared, RESCAP: 0xff, FPI: 0x80,
			ANAGRPID: 0x01020304, NSATTR: NSATTRWriteProtected, NVMSETID: 0x0506, ENDGID: 0x0708,
			NSTAT: NSTATReady | NSTATImpactNone, KPIOS: 3, MAXKT: 0x090a, RGRPID: 0x0b0c0d0e,
		}, new(IdentifyNamespaceIndependent))

	n := &IdentifyNamespaceNVM{
		LBSTM: 0x0102030405060708, PIC: PICStorageTagRead, PIFA: 1, NPDGL: 2, NPRG: 3, NPRA: 4, NORS: 5, NPDAL: 6, LBAPSS: 7, TLBAAG: 8,
	}
	n.ELBAF[0], n.ELBAF[63] = 0x00000a90, 1
	roundTrip(t, newImage(4096).put(t, 0, "0807060504030201 04 01 0000 900a0000").
		put(t, 264, "01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000"), n, new(IdentifyNamespaceNVM))
	if e := n.ELBAF[0]; e.StorageTagSize() != 16 || e.PIF() != PIFGuard32 || e.QPIF() != 5 {
		t.Errorf("extended format %#x: %d, %d, %d", uint32(e), e.StorageTagSize(), e.PIF(), e.QPIF())
	}

	roundTrip(t, newImage(4096).put(t, 0, "01 02 03 04 08070605 100f0e0d0c0b0a09 11 12 1413 00010100 16"),
		&IdentifyControllerNVM{
			VSL: 1, WZSL: 2, WUSL: 3, DMRL: 4, DMRSL: 0x05060708, DMSL: 0x090a0b0c0d0e0f10, KPIOCAP: 0x11, WZDSL: 0x12,
			AOCS: 0x1314, VER: MakeVS(1, 1, 0), LBAMQF: 0x16,
		}, new(IdentifyControllerNVM))
	for v, want := range map[uint8]uint64{0: 0, 1: 8192, 31: 4096 << 31, 32: 0, 255: 0} {
		if got := SizeLimit(v, 4096); got != want {
			t.Errorf("limit %d: %d, want %d", v, got, want)
		}
	}
	if !(&IdentifyNamespaceIndependent{NSTAT: 1}).Ready() || (&IdentifyNamespaceIndependent{NSTAT: 6}).Ready() {
		t.Error("namespace ready")
	}
}
