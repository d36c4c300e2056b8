package nvme

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"
)

func exampleDiscoveryEntry(t testing.TB) DiscoveryEntry {
	e := DiscoveryEntry{
		TRTYPE: TRTypeTCP, ADRFAM: ADRFamIPv4, SUBTYPE: SubTypeNVM, TREQ: TREQSecureNotRequired | TREQDisableFlow,
		PORTID: 0x0102, ControllerID: ControllerIDDynamic, ASQSZ: 128, EFLAGS: EFLAGDuplicate | EFLAGPersistent,
	}
	e.TSAS[0] = uint8(SecurityTLS13)
	if err := e.SetAddress("10.0.0.5", "4420"); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSubsystemNQN("nqn.a"); err != nil {
		t.Fatal(err)
	}
	return e
}

// Offsets: Base Specification 2.1 figures 294 and 296; libnvme struct
// nvmf_discovery_log and struct nvmf_disc_log_entry agree.
func TestDiscoveryLogGolden(t *testing.T) {
	entry := exampleDiscoveryEntry(t)
	golden := newImage(1024).put(t, 0, "03 01 02 06 0201 ffff 8000 0300").put(t, 32, "34343230").put(t, 256, "6e716e2e61").
		put(t, 512, "31302e302e302e35").put(t, 768, "02")
	for i := 36; i < 64; i++ {
		golden[i] = ' '
	}
	for i := 520; i < 768; i++ {
		golden[i] = ' '
	}
	roundTrip(t, golden, &entry, new(DiscoveryEntry))

	log := &DiscoveryLog{Generation: 7, Flags: DiscoveryFlagPortLocal, Entries: []DiscoveryEntry{entry, {}}}
	header := newImage(1024).put(t, 0, "0700000000000000 0200000000000000 0000 02 00 000c0000")
	b, err := log.AppendBinary(nil)
	if err != nil || len(b) != 3072 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	wantImage(t, b[:1024], header)
	wantImage(t, b[1024:2048], golden)
	var got DiscoveryLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%v", err)
	}
	roundTrip(t, header, &DiscoveryHeader{GENCTR: 7, NUMREC: 2, DLPF: 2, TDLPL: 3072}, new(DiscoveryHeader))
}

func TestDiscoveryEntryFields(t *testing.T) {
	e := exampleDiscoveryEntry(t)
	if e.TransportAddress() != "10.0.0.5" || e.ServiceID() != "4420" {
		t.Errorf("%q, %q", e.TransportAddress(), e.ServiceID())
	}
	if nqn, err := e.SubsystemNQN(); nqn != "nqn.a" || err != nil {
		t.Errorf("%q, %v", nqn, err)
	}
	for i := range e.TRADDR {
		e.TRADDR[i] = 'x'
	}
	if len(e.TransportAddress()) != 256 {
		t.Error("full address field")
	}
	copy(e.TRSVCID[:], "80\x0009\n")
	if e.ServiceID() != "80?09?" {
		t.Errorf("%q", e.ServiceID())
	}
	wantRangeError(t, e.SetAddress(string(make([]byte, 257)), ""))
	wantRangeError(t, e.SetAddress("", string(make([]byte, 33))))
	wantRangeError(t, e.SetSubsystemNQN(""))
}

