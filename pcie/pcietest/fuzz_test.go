package pcietest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// FuzzCommands gives a controller commands that make no sense, in any number,
// to the admin queue and to an I/O queue; lists are read from memory that holds
// the same bytes. The controller survives, and answers those that it does not
// keep.
func FuzzCommands(f *testing.F) {
	add := func(qid byte, cmds ...nvme.Command) {
		b := []byte{qid}
		for i := range cmds {
			b = append(b, commandBytes(&cmds[i])[:]...)
		}
		f.Add(b)
	}
	add(1, rw(nvme.OpRead, 1, 0, 1, arenaBase), rw(nvme.OpWrite, 1, 0, 64, arenaBase, arenaBase+4096), rw(nvme.OpCompare, 1, 0, 8, arenaBase))
	add(1, sglIO(nvme.OpRead, 8, nvme.SGLLastSegment(arenaBase, 64)), rw(nvme.OpCopy, 1, 0, 1, arenaBase), rw(nvme.OpDatasetManagement, 1, 0, 1, arenaBase))
	add(0, nvme.IdentifyCommand{CNS: nvme.CNSController}.Command(), nvme.CreateCQCommand{QID: 2, Size: 7, Address: arenaBase, Contiguous: true}.Command(),
		nvme.CreateSQCommand{QID: 2, Size: 7, Address: arenaBase, CQID: 2, Contiguous: true}.Command(), nvme.DeleteSQCommand(2))
	add(0, nvme.Command{Opcode: nvme.AdminAsyncEvent}, nvme.AbortCommand{CID: 1}.Command(), nvme.FormatCommand{NSID: 1, Index: 1}.Command(),
		nvme.DoorbellBufferCommand(arenaBase, arenaBase+4096))
	add(0, nvme.NamespaceManagementCommand{Delete: true, NSID: nvme.NSIDAll}.Command(), nvme.NamespaceManagementCommand{}.Command(),
		nvme.SetFeaturesCommand{FeatureID: nvme.FeatArbitration}.Command(), nvme.GetFeaturesCommand{FeatureID: nvme.FeatHostBehavior}.Command())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1+64 {
			return
		}
		d := newDriver(t, Config{Capacity: 1 << 20, ANA: true, Namespaces: []NamespaceConfig{{Size: 1 << 20}}, CMB: CMBConfig{Size: 4096}})
		d.must(d.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(0x7000_0000_0000, true, true))))
		d.next = 64 << 10
		d.enable().queue(1, 16)
		qid := uint16(b[0] & 1)
		b = b[1:]
		copy(d.mem[:64<<10], b)
		for sent := 0; len(b) >= 64 && sent < 14; sent, b = sent+1, b[64:] {
			var cmd nvme.Command
			copy(commandBytes(&cmd)[:], b)
			d.put(qid, cmd)
		}
		d.ring(qid)
		for range 4 {
			d.step()
		}
		if d.csts().CFS() {
			return // an entry of a queue that was created could not be read
		}
		for range 64 {
			cpl, ok := d.reap(qid)
			if !ok {
				break
			}
			if cpl.SQID != qid && qid != 0 {
				t.Fatalf("%+v", cpl)
			}
		}
		// It goes on, unless it was told to execute the fuzzer's commands.
		if len(d.c.active) == 2 {
			d.disable()
			d.enable()
			d.ok(0, d.identify(nvme.IdentifyCommand{CNS: nvme.CNSController}))
		}
	})
}

// FuzzRegisters writes and reads registers at random.
func FuzzRegisters(f *testing.F) {
	f.Add([]byte{0x14, 0, 1, 0, 0x46, 0, 0x24, 0, 15, 0, 15, 0})
	f.Add([]byte{0x20, 0, 0x65, 0x4d, 0x56, 0x4e, 0x50, 0, 3, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDriver(t, Config{CMB: CMBConfig{Size: 4096}})
		for ; len(b) >= 6; b = b[6:] {
			off, v := uint32(binary.LittleEndian.Uint16(b)), binary.LittleEndian.Uint32(b[2:])
			err := d.dev.Write32(off, v)
			if off&4 != 0 && off&3 == 0 {
				err = d.dev.Write64(off&^7, uint64(v)*0x100000001)
			}
			if _, rerr := d.dev.Read32(off); (err == nil) != (rerr == nil) || err != nil && !errors.Is(err, ErrAccess) {
				t.Fatalf("at %#x: %v, %v", off, err, rerr)
			}
			d.step()
		}
		d.reset()
		d.enable()
		d.ok(0, d.identify(nvme.IdentifyCommand{CNS: nvme.CNSController}))
	})
}

// FuzzSession feeds a connection of vfio-user, after the version. What is left
// in the end is nothing.
func FuzzSession(f *testing.F) {
	frame := func(cmd vfuser.Command, payload []byte) []byte {
		return append(vfuser.Header{Command: cmd, Size: uint32(vfuser.HeaderSize + len(payload))}.Append(nil), payload...)
	}
	f.Add(frame(vfuser.CmdDeviceInfo, vfuser.DeviceInfo{ArgSize: 16}.Append(nil)))
	f.Add(frame(vfuser.CmdRegionInfo, vfuser.RegionInfo{ArgSize: 256}.Append(nil)))
	f.Add(frame(vfuser.CmdRegionRead, vfuser.RegionAccess{Offset: 0x14, Count: 4}.Append(nil)))
	f.Add(frame(vfuser.CmdRegionWrite, vfuser.RegionAccess{Offset: 0x14, Count: 4, Data: []byte{1, 0, 0x46, 0}}.Append(nil)))
	f.Add(frame(vfuser.CmdRegionWrite, vfuser.RegionAccess{Region: 7, Offset: 4, Count: 2, Data: []byte{6, 4}}.Append(nil)))
	f.Add(frame(vfuser.CmdDMAMap, vfuser.DMAMap{Flags: 3, Address: 0x1000, Size: 0x1000}.Append(nil)))
	f.Add(frame(vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Flags: vfuser.UnmapAll}.Append(nil)))
	f.Add(frame(vfuser.CmdSetIRQs, vfuser.IRQSet{Flags: vfuser.IRQDataNone | vfuser.IRQTrigger, Index: 2, Count: 2}.Append(nil)))
	f.Add(frame(vfuser.CmdSetIRQs, vfuser.IRQSet{Flags: vfuser.IRQDataBool | vfuser.IRQTrigger, Index: 2, Count: 2, Bools: []byte{1, 1}}.Append(nil)))
	f.Add(frame(vfuser.CmdRegionIOFDs, make([]byte, 16)))
	l, err := net.Listen("unix", filepath.Join(f.TempDir(), "s"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 32<<10 {
			return // more than the socket holds
		}
		c, err := New(Config{CMB: CMBConfig{Size: 4096}, Namespaces: []NamespaceConfig{{Backend: Null(1 << 20)}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		u, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.ServeConn(s.(*net.UnixConn)) }()
		b = append(frame(vfuser.CmdVersion, vfuser.Version{Minor: 1}.Append(nil)), b...)
		go func() {
			_, _ = u.Write(b) // it may have hung up
			_ = u.(*net.UnixConn).CloseWrite()
		}()
		_ = u.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, u); errors.Is(err, nil) {
			c.Poll(1)
		}
		<-done
		if len(c.dma.maps) != 0 || c.client.who != nil {
			t.Errorf("%d mappings are left, and driver %v", len(c.dma.maps), c.client.who)
		}
	})
}
