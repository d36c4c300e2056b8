package pcie

import (
	"slices"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

func TestStripe(t *testing.T) {
	id := func(exponent uint8) *nvme.IdentifyController {
		c := new(nvme.IdentifyController)
		c.VendorBytes[3] = exponent
		return c
	}
	for _, tt := range []struct {
		info    Info
		v       uint8
		minPage uint32
		want    uint32
	}{
		{Info{Vendor: 0x8086, Device: 0x0953}, 5, 4096, 128 << 10},
		{Info{Vendor: 0x8086, Device: 0x0a53}, 5, 4096, 128 << 10},
		{Info{Vendor: 0x8086, Device: 0x0a54}, 5, 4096, 128 << 10},
		{Info{Vendor: 0x8086, Device: 0x0a55}, 1, 8192, 16 << 10},
		{Info{Vendor: 0x8086, Device: 0x0953}, 0, 4096, 0},
		{Info{Vendor: 0x8086, Device: 0x0953}, 19, 4096, 1 << 31},
		{Info{Vendor: 0x8086, Device: 0x0953}, 20, 4096, 0}, // too much to be true
		{Info{Vendor: 0x8086, Device: 0x0953}, 255, 128 << 20, 0},
		{Info{Vendor: 0x8086, Device: 0xf1a5}, 5, 4096, 0},
		{Info{Vendor: 0x144d, Device: 0x0953}, 5, 4096, 0},
	} {
		if got := quirksOf(tt.info).stripe(id(tt.v), tt.minPage); got != tt.want {
			t.Errorf("%04x:%04x, exponent %d, pages of %d: %d, want %d", tt.info.Vendor, tt.info.Device, tt.v, tt.minPage, got, tt.want)
		}
	}
}

// No command crosses a stripe of a drive that has some.
func TestStripeSplits(t *testing.T) {
	d := newFake(t)
	d.info.Vendor, d.info.Device, d.vs3 = 0x8086, 0x0953, 1 // 8 KiB
	l := newLab(t, d.run(), Config{}, nvme.Config{})
	ns, err := l.c.Namespace(testContext(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.ReadAtContext(testContext(t), make([]byte, 16<<10), 4096); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var got [][2]uint32 // LBA, blocks
	for _, c := range d.commands {
		got = append(got, [2]uint32{c.CDW10, c.CDW12&0xffff + 1})
	}
	if want := [][2]uint32{{8, 8}, {16, 16}, {32, 8}}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}
