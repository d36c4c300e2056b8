package nvme

import (
	"fmt"
	"testing"
)

func TestSmallNames(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{SCTGeneric, "Generic Command Status"}, {SCTCommandSpecific, "Command Specific Status"},
		{SCTMedia, "Media and Data Integrity Errors"}, {SCTPath, "Path Related Status"}, {SCTVendor, "Vendor Specific"},
		{SCT(5), "reserved status code type 0x05"},
		{DirNone, "none"}, {DirOut, "host to controller"},
		{DirIn, "controller to host"}, {DirBoth, "bidirectional"},
		{CSINVM, "NVM"}, {CSIKeyValue, "Key Value"}, {CSIZoned, "Zoned Namespace"}, {CSILocalMemory, "Subsystem Local Memory"},
		{CSIComputational, "Computational Programs"}, {CSI(0x30), "vendor specific command set 0x30"}, {CSI(0x40), "reserved command set 0x40"},
	} {
		if c.v.String() != c.want {
			t.Errorf("%#v is %q, want %q", c.v, c.v, c.want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	err := new(SMARTLog).UnmarshalBinary(make([]byte, 3))
	if want := "nvme: malformed SMART log: 3 bytes, want 512"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	_, err = DSMCommand{Ranges: 300}.Command()
	if want := "nvme: cannot encode dataset management command: 300 ranges"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// The UUID list ends with the first zero; a full one has no end.
func TestUUIDListIndex(t *testing.T) {
	l := new(UUIDList)
	for i := range l.Items {
		l.Items[i].UUID[0] = byte(i + 1)
	}
	if i, ok := l.Index([16]byte{127}); i != 127 || !ok {
		t.Errorf("last of a full list: %d, %v", i, ok)
	}
	if i, ok := l.Index([16]byte{0, 1}); ok {
		t.Errorf("absent from a full list: %d", i)
	}
	if i, ok := l.Index([16]byte{}); ok {
		t.Errorf("the zero UUID: %d", i)
	}
	l.Items[1].UUID = [16]byte{}
	if i, ok := l.Index([16]byte{3}); ok {
		t.Errorf("after the end: %d", i)
	}
}
