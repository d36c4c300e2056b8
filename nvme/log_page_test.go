package nvme

import "testing"

// Layout: Base Specification 2.1 figures 197 to 201.
func TestGetLogPageGolden(t *testing.T) {
	const zero16 = "00000000000000000000000000000000"
	g := GetLogPageCommand{
		LID: LogANA, NSID: NSIDAll, Length: (0x12345678 + 1) * 4, Offset: 0x1122334455667788, Retain: true,
		LSP: 0x7f, LSI: 0xabcd, UUIDIndex: 0x7f, CSI: CSIZoned,
	}
	cmd, err := g.Command()
	if err != nil {
		t.Fatal(err)
	}
	wantCommand(t, cmd, "02000000 ffffffff"+zero16+zero16+"0cff7856 3412cdab 88776655 44332211 7f000002 00000000")
	if got, err := ParseGetLogPage(&cmd); err != nil || got != g {
		t.Errorf("parsed %+v, %v", got, err)
	}
	g = GetLogPageCommand{LID: LogDiscovery, Length: 4, Offset: 3, Index: true}
	cmd, err = g.Command()
	if err != nil {
		t.Fatal(err)
	}
	wantCommand(t, cmd, "02000000 00000000"+zero16+zero16+"70000000 00000000 03000000 00000000 00008000 00000000")
	if got, err := ParseGetLogPage(&cmd); err != nil || got != g {
		t.Errorf("parsed %+v, %v", got, err)
	}
	g = GetLogPageCommand{Length: 1 << 34}
	cmd, err = g.Command()
	if err != nil || cmd.CDW10>>16 != 0xffff || cmd.CDW11 != 0xffff {
		t.Errorf("16 GiB: %#x, %#x, %v", cmd.CDW10, cmd.CDW11, err)
	}
}

func TestGetLogPageRefused(t *testing.T) {
	for _, g := range []GetLogPageCommand{
		{}, {Length: 3}, {Length: 6}, {Length: 1<<34 + 4}, {Length: 4, Offset: 2}, {Length: 4, LSP: 0x80}, {Length: 4, UUIDIndex: 0x80},
	} {
		_, err := g.Command()
		wantRangeError(t, err)
	}
	_, err := ParseGetLogPage(&Command{Opcode: AdminIdentify})
	wantDecodeError(t, err, "Get Log Page command")
}

func TestLogIDNames(t *testing.T) {
	for _, c := range []struct {
		l    LogID
		want string
	}{
		{0x02, "SMART / Health Information"}, {0x0c, "Asymmetric Namespace Access"}, {0x70, "Discovery"},
		{0x81, "Sanitize Status"}, {0x1d, "reserved log page 0x1d"}, {0xc0, "vendor specific log page 0xc0"},
	} {
		if c.l.String() != c.want {
			t.Errorf("%#x is %q", uint8(c.l), c.l)
		}
	}
}

// The short form builds what the long form does.
func TestGetLogPageShort(t *testing.T) {
	for _, n := range []int{4, 512, 4096, 1 << 20} {
		want, err := GetLogPageCommand{LID: LogANA, NSID: 7, Length: uint64(n), Offset: 0x1122334455667788}.Command()
		if got := GetLogPage(LogANA, 7, n, 0x1122334455667788); got != want || err != nil {
			t.Errorf("%d bytes: %+v, want %+v, %v", n, got, want, err)
		}
	}
	cmd := GetLogPage(LogANA, 0, 0, 7)
	if g, err := ParseGetLogPage(&cmd); err != nil || g.Length != 4 || g.Offset != 4 {
		t.Errorf("%+v, %v", g, err)
	}
}
