package pcietest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// served is a client without a driver.
func served(t testing.TB, cfg Config) (*Controller, *remote) {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, dial(t, c)
}

func TestRemoteInfo(t *testing.T) {
	_, r := served(t, Config{CMB: CMBConfig{Size: 12 << 10}, Interrupts: 5})
	d, err := vfuser.ParseDeviceInfo(r.call(vfuser.CmdDeviceInfo, vfuser.DeviceInfo{ArgSize: 16}.Append(nil)).Payload)
	if err != nil || d.Flags != vfuser.DevicePCI|vfuser.DeviceReset || d.Regions != 9 || d.IRQs != 5 {
		t.Errorf("%+v, %v", d, err)
	}
	for index, size := range map[uint32]uint64{0: 8192, 1: 0, 2: 16 << 10, 3: 0, 4: 8192, 6: 0, 7: 4096, 8: 0} {
		i, fds := r.region(index)
		closeAll(fds)
		mapped := index == 0 || index == 2
		if i.Size != size || (len(fds) == 1) != mapped || (len(i.Areas) == 1) != mapped || (i.Flags&vfuser.RegionMmap != 0) != mapped {
			t.Errorf("region %d: %+v, %d descriptors", index, i, len(fds))
		}
	}
	// Without room for the areas, it says how much there is.
	m := r.call(vfuser.CmdRegionInfo, vfuser.RegionInfo{ArgSize: 32}.Append(nil))
	i, err := vfuser.ParseRegionInfo(m.Payload)
	if err != nil || i.ArgSize != 64 || len(i.Areas) != 0 || len(m.FDs) != 0 || i.Flags&vfuser.RegionMmap == 0 {
		t.Errorf("%+v, %v", i, err)
	}
	for index, count := range map[uint32]uint32{0: 1, 1: 0, 2: 5, 3: 1, 4: 1} {
		i, err := vfuser.ParseIRQInfo(r.call(vfuser.CmdIRQInfo, vfuser.IRQInfo{ArgSize: 16, Index: index}.Append(nil)).Payload)
		if err != nil || i.Count != count || i.Flags != vfuser.IRQEventFD {
			t.Errorf("interrupt %d: %+v, %v", index, i, err)
		}
	}
	io := make([]byte, 16)
	binary.LittleEndian.PutUint32(io, 64)
	if m := r.call(vfuser.CmdRegionIOFDs, io); len(m.Payload) != 16 {
		t.Errorf("%d bytes", len(m.Payload))
	}
}

