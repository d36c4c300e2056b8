package nvme

import "testing"

func TestOpcodeNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{AdminName(0x06), "Identify"},
		{AdminName(0x0c), "Asynchronous Event Request"},
		{AdminName(0x18), "Keep Alive"},
		{AdminName(0x7f), "Fabrics Command"},
		{AdminName(0x80), "Format NVM"},
		{AdminName(0x03), "reserved admin opcode 0x03"},
		{AdminName(0xc0), "vendor specific admin opcode 0xc0"},
		{IOName(0x00), "Flush"},
		{IOName(0x02), "Read"},
		{IOName(0x09), "Dataset Management"},
		{IOName(0x7f), "Fabrics Command"},
		{IOName(0x03), "reserved I/O opcode 0x03"},
		{IOName(0x91), "vendor specific I/O opcode 0x91"},
		{FabricsType(1).String(), "Connect"},
		{FabricsType(8).String(), "Disconnect"},
		{FabricsType(2).String(), "reserved fabrics type 0x02"},
		{FabricsType(0xc0).String(), "vendor specific fabrics type 0xc0"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestDirection(t *testing.T) {
	for _, c := range []struct {
		got, want Direction
	}{
		{OpFlush.Direction(), DirNone},
		{OpWrite.Direction(), DirOut},
		{OpRead.Direction(), DirIn},
		{OpCompare.Direction(), DirOut},
		{OpVerify.Direction(), DirNone},
		{OpCopy.Direction(), DirOut},
		{OpReservationReport.Direction(), DirIn},
		{AdminIdentify.Direction(), DirIn},
		{AdminGetLogPage.Direction(), DirIn},
		{AdminAsyncEvent.Direction(), DirNone},
		{FabricsConnect.Direction(), DirOut},
		{FabricsPropertyGet.Direction(), DirNone},
		{FabricsPropertySet.Direction(), DirNone},
		{FabricsAuthReceive.Direction(), DirIn},
		{FabricsDisconnect.Direction(), DirNone},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if DirIn.String() != "controller to host" || Direction(7).String() != "invalid direction 7" {
		t.Error("direction names")
	}
}

// Names are unique within a family, so that a log line tells commands apart.
func TestOpcodeNamesDistinct(t *testing.T) {
	for _, name := range []func(Opcode) string{AdminName, IOName} {
		seen := map[string]bool{}
		for o := range 256 {
			n := name(Opcode(o))
			if n == "" || seen[n] {
				t.Errorf("opcode %#x: name %q empty or used before", o, n)
			}
			seen[n] = true
		}
	}
}
