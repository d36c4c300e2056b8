package nvme

import (
	"slices"
	"testing"
)

func TestNamespaceList(t *testing.T) {
	full := make([]uint32, 1024)
	for i := range full {
		full[i] = uint32(i)*3 + 6
	}
	for _, ids := range [][]uint32{{}, {1}, {1, 2, 0xfffffffd}, full} {
		b, err := AppendNamespaceList(nil, ids)
		if err != nil || len(b) != IdentifyDataSize {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		got, err := ParseNamespaceList(b, 0)
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	b, _ := AppendNamespaceList(nil, []uint32{0x04030201})
	wantImage(t, b, newImage(4096).put(t, 0, "01020304"))
	for _, bad := range [][]uint32{{0}, {2, 1}, {1, 1}, {0xfffffffe}, {0xffffffff}, make([]uint32, 1025)} {
		_, err := AppendNamespaceList(nil, bad)
		wantRangeError(t, err)
	}
}

func TestNamespaceListHostile(t *testing.T) {
	for _, c := range []struct {
		list  string
		after uint32
	}{
		{"02000000 01000000", 0},
		{"01000000 01000000", 0},
		{"05000000", 5}, // would make a host ask for the same list for ever
		{"ffffffff", 0},
		{"feffffff", 0},
	} {
		_, err := ParseNamespaceList(newImage(4096).put(t, 0, c.list), c.after)
		wantDecodeError(t, err, "namespace list")
	}
	_, err := ParseNamespaceList(make([]byte, 4095), 0)
	wantDecodeError(t, err, "4095 bytes")
}

func TestIdentifierList(t *testing.T) {
	full := make([]uint16, 2047)
	for i := range full {
		full[i] = uint16(i) * 32
	}
	for _, ids := range [][]uint16{{}, {0}, {7, 0xffef}, full} {
		b, err := AppendIdentifierList(nil, ids)
		if err != nil || len(b) != IdentifyDataSize {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		got, err := ParseIdentifierList(b)
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	b, _ := AppendIdentifierList(nil, []uint16{0x0102, 0x0304})
	wantImage(t, b, newImage(4096).put(t, 0, "0200 0201 0403"))
	for _, bad := range [][]uint16{{2, 1}, {1, 1}, make([]uint16, 2048)} {
		_, err := AppendIdentifierList(nil, bad)
		wantRangeError(t, err)
	}
	for _, list := range []string{"0008", "ffff", "0200 0200 0100"} {
		_, err := ParseIdentifierList(newImage(4096).put(t, 0, list))
		wantDecodeError(t, err, "identifier list")
	}
	_, err := ParseIdentifierList(make([]byte, 4095))
	wantDecodeError(t, err, "4095 bytes")
}

func TestIOCommandSets(t *testing.T) {
	vectors := []IOCommandSetVector{1, 5}
	b, err := AppendIOCommandSets(nil, vectors)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, newImage(4096).put(t, 0, "0100000000000000 0500000000000000"))
	got, err := ParseIOCommandSets(b)
	if err != nil || !slices.Equal(got, vectors) {
		t.Errorf("%v, %v", got, err)
	}
	if !got[1].Has(CSINVM) || !got[1].Has(CSIZoned) || got[1].Has(CSIKeyValue) || got[1].Has(200) {
		t.Error("vector bits")
	}
	_, err = ParseIOCommandSets(b[:100])
	wantDecodeError(t, err, "100 bytes")
	_, err = AppendIOCommandSets(nil, make([]IOCommandSetVector, 513))
	wantRangeError(t, err)
}

// Offsets: Base Specification 2.1 figures 317, 318, 320, 321, 323, 324, 330,
// 331, 332; libnvme's structures of the same purpose agree.
func TestIdentifySetsGolden(t *testing.T) {
	sets := &NVMSetList{NUMENT: 1}
	sets.Sets[0] = NVMSet{NSETID: 0x0102, ENDGID: 0x0304, R4KRT: 5, OWS: 6, TNVMSC: Uint128{Lo: 7}, UNVMSC: Uint128{Hi: 8}}
	sets.Sets[30].NSETID = 9
	roundTrip(t, newImage(4096).put(t, 0, "01").put(t, 128, "0201 0403 00000000 05000000 06000000 07").
		put(t, 168, "08").put(t, 3968, "09"), sets, new(NVMSetList))

	domains := &DomainList{NUMENT: 31}
	domains.Domains[0] = Domain{DID: 0x0102, TDC: Uint128{Lo: 1}, UDC: Uint128{Lo: 2}, MEGDC: Uint128{Lo: 3}}
	roundTrip(t, newImage(4096).put(t, 0, "1f").put(t, 128, "0201").put(t, 144, "01").put(t, 160, "02").put(t, 176, "03"),
		domains, new(DomainList))

	gran := &NamespaceGranularityList{Attributes: 1, NUMD: 15}
	gran.Items[0], gran.Items[15] = NamespaceGranularity{Size: 1, Cap: 2}, NamespaceGranularity{Size: 3, Cap: 4}
	roundTrip(t, newImage(4096).put(t, 0, "01000000 0f").put(t, 32, "01").put(t, 40, "02").put(t, 272, "03").put(t, 280, "04"),
		gran, new(NamespaceGranularityList))

	uuids := &UUIDList{}
	uuids.Items[0] = UUIDEntry{Header: 1, UUID: [16]byte{0: 1, 15: 2}}
	uuids.Items[1] = UUIDEntry{UUID: [16]byte{7}}
	uuids.Items[3] = UUIDEntry{UUID: [16]byte{9}}
	roundTrip(t, newImage(4096).put(t, 32, "01").put(t, 48, "01").put(t, 63, "02").put(t, 80, "07").put(t, 144, "09"),
		uuids, new(UUIDList))
	if i, ok := uuids.Index([16]byte{7}); i != 2 || !ok {
		t.Errorf("index %d, %v", i, ok)
	}
	for _, absent := range [][16]byte{{9}, {}, {3}} { // entry 4 stands after the end
		if i, ok := uuids.Index(absent); ok {
			t.Errorf("index %d of an absent UUID", i)
		}
	}

	primary := &PrimaryControllerCapabilities{
		CNTLID: 1, PORTID: 2, CRT: 3, VQ: flexible(4), VI: flexible(10),
	}
	roundTrip(t, newImage(4096).put(t, 0, "0100 0200 03").put(t, 32, "04000000 05000000 0600 0700 0800 0900").
		put(t, 64, "0a000000 0b000000 0c00 0d00 0e00 0f00"), primary, new(PrimaryControllerCapabilities))

	secondary := &SecondaryControllerList{NUMENT: 127}
	secondary.Items[0] = SecondaryController{SCID: 1, PCID: 2, SCS: 1, VFN: 3, NVQ: 4, NVI: 5}
	secondary.Items[126].SCID = 6
	roundTrip(t, newImage(4096).put(t, 0, "7f").put(t, 32, "0100 0200 01 000000 0300 0400 0500").put(t, 4064, "06"),
		secondary, new(SecondaryControllerList))
	if len(sets.Entries()) != 1 || len(domains.Entries()) != 31 || len(gran.Entries()) != 16 || len(secondary.Entries()) != 127 {
		t.Error("entries in use")
	}
}

func TestIdentifySetsHostileCounts(t *testing.T) {
	b := newImage(4096).put(t, 0, "80 00 00 00 10")
	for _, s := range []structure{new(NVMSetList), new(DomainList), new(NamespaceGranularityList), new(SecondaryControllerList)} {
		wantDecodeError(t, s.UnmarshalBinary(b), "entries, at most")
	}
	if len((&NVMSetList{NUMENT: 255}).Entries()) != 31 || len((&SecondaryControllerList{NUMENT: 255}).Entries()) != 127 ||
		len((&DomainList{NUMENT: 255}).Entries()) != 31 || len((&NamespaceGranularityList{NUMD: 255}).Entries()) != 16 {
		t.Error("entries past the end")
	}
}

func flexible(n uint16) FlexibleResources {
	return FlexibleResources{
		FlexibleTotal: uint32(n), FlexibleAssigned: uint32(n + 1), FlexiblePrimary: n + 2,
		PrivateTotal: n + 3, SecondaryMaximum: n + 4, PreferredGranularity: n + 5,
	}
}
