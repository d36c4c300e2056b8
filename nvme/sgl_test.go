package nvme

import (
	"encoding/hex"
	"testing"
)

// Layouts: Base Specification 2.1 figures 114 to 122; SPDK struct
// spdk_nvme_sgl_descriptor agrees.
func TestSGLGolden(t *testing.T) {
	for _, c := range []struct {
		d      SGLDescriptor
		golden string
	}{
		{SGLDataBlock(0x1122334455667788, 0x1000), "88776655443322110010000000000000"},
		{SGLInCapsule(0x40, 0x2000), "40000000000000000020000000000001"},
		{SGLTransport(0x12345678), "0000000000000000785634120000005a"},
		{SGLSegment(0x2000, 0x30), "00200000000000003000000000000020"},
		{SGLLastSegment(0x3000, 0x10), "00300000000000001000000000000030"},
		{SGLBitBucket(0x800), "00000000000000000008000000000010"},
		{SGLDescriptor{}, "00000000000000000000000000000000"},
	} {
		b, err := encode(nil, &c.d)
		if err != nil || hex.EncodeToString(b) != c.golden {
			t.Errorf("%+v is %x, want %s (%v)", c.d, b, c.golden, err)
		}
		var cmd Command
		cmd.Flags = FlagFuseFirst | FlagSGLMeta
		cmd.SetSGL(c.d)
		if got := hex.EncodeToString(commandBytes(t, cmd)[24:40]); got != c.golden {
			t.Errorf("%+v in a command is %s, want %s", c.d, got, c.golden)
		}
		if cmd.SGL() != c.d || cmd.DPTR != c.d.DPTR() || !cmd.HasSGL() || cmd.Flags != FlagFuseFirst|FlagSGL {
			t.Errorf("%+v came back as %+v, flags %#x", c.d, cmd.SGL(), cmd.Flags)
		}
	}
	d := SGLTransport(1)
	if d.Type() != SGLTypeTransportDataBlock || d.Subtype() != SGLSubtypeTransport ||
		!d.Is(SGLTypeTransportDataBlock, SGLSubtypeTransport) || d.Is(SGLTypeDataBlock, SGLSubtypeOffset) {
		t.Errorf("transport descriptor is type %d, subtype %d", d.Type(), d.Subtype())
	}
	if (&Command{}).HasSGL() {
		t.Error("PRP command has an SGL")
	}
}

func TestSetSGLDoesNotAllocate(t *testing.T) {
	var cmd Command
	if n := testing.AllocsPerRun(100, func() { cmd.SetSGL(SGLTransport(4096)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