func TestConfigSpace(t *testing.T) {
	c, r := served(t, Config{Info: pcie.Info{Vendor: 0x1234, Device: 0x5678, Revision: 3}, Interrupts: 5})
	read := func(off uint64, n int) uint64 {
		t.Helper()
		b, err := r.read(vfuser.RegionConfig, off, n)
		if err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint64(append(b, make([]byte, 8)...))
	}
	write := func(off uint64, b ...byte) {
		t.Helper()
		if err := r.write(vfuser.RegionConfig, off, b); err != nil {
			t.Fatal(err)
		}
	}
	if read(0, 4) != 0x56781234 || read(8, 4) != 0x01080203 {
		t.Errorf("identity %#x, class %#x", read(0, 4), read(8, 4))
	}
	write(0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	if v := read(0x10, 8); v != 0xffffffff_ffffe004 {
		t.Errorf("BAR 0 is %#x, sized", v)
	}
	if v := read(0x18, 4); v != 0 {
		t.Errorf("BAR 2 is %#x, and not there", v)
	}
	write(4, 0xff, 0xff)
	if v := read(4, 2); v != commandBits {
		t.Errorf("command register %#x", v)
	}
	caps := map[uint8]uint64{}
	for at := read(0x34, 1); at != 0 && len(caps) < 10; at = read(at+1, 1) {
		caps[uint8(read(at, 1))] = at
	}
	msix := caps[0x11]
	if len(caps) != 3 || caps[0x01] == 0 || caps[0x10] == 0 || read(msix+2, 2) != 4 || read(msix+4, 4) != msixBAR || read(msix+8, 4) != 4096|msixBAR {
		t.Errorf("capabilities %v", caps)
	}
	write(msix+2, 0xff, 0xff)
	if v := read(msix+2, 2); v != 0xc004 {
		t.Errorf("MSI-X control %#x", v)
	}
	if err := r.write(msixBAR, 16, []byte{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if b, err := r.read(msixBAR, 16, 4); err != nil || b[3] != 4 {
		t.Errorf("MSI-X table %x, %v", b, err)
	}
	// A function level reset, by the capability.
	if err := r.Write64(nvme.RegASQ, 0x5000); err != nil {
		t.Fatal(err)
	}
	write(caps[0x10]+8, 0, 0x80)
	if v, err := r.Read64(nvme.RegASQ); v != 0 || err != nil {
		t.Errorf("ASQ is %#x, %v", v, err)
	}
	c.Vanish(true)
	if v := read(0, 4); v != 0xffffffff {
		t.Errorf("vanished: identity %#x", v)
	}
}

// TestHostileMessages: what makes no sense is refused, and the connection goes
// on.
func TestHostileMessages(t *testing.T) {
	c, r := served(t, Config{CMB: CMBConfig{Size: 4096}, Interrupts: 2})
	fd, err := sys.Memfd("hostile", 8192, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(fd)
	access := func(region uint32, off uint64, count uint32, data ...byte) []byte {
		return vfuser.RegionAccess{Region: region, Offset: off, Count: count, Data: data}.Append(nil)
	}
	irqs := func(flags, index, start, count uint32) []byte {
		return vfuser.IRQSet{Flags: flags, Index: index, Start: start, Count: count}.Append(nil)
	}
	dma := func(flags uint32, off, addr, size uint64) []byte {
		return vfuser.DMAMap{Flags: flags, Offset: off, Address: addr, Size: size}.Append(nil)
	}
	r.call(vfuser.CmdDMAMap, dma(3, 0, 0x10000, 4096), fd)
	for _, c := range []struct {
		name    string
		cmd     vfuser.Command
		payload []byte
		fds     []int
		want    syscall.Errno
	}{
		{"version again", vfuser.CmdVersion, vfuser.Version{Minor: 1}.Append(nil), nil, syscall.EINVAL},
		{"unknown", 99, []byte{1}, nil, syscall.EINVAL},
		{"of the device", vfuser.CmdDMARead, make([]byte, 16), nil, syscall.EINVAL},
		{"dirty pages", vfuser.CmdDirtyPages, make([]byte, 8), nil, syscall.EOPNOTSUPP},
		{"feature", vfuser.CmdDeviceFeature, make([]byte, 8), nil, syscall.EOPNOTSUPP},
		{"short device info", vfuser.CmdDeviceInfo, make([]byte, 15), nil, syscall.EINVAL},
		{"device info without room", vfuser.CmdDeviceInfo, make([]byte, 16), nil, syscall.EINVAL},
		{"short region info", vfuser.CmdRegionInfo, make([]byte, 31), nil, syscall.EINVAL},
		{"no region", vfuser.CmdRegionInfo, vfuser.RegionInfo{ArgSize: 256, Index: 9}.Append(nil), nil, syscall.EINVAL},
		{"no interrupt", vfuser.CmdIRQInfo, vfuser.IRQInfo{ArgSize: 16, Index: 5}.Append(nil), nil, syscall.EINVAL},
		{"short io fds", vfuser.CmdRegionIOFDs, make([]byte, 15), nil, syscall.EINVAL},
		{"io fds without room", vfuser.CmdRegionIOFDs, make([]byte, 16), nil, syscall.EINVAL},
		{"read of nothing", vfuser.CmdRegionRead, access(0, 0, 0), nil, syscall.EINVAL},
		{"read of 2 bytes", vfuser.CmdRegionRead, access(0, 0, 2), nil, syscall.EINVAL},
		{"read across registers", vfuser.CmdRegionRead, access(0, 2, 4), nil, syscall.EINVAL},
		{"read beyond", vfuser.CmdRegionRead, access(0, 8192, 4), nil, syscall.EINVAL},
		{"read that wraps", vfuser.CmdRegionRead, access(0, 1<<64-4, 8), nil, syscall.EINVAL},
		{"read of no region", vfuser.CmdRegionRead, access(77, 0, 4), nil, syscall.EINVAL},
		{"read of an empty region", vfuser.CmdRegionRead, access(1, 0, 4), nil, syscall.EINVAL},
		{"long read", vfuser.CmdRegionRead, access(2, 0, 0xffffffff), nil, syscall.EINVAL},
		{"configuration space, beyond", vfuser.CmdRegionRead, access(7, 4095, 2), nil, syscall.EINVAL},
		{"write without data", vfuser.CmdRegionWrite, access(0, 0x14, 4), nil, syscall.EINVAL},
		{"write of one byte", vfuser.CmdRegionWrite, access(0, 0x14, 1, 1), nil, syscall.EINVAL},
		{"write beyond", vfuser.CmdRegionWrite, access(2, 4095, 2, 1, 2), nil, syscall.EINVAL},
		{"too many interrupts", vfuser.CmdSetIRQs, irqs(vfuser.IRQDataNone|vfuser.IRQTrigger, 2, 1, 2), nil, syscall.EINVAL},
		{"interrupts of no kind", vfuser.CmdSetIRQs, irqs(vfuser.IRQDataNone|vfuser.IRQTrigger, 5, 0, 1), nil, syscall.EINVAL},
		{"descriptors for fewer", vfuser.CmdSetIRQs, irqs(vfuser.IRQDataEventFD|vfuser.IRQTrigger, 2, 0, 1), []int{fd, fd}, syscall.EINVAL},
		{"map over another", vfuser.CmdDMAMap, dma(3, 0, 0x10800, 4096), []int{fd}, syscall.EEXIST},
		{"map of more than the file", vfuser.CmdDMAMap, dma(3, 4096, 0x20000, 8192), []int{fd}, syscall.EINVAL},
		{"map at an odd offset", vfuser.CmdDMAMap, dma(3, 5, 0x20000, 4096), []int{fd}, syscall.EINVAL},
		{"map of unknown flags", vfuser.CmdDMAMap, dma(0x13, 0, 0x20000, 4096), []int{fd}, syscall.EINVAL},
		{"map by file I/O", vfuser.CmdDMAMap, dma(vfuser.DMAFileIO|3, 0, 0x20000, 4096), []int{fd}, syscall.EINVAL},
		{"map of two files", vfuser.CmdDMAMap, dma(3, 0, 0x20000, 4096), []int{fd, fd}, syscall.EINVAL},
		{"map of no file", vfuser.CmdDMAMap, dma(vfuser.DMAMmap|3, 0, 0x20000, 4096), nil, syscall.EINVAL},
		{"unmap of nothing", vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Address: 0x20000, Size: 4096}.Append(nil), nil, syscall.ENOENT},
		{"unmap of a part", vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Address: 0x10000, Size: 2048}.Append(nil), nil, syscall.ENOENT},
		{"dirty bitmap", vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Flags: vfuser.UnmapDirtyBitmap, Address: 0x10000, Size: 4096}.Append(nil), nil, syscall.EOPNOTSUPP},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := r.try(c.cmd, c.payload, c.fds...); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	// It works on, and what was mapped can be unmapped.
	if v, err := r.Read32(nvme.RegVS); v != uint32(nvme.Version21) || err != nil {
		t.Errorf("VS is %#x, %v", v, err)
	}
	r.call(vfuser.CmdDMAMap, dma(3, 0, 0x20000, 4096))
	r.call(vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Flags: vfuser.UnmapAll}.Append(nil))
	c.lock()
	defer c.unlock()
	if n := len(c.dma.maps); n != 0 {
		t.Errorf("%d mappings are left", n)
	}
}

// TestHostileConnections: what breaks the protocol ends the connection, and the
// next driver is served.
func TestHostileConnections(t *testing.T) {
	c, first := served(t, Config{})
	first.Close()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Serve(l) }()
	hello := vfuser.Version{Minor: 1}.Append(nil)
	frame := func(h vfuser.Header, payload []byte) []byte {
		h.Size = uint32(vfuser.HeaderSize + len(payload))
		return append(h.Append(nil), payload...)
	}
	version := frame(vfuser.Header{Command: vfuser.CmdVersion}, hello)
	for _, b := range [][]byte{
		{}, {1}, make([]byte, 64), version[:20],
		frame(vfuser.Header{Command: vfuser.CmdDeviceInfo}, make([]byte, 16)),
		frame(vfuser.Header{Command: vfuser.CmdVersion}, vfuser.Version{Major: 1}.Append(nil)),
		frame(vfuser.Header{Command: vfuser.CmdVersion, Flags: vfuser.FlagReply}, hello),
		append(append([]byte{}, version...), frame(vfuser.Header{Command: vfuser.CmdDeviceInfo, Flags: vfuser.FlagReply}, nil)...),
		append(append([]byte{}, version...), vfuser.Header{Size: 1 << 30}.Append(nil)...),
		append(append([]byte{}, version...), frame(vfuser.Header{Command: vfuser.CmdDeviceReset, Flags: vfuser.FlagNoReply}, nil)...),
	} {
		u, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := u.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		// Whatever it answers, it hangs up.
		if _, err := io.Copy(io.Discard, u); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%x: %v", b, err)
		}
		u.Close()
	}
	// The last connection may not have ended yet, and there is one at a time.
	r := &remote{t: t}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.conn = connectTo(t, l.Addr().String())
		_, err := r.try(vfuser.CmdVersion, hello)
		if err == nil {
			break
		}
		r.conn.Close()
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if _, err := r.Read32(0); err != nil {
		t.Error(err)
	}
	c.Remove()
	if _, err := r.Read32(0); err == nil {
		t.Error("a removed controller answers")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.Serve(l); !errors.Is(err, pcie.ErrGone) {
		t.Errorf("served again: %v", err)
	}
}

// TestTruncatedMemory cuts off the file behind a mapping: the controller has a
// fatal error, and that is all.
func TestTruncatedMemory(t *testing.T) {
	d := newRemote(t, Config{})
	d.enable().queue(1, 8)
	fd, err := sys.Memfd("cut", 8192, 0)
	d.must(err)
	defer sys.Close(fd)
	d.must(d.dev.MapDMA(pcie.Memory{Bytes: make([]byte, 8192), FD: fd}, 0x4000_0000))
	d.ok(1, rw(nvme.OpRead, 1, 0, 16, 0x4000_0000, 0x4000_1000))
	d.must(os.Truncate(fmt.Sprintf("/proc/self/fd/%d", fd), 0))
	d.put(1, rw(nvme.OpRead, 1, 0, 16, 0x4000_0000, 0x4000_1000))
	d.ring(1)
	for range patience {
		if d.csts().CFS() {
			break
		}
	}
	if !d.csts().CFS() {
		t.Fatalf("CSTS is %v", d.csts())
	}
	if f := d.c.Faults(); len(f) != 1 {
		t.Errorf("faults %v", f)
	}
}
