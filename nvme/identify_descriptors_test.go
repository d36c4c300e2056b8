package nvme

import (
	"testing"
)

// Layout: Base Specification 2.1 figure 315; libnvme struct nvme_ns_id_desc
// agrees.
func TestNamespaceDescriptorsGolden(t *testing.T) {
	id := &NamespaceIdentity{
		EUI64: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, NGUID: [16]byte{0: 0xa0, 15: 0xaf},
		UUID: [16]byte{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 15: 0x0f}, CSI: CSIZoned, HasCSI: true,
	}
	golden := newImage(4096).put(t, 0, "01 08 0000 0102030405060708"+
		"02 10 0000 a00000000000000000000000000000af"+
		"03 10 0000 123456789abcdef0000000000000000f"+
		"04 01 0000 02")
	b, err := id.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, golden)
	var got NamespaceIdentity
	if err := got.UnmarshalBinary(golden); err != nil || got != *id {
		t.Errorf("%+v, %v", got, err)
	}
	if got.String() != "uuid.12345678-9abc-def0-0000-00000000000f" {
		t.Errorf("%s", &got)
	}
	got.UUID = [16]byte{}
	if got.String() != "eui.a00000000000000000000000000000af" {
		t.Errorf("%s", &got)
	}
	got.NGUID = [16]byte{}
	if got.String() != "eui.0102030405060708" || got.IsZero() {
		t.Errorf("%s", &got)
	}
	if got.EUI64 = [8]byte{}; got.String() != "none" || !got.IsZero() {
		t.Errorf("%s", &got)
	}
}

func TestNamespaceDescriptorsForms(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		want        NamespaceIdentity
		fails       bool
	}{
		{"empty", "", NamespaceIdentity{}, false},
		{"end at once", "00000000", NamespaceIdentity{}, false},
		{"end after one", "0401000001 00000000 04010000ff", NamespaceIdentity{CSI: 1, HasCSI: true}, false},
		{"unknown types are passed over", "05030000aabbcc ff010000dd 0401000002", NamespaceIdentity{CSI: 2, HasCSI: true}, false},
		{"no room for another header", "0401000002 0408", NamespaceIdentity{CSI: 2, HasCSI: true}, false},
		{"longer than the buffer", "0308000011", NamespaceIdentity{}, true},
		{"unknown type longer than the buffer", "77ff000011", NamespaceIdentity{}, true},
		{"short UUID", "03080000 1122334455667788", NamespaceIdentity{}, true},
		{"long EUI-64", "01100000 11223344556677881122334455667788", NamespaceIdentity{}, true},
		{"wrong CSI length", "040200000101", NamespaceIdentity{}, true},
		{"twice", "0401000001 0401000002", NamespaceIdentity{CSI: 1, HasCSI: true}, true},
	} {
		got, err := ParseNamespaceDescriptors(hexBytes(t, c.bytes))
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if c.fails {
			wantDecodeError(t, err, "namespace descriptors")
		}
	}
}

func TestNamespaceIdentitySame(t *testing.T) {
	a := &NamespaceIdentity{UUID: [16]byte{1}, NGUID: [16]byte{2}}
	for _, c := range []struct {
		name  string
		other NamespaceIdentity
		want  bool
	}{
		{"equal", *a, true},
		{"one in common", NamespaceIdentity{UUID: [16]byte{1}, EUI64: [8]byte{9}}, true},
		{"one differs", NamespaceIdentity{UUID: [16]byte{1}, NGUID: [16]byte{3}}, false},
		{"nothing in common", NamespaceIdentity{EUI64: [8]byte{9}}, false},
		{"nothing known", NamespaceIdentity{}, false},
	} {
		if a.Same(&c.other) != c.want || c.other.Same(a) != c.want {
			t.Errorf("%s: %v", c.name, a.Same(&c.other))
		}
	}
}
