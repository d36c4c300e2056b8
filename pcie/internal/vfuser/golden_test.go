package vfuser

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parser[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		v, err := f(b)
		return v, err
	}
}

// golden holds structures against bytes, put together by hand from the
// structures of libvfio-user and the kernel.
var golden = []struct {
	name  string
	value interface{ Append([]byte) []byte }
	parse func([]byte) (any, error)
	hex   string
}{
	{"command", Header{ID: 0x1234, Command: CmdDMAMap, Size: 48}, parser(ParseHeader), `3412 0200 30000000 00000000 00000000`},
	{"no reply", Header{ID: 1, Command: CmdRegionWrite, Size: 40, Flags: FlagNoReply}, parser(ParseHeader), `0100 0a00 28000000 10000000 00000000`},
	{"refusal", Header{ID: 7, Command: CmdSetIRQs, Size: 16, Flags: FlagReply | FlagError, Errno: 22}, parser(ParseHeader), `0700 0800 10000000 21000000 16000000`},
	{"bare version", Version{Major: 0, Minor: 1}, parser(ParseVersion), `0000 0100`},
	{"version", Version{Minor: 1, Capabilities: Capabilities{MaxFDs: 8, MaxData: 1 << 20}}, parser(ParseVersion),
		"0000 0100" + hex.EncodeToString([]byte(`{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576}}`)) + "00"},
	{"all capabilities", Version{Minor: 1, Capabilities: Capabilities{
		MaxFDs: 1, MaxData: 4096, MaxDMAMaps: 65535, PageSizes: 4096, TwinSocket: true, WriteMulti: true, MigratePage: 4096}}, parser(ParseVersion),
		"0000 0100" + hex.EncodeToString([]byte(`{"capabilities":{"max_msg_fds":1,"max_data_xfer_size":4096,"max_dma_maps":65535,"pgsizes":4096,`+
			`"twin_socket":{"supported":true},"write_multiple":true,"migration":{"pgsize":4096}}}`)) + "00"},
	{"device info", DeviceInfo{ArgSize: 16, Flags: DevicePCI | DeviceReset, Regions: 9, IRQs: 5}, parser(ParseDeviceInfo), `10000000 03000000 09000000 05000000`},
	{"irq info", IRQInfo{ArgSize: 16, Flags: IRQEventFD | IRQNoResize, Index: IRQMSIX, Count: 32}, parser(ParseIRQInfo), `10000000 09000000 02000000 20000000`},
	{"region without areas", RegionInfo{ArgSize: 32, Flags: RegionRead | RegionWrite, Index: RegionConfig, Size: 4096}, parser(ParseRegionInfo),
		`20000000 03000000 07000000 00000000 0010000000000000 0000000000000000`},
	{"region", RegionInfo{ArgSize: 80, Flags: RegionRead | RegionWrite | RegionMmap | RegionCaps, Size: 0x4000, Offset: 0x100000,
		Areas: []Area{{0x1000, 0x1000}, {0x3000, 0x1000}}}, parser(ParseRegionInfo),
		`50000000 0f000000 00000000 20000000 0040000000000000 0000100000000000
		 0100 0100 00000000 02000000 00000000 0010000000000000 0010000000000000 0030000000000000 0010000000000000`},
	{"DMA map", DMAMap{Flags: DMARead | DMAWrite, Offset: 0x2000, Address: 0x100000000, Size: 0x200000}, parser(ParseDMAMap),
		`20000000 03000000 0020000000000000 0000000001000000 0000200000000000`},
	{"DMA unmap", DMAUnmap{Address: 0x100000000, Size: 0x200000}, parser(ParseDMAUnmap), `18000000 00000000 0000000001000000 0000200000000000`},
	{"DMA unmap all", DMAUnmap{Flags: UnmapAll}, parser(ParseDMAUnmap), `18000000 02000000 0000000000000000 0000000000000000`},
	{"region read", RegionAccess{Offset: 0x1c, Count: 4}, func(b []byte) (any, error) { return ParseRegionAccess(b, false) },
		`1c00000000000000 00000000 04000000`},
	{"region write", RegionAccess{Offset: 0x14, Region: 7, Count: 4, Data: []byte{1, 0, 0x46, 0}}, func(b []byte) (any, error) { return ParseRegionAccess(b, true) },
		`1400000000000000 07000000 04000000 01004600`},
	{"DMA read", DMAAccess{Address: 0x1000, Count: 512}, func(b []byte) (any, error) { return ParseDMAAccess(b, false) }, `0010000000000000 0002000000000000`},
	{"DMA write", DMAAccess{Address: 0x1000, Count: 2, Data: []byte{8, 9}}, func(b []byte) (any, error) { return ParseDMAAccess(b, true) }, `0010000000000000 0200000000000000 0809`},
	{"set irqs", IRQSet{Flags: IRQDataEventFD | IRQTrigger, Index: IRQMSIX, Start: 1, Count: 2}, func(b []byte) (any, error) { return ParseIRQSet(b, 2) },
		`14000000 24000000 02000000 01000000 02000000`},
	{"disable irqs", IRQSet{Flags: IRQDataNone | IRQTrigger, Index: IRQMSIX}, func(b []byte) (any, error) { return ParseIRQSet(b, 0) },
		`14000000 21000000 02000000 00000000 00000000`},
	{"trigger irqs", IRQSet{Flags: IRQDataBool | IRQTrigger, Index: IRQMSIX, Count: 3, Bools: []byte{1, 0, 1}}, func(b []byte) (any, error) { return ParseIRQSet(b, 0) },
		`17000000 22000000 02000000 00000000 03000000 010001`},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, g.hex)
			if got := g.value.Append([]byte{0xaa}); !reflect.DeepEqual(got[1:], want) || got[0] != 0xaa {
				t.Errorf("encoded\n%x, want\n%x", got[1:], want)
			}
			if got, err := g.parse(want); err != nil || !reflect.DeepEqual(got, g.value) {
				t.Errorf("parsed %+v, %v, want %+v", got, err, g.value)
			}
			// Anything shorter is an error, but for a version without
			// capabilities.
			for n := range len(want) {
				if v, err := g.parse(want[:n]); err == nil && g.name != "version" && g.name != "all capabilities" {
					t.Errorf("%d of %d bytes: %+v", n, len(want), v)
				}
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	irqs := func(fds int) func([]byte) (any, error) {
		return func(b []byte) (any, error) { return ParseIRQSet(b, fds) }
	}
	version := func(text string) string { return "00000100" + hex.EncodeToString([]byte(text)) }
	for _, c := range []struct {
		name, hex string
		parse     func([]byte) (any, error)
	}{
		{"size below the header", `0000 0100 0f000000 00000000 00000000`, parser(ParseHeader)},
		{"unknown type", `0000 0100 10000000 02000000 00000000`, parser(ParseHeader)},
		{"no zero byte", version(`{}`), parser(ParseVersion)},
		{"no JSON", version("{\x00"), parser(ParseVersion)},
		{"capabilities are a list", version("{\"capabilities\":[]}\x00"), parser(ParseVersion)},
		{"negative", version("{\"capabilities\":{\"max_msg_fds\":-1}}\x00"), parser(ParseVersion)},
		{"too many fds", version("{\"capabilities\":{\"max_msg_fds\":1025}}\x00"), parser(ParseVersion)},
		{"fraction", version("{\"capabilities\":{\"max_data_xfer_size\":1.5}}\x00"), parser(ParseVersion)},
		{"endless version", version(strings.Repeat(" ", limitVersion) + "\x00"), parser(ParseVersion)},
		{"irq argsz", `13000000 24000000 02000000 01000000 02000000`, irqs(2)},
		{"two kinds of data", `14000000 25000000 02000000 00000000 01000000`, irqs(1)},
		{"two actions", `14000000 34000000 02000000 00000000 01000000`, irqs(1)},
		{"no action", `14000000 04000000 02000000 00000000 01000000`, irqs(1)},
		{"no data", `14000000 20000000 02000000 00000000 01000000`, irqs(0)},
		{"unknown flag", `14000000 64000000 02000000 00000000 01000000`, irqs(1)},
		{"irqs wrap", `14000000 21000000 02000000 ffffffff 02000000`, irqs(0)},
		{"none, from 1 on", `14000000 21000000 02000000 01000000 00000000`, irqs(0)},
		{"none, with data", `14000000 24000000 02000000 00000000 00000000`, irqs(0)},
		{"bools missing", `14000000 22000000 02000000 00000000 02000000 01`, irqs(0)},
		{"descriptors missing", `14000000 24000000 02000000 00000000 02000000`, irqs(1)},
		{"descriptors without flag", `14000000 21000000 02000000 00000000 02000000`, irqs(2)},
		{"map of nothing", `20000000 03000000 0020000000000000 0000000001000000 0000000000000000`, parser(ParseDMAMap)},
		{"map wraps", `20000000 03000000 0000000000000000 00f0ffffffffffff 0020000000000000`, parser(ParseDMAMap)},
		{"map offset wraps", `20000000 03000000 00f0ffffffffffff 0000000001000000 0020000000000000`, parser(ParseDMAMap)},
		{"map argsz", `1f000000 03000000 0020000000000000 0000000001000000 0000200000000000`, parser(ParseDMAMap)},
		{"unmap argsz", `17000000 00000000 0000000001000000 0000200000000000`, parser(ParseDMAUnmap)},
		{"unmap flags", `18000000 04000000 0000000001000000 0000200000000000`, parser(ParseDMAUnmap)},
		{"unmap both flags", `18000000 03000000 0000000000000000 0000000000000000`, parser(ParseDMAUnmap)},
		{"unmap all and some", `18000000 02000000 0000000001000000 0000000000000000`, parser(ParseDMAUnmap)},
		{"unmap nothing", `18000000 00000000 0000000001000000 0000000000000000`, parser(ParseDMAUnmap)},
		{"write longer than count", `1400000000000000 07000000 03000000 01004600`, func(b []byte) (any, error) { return ParseRegionAccess(b, true) }},
		{"DMA longer than count", `1400000000000000 0300000000000000 01004600`, func(b []byte) (any, error) { return ParseDMAAccess(b, true) }},
		{"capability in the structure", `50000000 0f000000 00000000 10000000 0040000000000000 0000000000000000`, parser(ParseRegionInfo)},
		{"capability beyond", `50000000 0f000000 00000000 20000000 0040000000000000 0000000000000000`, parser(ParseRegionInfo)},
		{"capability loop", `50000000 0f000000 00000000 20000000 0040000000000000 0000000000000000 0900 0100 20000000`, parser(ParseRegionInfo)},
		{"more areas than bytes", `50000000 0f000000 00000000 20000000 0040000000000000 0000000000000000
			0100 0100 00000000 02000000 00000000 0010000000000000 0010000000000000`, parser(ParseRegionInfo)},
		{"area beyond the region", `50000000 0f000000 00000000 20000000 0040000000000000 0000000000000000
			0100 0100 00000000 01000000 00000000 0030000000000000 0020000000000000`, parser(ParseRegionInfo)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := c.parse(unhex(t, c.hex))
			var e *FormatError
			if !errors.As(err, &e) {
				t.Errorf("parsed as %+v, %v", v, err)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	h := Header{ID: 9, Command: CmdRegionRead, Size: 32}
	if !h.WantsReply() || h.IsReply() || h.Err() != nil {
		t.Errorf("%+v is not a command", h)
	}
	r := h.Reply()
	if !r.IsReply() || r.WantsReply() || r.ID != 9 || r.Command != CmdRegionRead || r.Err() != nil {
		t.Errorf("reply %+v", r)
	}
	e := h.ErrorReply(syscall.ENOSPC)
	if err := e.Err(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "region read") {
		t.Errorf("error %v", err)
	}
	if e = h.ErrorReply(0); !errors.Is(e.Err(), syscall.EINVAL) {
		t.Errorf("error %v", e.Err())
	}
	if err := (&Header{Flags: FlagReply | FlagError}).Err(); err == nil {
		t.Error("no error for an error without errno")
	}
	h.Flags = FlagNoReply
	if h.WantsReply() {
		t.Error("a command without reply wants one")
	}
	for c := range Command(20) {
		if c.String() == "" {
			t.Errorf("command %d has no name", c)
		}
	}
}

func TestDefaults(t *testing.T) {
	if c := (Capabilities{}).WithDefaults(); c.MaxFDs != 1 || c.MaxData != 1<<20 {
		t.Errorf("%+v", c)
	}
	if c := (Capabilities{MaxFDs: 3, MaxData: 5}).WithDefaults(); c.MaxFDs != 3 || c.MaxData != 5 {
		t.Errorf("%+v", c)
	}
	r := RegionInfo{Areas: make([]Area, 3)}
	if n := len(r.Append(nil)); uint32(n) != r.FullSize() {
		t.Errorf("%d bytes, FullSize %d", n, r.FullSize())
	}
}

func FuzzParse(f *testing.F) {
	for i, g := range golden {
		f.Add(uint8(i), unhex(f, g.hex))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		g := golden[int(which)%len(golden)]
		v, err := g.parse(b)
		if err != nil {
			var e *FormatError
			if !errors.As(err, &e) {
				t.Fatalf("%s: error %v of type %T", g.name, err, err)
			}
			return
		}
		// What was read can be written, and read again.
		out := v.(interface{ Append([]byte) []byte }).Append(nil)
		w, err := g.parse(out)
		if err != nil || !reflect.DeepEqual(canonical(v), canonical(w)) {
			t.Fatalf("%s: %+v, again %+v, %v", g.name, v, w, err)
		}
	})
}

// canonical takes out what Append sets by itself.
func canonical(v any) any {
	switch v := v.(type) {
	case RegionInfo:
		if v.Flags &^= RegionCaps; len(v.Areas) == 0 {
			v.Areas = nil
		}
		return v
	case IRQSet:
		if len(v.Bools) == 0 {
			v.Bools = nil
		}
		return v
	case RegionAccess:
		if len(v.Data) == 0 {
			v.Data = nil
		}
		return v
	case DMAAccess:
		if len(v.Data) == 0 {
			v.Data = nil
		}
		return v
	}
	return v
}
