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
		{OpFlush.Direction(), DirectionNone},
		{OpWrite.Direction(), DirectionHostToController},
		{OpRead.Direction(), DirectionControllerToHost},
		{OpCompare.Direction(), DirectionHostToController},
		{OpVerify.Direction(), DirectionNone},
		{OpCopy.Direction(), DirectionHostToController},
		{OpReservationReport.Direction(), DirectionControllerToHost},
		{AdminIdentify.Direction(), DirectionControllerToHost},
		{AdminGetLogPage.Direction(), DirectionControllerToHost},
		{AdminAsyncEvent.Direction(), DirectionNone},
		{FabricsConnect.Direction(), DirectionHostToController},
		{FabricsPropertyGet.Direction(), DirectionNone},
		{FabricsPropertySet.Direction(), DirectionNone},
		{FabricsAuthReceive.Direction(), DirectionControllerToHost},
		{FabricsDisconnect.Direction(), DirectionNone},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if DirectionControllerToHost.String() != "controller to host" || Direction(7).String() != "invalid direction 7" {
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