func TestDiscoveryLogHostile(t *testing.T) {
	b, err := (&DiscoveryLog{Entries: []DiscoveryEntry{exampleDiscoveryEntry(t)}}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, numrec := range []uint64{2, 1 << 20, 1 << 32, 1 << 54, 1<<64 - 1} {
		binary.LittleEndian.PutUint64(b[8:], numrec)
		wantDecodeError(t, new(DiscoveryLog).UnmarshalBinary(b), "discovery log")
		var h DiscoveryHeader
		if err := h.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		_, err := h.Size(1)
		wantDecodeError(t, err, "records")
	}
	_, err = (&DiscoveryHeader{NUMREC: 1 << 63}).Size(1 << 63)
	wantDecodeError(t, err, "records")
	if n, err := (&DiscoveryHeader{NUMREC: 3}).Size(3); n != 4096 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	binary.LittleEndian.PutUint64(b[8:], 1)
	wantDecodeError(t, new(DiscoveryLog).UnmarshalBinary(b[:2047]), "discovery log")
	wantDecodeError(t, new(DiscoveryLog).UnmarshalBinary(b[:1000]), "1000 bytes")
	b[18] = DiscoveryFlagExtended
	wantDecodeError(t, new(DiscoveryLog).UnmarshalBinary(b), "extended entries")
	b[16] = 1
	wantDecodeError(t, new(DiscoveryLog).UnmarshalBinary(b), "record format 1")
}

func TestDiscoveryNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TRTypeTCP.String(), "tcp"}, {TRTypePCIe.String(), "pcie"}, {TRTypeRDMA.String(), "rdma"}, {TRTypeFC.String(), "fc"},
		{TRTypeLoop.String(), "loop"}, {TRType(4).String(), "reserved transport type 0x04"},
		{ADRFamIPv4.String(), "ipv4"}, {ADRFamIPv6.String(), "ipv6"}, {ADRFamIB.String(), "ib"}, {ADRFamFC.String(), "fc"},
		{ADRFamLoop.String(), "loop"}, {ADRFamNone.String(), "none"}, {ADRFam(9).String(), "reserved address family 0x09"},
		{SubTypeNVM.String(), "nvme subsystem"}, {SubTypeReferral.String(), "discovery subsystem referral"},
		{SubTypeDiscovery.String(), "current discovery subsystem"}, {SubType(0).String(), "reserved subsystem type 0x00"},
		{SecurityNone.String(), "none"}, {SecurityTLS12.String(), "tls"}, {SecurityTLS13.String(), "tls13"}, {SecurityType(9).String(), "reserved security type 0x09"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Offsets: Base Specification 2.1 figures 299, 300, 499; libnvme struct
// nvme_host_discover_log agrees.
func TestHostDiscoveryGolden(t *testing.T) {
	log := &HostDiscoveryLog{Generation: 3, AllHosts: true, Hosts: []HostDiscovery{
		{
			TRTYPE: TRTypeTCP, ADRFAM: ADRFamIPv6, EFLAGS: EFLAGNoCDC, HostNQN: "nqn.h", TRADDR: "fe80::1",
			Attributes: []ExtendedAttribute{{Type: ExtendedAttributeHostID, Value: make([]byte, 16)}, {Type: ExtendedAttributeLabelASCII, Value: []byte("rack")}},
		},
		{HostNQN: "nqn.i"},
	}}
	b, err := log.AppendBinary(nil)
	if err != nil || len(b) != 1024+1060+1032 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	wantImage(t, b[:1024], newImage(1024).put(t, 0, "0300000000000000 0200000000000000 0000 01 00 2c0c0000"))
	entry := newImage(1060).put(t, 0, "03 02").put(t, 10, "0400").put(t, 256, "6e716e2e68").put(t, 512, "666538303a3a31").
		put(t, 1024, "24040000 0200 0000 0100 1000").put(t, 1052, "0200 0400 7261636b")
	for i := 519; i < 768; i++ {
		entry[i] = ' '
	}
	wantImage(t, b[1024:2084], entry)
	var got HostDiscoveryLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(b) {
		wantDecodeError(t, new(HostDiscoveryLog).UnmarshalBinary(b[:n]), "host discovery log")
	}
	for _, patch := range []struct {
		offset int
		v      uint32
	}{{8, 3}, {12, 1}, {16, 1}, {1024 + 1024, 1031}, {1024 + 1024, 0xffffffff}, {1024 + 1028, 3}, {1024 + 1034, 0xffff}} {
		bad := append([]byte(nil), b...)
		binary.LittleEndian.PutUint32(bad[patch.offset:], patch.v)
		wantDecodeError(t, new(HostDiscoveryLog).UnmarshalBinary(bad), "host discovery log")
	}
	log.Hosts[1].HostNQN = ""
	_, err = log.AppendBinary(nil)
	wantRangeError(t, err)
}

// Offsets: Base Specification 2.1 figures 301 to 304.
func TestAVEDiscoveryGolden(t *testing.T) {
	log := &AVEDiscoveryLog{Generation: 9, Entries: []AVEDiscovery{
		{NQN: "nqn.v", Addresses: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.5:443"), netip.MustParseAddrPort("[fe80::1]:8443")}},
		{NQN: "nqn.w"},
	}}
	b, err := log.AppendBinary(nil)
	if err != nil || len(b) != 1024+272+232 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	wantImage(t, b[:1024], newImage(1024).put(t, 0, "0900000000000000 0200000000000000 0000 0000 f8050000"))
	wantImage(t, b[1024:1296], newImage(272).put(t, 0, "10010000 6e716e2e76").put(t, 228, "02").put(t, 232, "01 00 bb01 0a000005").
		put(t, 252, "02 00 fb20 fe800000000000000000000000000001"))
	var got AVEDiscoveryLog
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, log) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(b) {
		wantDecodeError(t, new(AVEDiscoveryLog).UnmarshalBinary(b[:n]), "AVE discovery log")
	}
	for _, patch := range []struct {
		offset int
		v      uint32
	}{{8, 9}, {16, 1}, {1024, 10}, {1024, 0xffffffff}, {1024 + 228, 0xff}, {1024 + 232, 7}} {
		bad := append([]byte(nil), b...)
		binary.LittleEndian.PutUint32(bad[patch.offset:], patch.v)
		wantDecodeError(t, new(AVEDiscoveryLog).UnmarshalBinary(bad), "AVE discovery log")
	}
}

func TestPullModelRequest(t *testing.T) {
	b := AppendPullModelRequest(nil, PullModelAddZoneGroup, []byte{1, 2, 3})
	wantImage(t, b, hexBytes(t, "02 000000 0b000000 010203"))
	op, params, err := ParsePullModelRequest(append(b, 9))
	if op != PullModelAddZoneGroup || string(params) != "\x01\x02\x03" || err != nil {
		t.Errorf("%d, %x, %v", op, params, err)
	}
	for _, bad := range []string{"", "01000000", "01000000 07000000", "01000000 0a000000 01", "01000000 ffffffff 01"} {
		_, _, err := ParsePullModelRequest(hexBytes(t, bad))
		wantDecodeError(t, err, "pull model DDC request log")
	}
}
