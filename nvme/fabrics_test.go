package nvme

import (
	"strings"
	"testing"
	"time"
)

// Layouts: Base Specification 2.1 figures 545 to 553; SPDK nvmf_spec.h
// agrees.
func TestFabricsCommandGolden(t *testing.T) {
	const zero16 = "00000000000000000000000000000000"
	connect := ConnectCommand{
		QID: 0x0102, SQSize: 0x7f, Attributes: ConnectDisableFlowControl | ConnectPriorityLow,
		KeepAlive: 30 * time.Second, NVMSetID: 0x0a0b,
	}
	wantCommand(t, connect.Command(), "7f000000 01000000"+zero16+zero16+"00000201 7f000700 30750000 0b0a0000 0000000000000000")
	if got, err := ParseConnect(new(connect.Command())); err != nil || got != connect {
		t.Errorf("parsed %+v, %v", got, err)
	}
	wantCommand(t, DisconnectCommand(), "7f000000 08000000"+zero16+zero16+"0000000000000000"+zero16)

	get := NewPropertyGet(RegCAP)
	wantCommand(t, get.Command(), "7f000000 04000000"+zero16+zero16+"01000000 00000000"+zero16)
	if got, err := ParsePropertyGet(new(get.Command())); err != nil || got != get {
		t.Errorf("parsed %+v, %v", got, err)
	}

	set := NewPropertySet(RegCC, 0x00460001)
	wantCommand(t, set.Command(), "7f000000 00000000"+zero16+zero16+"00000000 14000000 01004600 00000000 0000000000000000")
	if got, err := ParsePropertySet(new(set.Command())); err != nil || got != set {
		t.Errorf("parsed %+v, %v", got, err)
	}
	set = NewPropertySet(RegASQ, 0x1122334455667788)
	wantCommand(t, set.Command(), "7f000000 00000000"+zero16+zero16+"01000000 28000000 88776655 44332211 0000000000000000")
	if got, err := ParsePropertySet(new(set.Command())); err != nil || got != set {
		t.Errorf("parsed %+v, %v", got, err)
	}

	auth := AuthCommand{Type: FabricsAuthSend, SecurityProtocol: 0xe9, ProtocolSpecific: [2]uint8{1, 2}, Length: 4096}
	wantCommand(t, auth.Command(), "7f000000 05000000"+zero16+zero16+"000102e9 00100000"+zero16)
	if got, err := ParseAuth(new(auth.Command())); err != nil || got != auth {
		t.Errorf("parsed %+v, %v", got, err)
	}
}

func TestFabricsParseRefuses(t *testing.T) {
	read := Command{Opcode: OpRead, NSID: 1}
	other := DisconnectCommand()
	for _, cmd := range []*Command{&read, &other} {
		_, err := ParseConnect(cmd)
		wantDecodeError(t, err, "Connect command")
		_, err = ParsePropertyGet(cmd)
		wantDecodeError(t, err, "Property Get command")
		_, err = ParsePropertySet(cmd)
		wantDecodeError(t, err, "Property Set command")
		_, err = ParseAuth(cmd)
		wantDecodeError(t, err, "authentication command")
	}
	format := ConnectCommand{}.Command()
	format.CDW10 = 1
	_, err := ParseConnect(&format)
	wantDecodeError(t, err, "record format 1")
	get := NewPropertyGet(RegCC).Command()
	get.CDW10 = 2
	_, err = ParsePropertyGet(&get)
	wantDecodeError(t, err, "property size code 2")
}

func TestConnectResponses(t *testing.T) {
	r := ConnectResponse{ControllerID: 0x1234, AuthRequired: true}
	if r.Result() != 0x00021234 || ParseConnectResponse(0x00021234) != r {
		t.Errorf("authentication required: %#x, %+v", r.Result(), ParseConnectResponse(0x00021234))
	}
	r = ConnectResponse{ControllerID: 1, SecureRequired: true}
	if r.Result() != 0x00040001 || ParseConnectResponse(0x00040001) != r {
		t.Errorf("secure channel required: %#x", r.Result())
	}
	for _, c := range []struct {
		result uint64
		want   string
	}{
		{0x00000000 | 42, "queue ID (command offset 42)"},
		{0x00000000 | 44, "queue size (command offset 44)"},
		{0x00010000, "host ID (data offset 0)"},
		{0x00010000 | 16, "controller ID (data offset 16)"},
		{0x00010000 | 256, "subsystem NQN (data offset 256)"},
		{0x00010000 | 512, "host NQN (data offset 512)"},
		{0x00010000 | 900, "data offset 900"},
		{0x00000000 | 0xffff, "command offset 65535"},
	} {
		p := ParseInvalidParameter(c.result)
		if p.String() != c.want || p.Result() != c.result {
			t.Errorf("%#x: %q, result %#x", c.result, p, p.Result())
		}
	}
}

func TestConnectData(t *testing.T) {
	id := [16]byte{0: 0xa1, 15: 0xaf}
	d, err := NewConnectData(id, ControllerIDDynamic, "nqn.s", "nqn.h")
	if err != nil {
		t.Fatal(err)
	}
	golden := newImage(ConnectDataSize).put(t, 0, "a1").put(t, 15, "af ffff").
		put(t, 256, "6e716e2e73").put(t, 512, "6e716e2e68")
	roundTrip(t, golden, d, new(ConnectData))
	sub, err := d.SubsystemNQN()
	if sub != "nqn.s" || err != nil {
		t.Errorf("subsystem %q, %v", sub, err)
	}
	host, err := d.HostName()
	if host != "nqn.h" || err != nil {
		t.Errorf("host %q, %v", host, err)
	}
}

func TestConnectDataNames(t *testing.T) {
	longest := strings.Repeat("n", NQNMaxLength)
	if _, err := NewConnectData([16]byte{}, 0, longest, longest); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", longest + "n", "a\x00b"} {
		_, err := NewConnectData([16]byte{}, 0, name, "h")
		wantRangeError(t, err)
		_, err = NewConnectData([16]byte{}, 0, "s", name)
		wantRangeError(t, err)
	}
	var d ConnectData
	_, err := d.SubsystemNQN()
	wantDecodeError(t, err, "empty")
	for i := range d.HostNQN {
		d.HostNQN[i] = 'x'
	}
	_, err = d.HostName()
	wantDecodeError(t, err, "no end")
	d.HostNQN[NQNMaxLength] = 0
	if s, err := d.HostName(); err != nil || len(s) != NQNMaxLength {
		t.Errorf("%q, %v", s, err)
	}
}

func TestKeepAliveUnits(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want uint32
	}{
		{0, 0}, {-time.Second, 0}, {1, 1}, {time.Millisecond, 1}, {1001 * time.Microsecond, 2},
		{time.Hour, 3600000}, {1 << 62, maxUint32}, {1<<63 - 1, maxUint32},
	} {
		if got := (ConnectCommand{KeepAlive: c.d}).Command().CDW12; got != c.want {
			t.Errorf("%v is %d ms, want %d", c.d, got, c.want)
		}
	}
}
