package vfiouser

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

func TestDevice(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	want := pcie.Info{
		Vendor: 0x1b36, Device: 0x10, SubsystemVendor: 0x1af4, SubsystemDevice: 0x1100,
		Class: pcie.ClassNVMe, Revision: 5, NUMANode: -1,
	}
	if d.Info() != want || d.Name() != s.path || d.Interrupts() != 4 || d.MaxMappings() != 100 || d.Gone() {
		t.Errorf("%s: %+v, %d vectors, %d mappings", d.Name(), d.Info(), d.Interrupts(), d.MaxMappings())
	}
	if d.BARSize(0) != 0x3000 || d.BARSize(1) != 0 || d.BARSize(6) != 0 || d.BARSize(-1) != 0 {
		t.Error("sizes of BARs")
	}
	// Registers, by message and by mapping.
	for _, off := range []uint32{0x28, 0x1000} {
		if err := errors.Join(d.Write64(off, 0x1122334455667788), d.Write32(off+8, 7)); err != nil {
			t.Error(err)
		}
		v, err1 := d.Read64(off)
		w, err2 := d.Read32(off + 8)
		if v != 0x1122334455667788 || w != 7 || err1 != nil || err2 != nil {
			t.Errorf("%#x: %#x, %#x, %v, %v", off, v, w, err1, err2)
		}
	}
	for _, off := range []uint32{2, 0x3000, 0xfffffffc} {
		if _, err := d.Read32(off); !errors.Is(err, mmio.ErrBounds) {
			t.Errorf("read %#x: %v", off, err)
		}
		if err := d.Write32(off, 0); !errors.Is(err, mmio.ErrBounds) {
			t.Errorf("write %#x: %v", off, err)
		}
	}
	// What the server has no register for is its error, and no more than that.
	if _, err := d.Read32(0x2000); !errors.Is(err, syscall.EINVAL) || d.Gone() {
		t.Errorf("refused: %v", err)
	}
}

func TestMap(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	w, err := d.Map(0, 0x1008, 8)
	if err != nil || w.Len() != 8 {
		t.Fatalf("%d bytes, %v", w.Len(), err)
	}
	if err := w.Write32(4, 0xabcd); err != nil {
		t.Fatal(err)
	}
	var b [4]byte
	// The area is at 0x1000 of the BAR, which is at 0x1000 of the file.
	if _, err := s.bar.ReadAt(b[:], 0x200c); err != nil || b != [4]byte{0xcd, 0xab} {
		t.Errorf("the server sees %x, %v", b, err)
	}
	for _, c := range []struct {
		bar    int
		off, n uint64
		want   error
	}{
		{0, 0, 8, pcie.ErrNotMappable}, {0, 0x1ff8, 16, pcie.ErrNotMappable}, {1, 0, 8, pcie.ErrNotMappable},
		{7, 0, 8, pcie.ErrNotMappable}, {0, 0x1000, 1 << 40, mmio.ErrBounds}, {0, 1 << 63, 1 << 63, mmio.ErrBounds},
	} {
		if _, err := d.Map(c.bar, c.off, c.n); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestControl(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	for _, on := range []bool{true, false, true} {
		err := d.SetBusMaster(on)
		c := s.look().config
		if err != nil || (c[4]&4 != 0) != on || c[4]&2 == 0 || c[5]&4 == 0 {
			t.Errorf("%v: command %#x, %v", on, c[4:6], err)
		}
	}
	if err := d.Reset(t.Context()); err != nil || s.look().resets != 1 || s.look().config[4]&4 != 0 {
		t.Errorf("%d resets, command %#x, %v", s.look().resets, s.look().config[4], err)
	}
	fd, err := sys.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(fd)
	if err := errors.Join(d.SetInterrupt(3, fd), d.SetInterrupt(3, -1)); err != nil || len(s.look().irqs) != 1 {
		t.Fatalf("%d interrupts, %v", len(s.look().irqs), err)
	}
	sys.EventSignal(s.look().irqs[0])
	if n, _ := sys.EventDrain(fd); n != 1 {
		t.Error("no interrupt")
	}
	if err := d.SetInterrupt(4, fd); !errors.Is(err, pcie.ErrVector) {
		t.Errorf("vector 4: %v", err)
	}
}

func TestDMA(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	b, fd := memory(t, 1<<16)
	m := pcie.Memory{Bytes: b, FD: fd}
	if err := d.MapDMA(m, 1<<32); err != nil || s.look().maps[1<<32] != 1<<16 {
		t.Fatalf("%v, %v", s.look().maps, err)
	}
	for _, iova := range []uint64{1 << 32, 1<<32 + 4096, 1<<32 - 4096, 0, 1 << 48, ^uint64(0) - 4095} {
		if err := d.MapDMA(m, iova); !errors.Is(err, pcie.ErrIOVA) {
			t.Errorf("%#x: %v", iova, err)
		}
	}
	if err := d.UnmapDMA(1<<32, 4096); !errors.Is(err, pcie.ErrIOVA) {
		t.Errorf("a part: %v", err)
	}
	if err := d.UnmapDMA(1<<32, 1<<16); err != nil || len(s.look().maps) != 0 {
		t.Errorf("%v, %v", s.look().maps, err)
	}
	// A refusal leaves nothing behind.
	s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
		if m.Command == vfuser.CmdDMAMap {
			_ = c.Send(m.ErrorReply(syscall.ENOSPC), nil, nil)
		}
		return m.Command == vfuser.CmdDMAMap
	})
	if err := d.MapDMA(m, 1<<32); !errors.Is(err, syscall.ENOSPC) || d.Gone() {
		t.Errorf("refused: %v", err)
	}
	if err := d.UnmapDMA(1<<32, 1<<16); !errors.Is(err, pcie.ErrIOVA) {
		t.Errorf("after a refusal: %v", err)
	}
}

// TestDMAMessages has the server reach memory that is not shared.
func TestDMAMessages(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	b, _ := memory(t, 8192)
	copy(b[100:], "hello")
	if err := d.MapDMA(pcie.Memory{Bytes: b, FD: -1}, 1<<32); err != nil {
		t.Fatal(err)
	}
	// The server asks when it is told to reset.
	type question struct {
		cmd vfuser.Command
		a   vfuser.DMAAccess
	}
	questions, answers := make(chan question, 1), make(chan vfuser.Message, 1)
	s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
		if m.IsReply() {
			m.Payload = bytes.Clone(m.Payload)
			answers <- *m
			return true
		}
		if m.Command == vfuser.CmdDeviceReset {
			q := <-questions
			_ = c.Send(vfuser.Header{ID: 77, Command: q.cmd}, q.a.Append(nil), nil)
		}
		return false
	})
	ask := func(cmd vfuser.Command, a vfuser.DMAAccess) vfuser.Message {
		t.Helper()
		questions <- question{cmd, a}
		if err := d.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		return <-answers
	}
	m := ask(vfuser.CmdDMARead, vfuser.DMAAccess{Address: 1<<32 + 100, Count: 5})
	if a, err := vfuser.ParseDMAAccess(m.Payload, true); m.Err() != nil || err != nil || string(a.Data) != "hello" {
		t.Errorf("read: %v, %v, %q", m.Err(), err, a.Data)
	}
	if m = ask(vfuser.CmdDMAWrite, vfuser.DMAAccess{Address: 1<<32 + 8187, Count: 5, Data: []byte("world")}); m.Err() != nil || string(b[8187:]) != "world" {
		t.Errorf("write: %v, %q", m.Err(), b[8187:])
	}
	for _, c := range []struct {
		a    vfuser.DMAAccess
		want syscall.Errno
	}{
		{vfuser.DMAAccess{Address: 1<<32 + 8188, Count: 5}, syscall.EFAULT},
		{vfuser.DMAAccess{Address: 1<<32 - 1, Count: 5}, syscall.EFAULT},
		{vfuser.DMAAccess{Address: 1 << 32, Count: ^uint64(0)}, syscall.E2BIG},
	} {
		if m := ask(vfuser.CmdDMARead, c.a); !errors.Is(m.Err(), c.want) {
			t.Errorf("%+v: %v", c.a, m.Err())
		}
	}
	if m := ask(vfuser.CmdDirtyPages, vfuser.DMAAccess{}); !errors.Is(m.Err(), syscall.ENOTSUP) {
		t.Errorf("another command: %v", m.Err())
	}
	if err := d.UnmapDMA(1<<32, 8192); err != nil {
		t.Fatal(err)
	}
	if m := ask(vfuser.CmdDMARead, vfuser.DMAAccess{Address: 1 << 32, Count: 1}); !errors.Is(m.Err(), syscall.EFAULT) {
		t.Errorf("unmapped: %v", m.Err())
	}
}

func TestHangUp(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	b, fd := memory(t, 4096)
	if err := d.MapDMA(pcie.Memory{Bytes: b, FD: fd}, 1<<32); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	d.OnGone(func() { close(told) })
	s.hangUp()
	<-told
	_, err := d.Read32(8)
	_, err64 := d.Read64(0x1000)
	_, errMap := d.Map(0, 0x1000, 8)
	for _, err := range []error{err, err64, errMap, d.Write32(0x14, 0), d.Write64(0x1000, 0), d.SetBusMaster(true),
		d.Reset(t.Context()), d.SetInterrupt(0, -1), d.MapDMA(pcie.Memory{Bytes: b, FD: fd}, 1<<33)} {
		if !errors.Is(err, pcie.ErrGone) || !d.Gone() {
			t.Errorf("got %v", err)
		}
	}
	if err := d.UnmapDMA(1<<32, 4096); err != nil {
		t.Errorf("unmap: %v", err)
	}
}

// TestSilent: a server that does not answer in time is gone; one that is slower
// than a context is not.
func TestSilent(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	release := make(chan struct{})
	s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
		if m.Command == vfuser.CmdDeviceReset {
			<-release
		}
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := d.Reset(ctx); !errors.Is(err, context.DeadlineExceeded) || d.Gone() {
		t.Errorf("got %v", err)
	}
	close(release)
	if _, err := d.Read32(8); err != nil {
		t.Errorf("after a late answer: %v", err)
	}
	silent := newServer(t)
	silent.override.set(func(_ *vfuser.Conn, m *vfuser.Message) bool { return m.Command == vfuser.CmdIRQInfo })
	if d, err := silent.open(20 * time.Millisecond); !errors.Is(err, ErrTimeout) || !errors.Is(err, pcie.ErrGone) {
		t.Errorf("silent: %v, %v", d, err)
	}
}

func TestCutShort(t *testing.T) {
	s := newServer(t)
	d := s.mustOpen()
	if err := s.bar.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := d.Write32(0x1000, 1); !errors.Is(err, pcie.ErrGone) || !errors.Is(err, ErrProtocol) || !d.Gone() {
		t.Errorf("got %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nobody there: %v", err)
	}
	le4 := func(vs ...uint32) []byte {
		var b []byte
		for _, v := range vs {
			b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		return b
	}
	region := func(index uint32, r vfuser.RegionInfo, fds func(*server) []int) func(*server) {
		return func(s *server) {
			s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
				q, err := vfuser.ParseRegionInfo(m.Payload)
				if m.Command != vfuser.CmdRegionInfo || err != nil || q.Index != index {
					return false
				}
				r := r
				if r.Index == 0 {
					r.Index = index
				}
				_ = c.Send(m.Reply(), r.Append(nil), fds(s))
				return true
			})
		}
	}
	bar := func(s *server) []int { return []int{int(s.bar.Fd())} }
	mapped := func(size, offset uint64, areas ...vfuser.Area) vfuser.RegionInfo {
		return vfuser.RegionInfo{ArgSize: 32, Flags: 7, Size: size, Offset: offset, Areas: areas}
	}
	for _, c := range []struct {
		name  string
		build func(*server)
		want  error
	}{
		{"closes at once", func(s *server) {
			s.override.set(func(c *vfuser.Conn, _ *vfuser.Message) bool { c.Close(); return true })
		}, pcie.ErrGone},
		{"another version", func(s *server) { s.override.set(replyTo(vfuser.CmdVersion, le4(1))) }, ErrVersion},
		{"a later version", func(s *server) { s.override.set(replyTo(vfuser.CmdVersion, le4(2<<16))) }, ErrVersion},
		{"no version", func(s *server) { s.override.set(replyTo(vfuser.CmdVersion, nil)) }, ErrProtocol},
		{"capabilities that are none", func(s *server) { s.override.set(replyTo(vfuser.CmdVersion, append(le4(1<<16), "{]\x00"...))) }, ErrProtocol},
		{"not PCI", func(s *server) { s.override.set(replyTo(vfuser.CmdDeviceInfo, le4(16, 4, 9, 5))) }, ErrDevice},
		{"no configuration space", func(s *server) { s.override.set(replyTo(vfuser.CmdDeviceInfo, le4(16, 2, 7, 5))) }, ErrDevice},
		{"another class", func(s *server) { s.mu.Lock(); s.config[0xa] = 6; s.mu.Unlock() }, ErrDevice},
		{"refusal", func(s *server) {
			s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
				_ = c.Send(m.ErrorReply(syscall.EPERM), nil, nil)
				return true
			})
		}, syscall.EPERM},
		{"a reply to nothing", func(s *server) {
			s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
				h := m.Reply()
				h.ID += 5
				_ = c.Send(h, nil, nil)
				return true
			})
		}, ErrProtocol},
		{"a reply twice", func(s *server) {
			s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool { s.answer(c, m); return false })
		}, ErrProtocol},
		{"descriptors nobody asked for", func(s *server) {
			s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
				return replyTo(vfuser.CmdVersion, le4(1), int(s.bar.Fd()), int(s.bar.Fd()))(c, m)
			})
		}, ErrVersion},
		{"a small BAR", region(0, mapped(0x1000, 0), bar), ErrDevice},
		{"another region", region(0, vfuser.RegionInfo{ArgSize: 32, Index: 3, Size: 0x3000}, bar), ErrProtocol},
		{"a file that is too short", region(0, mapped(0x4000, 0x1000), bar), ErrProtocol},
		{"an offset that wraps", region(0, mapped(0x3000, ^uint64(0)&^0xfff, vfuser.Area{Offset: 0x1000, Size: 0x1000}), bar), ErrProtocol},
		{"a huge region", region(0, mapped(1<<63, 0), bar), ErrProtocol},
		{"a huge area", region(0, mapped(1<<62, 0), bar), ErrProtocol},
		{"too many descriptors", region(0, mapped(0x3000, 0, vfuser.Area{Offset: 0x1000, Size: 0x1000}), func(s *server) []int {
			return []int{int(s.bar.Fd()), int(s.bar.Fd())}
		}), ErrProtocol},
		{"a descriptor that cannot be mapped", region(0, mapped(0x3000, 0), func(s *server) []int {
			fd, err := sys.EventFD()
			if err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.irqs = append(s.irqs, fd) // closed with the server
			return []int{fd}
		}), ErrProtocol},
		{"a short answer to a read", func(s *server) { s.override.set(replyTo(vfuser.CmdRegionRead, le4(0, 0, 7, 64, 1))) }, ErrProtocol},
		{"an answer to another read", func(s *server) {
			s.override.set(replyTo(vfuser.CmdRegionRead, vfuser.RegionAccess{Offset: 4, Region: 7, Count: 64, Data: make([]byte, 64)}.Append(nil)))
		}, ErrProtocol},
	} {
		s := newServer(t)
		c.build(s)
		if d, err := s.open(0); !errors.Is(err, c.want) || d != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestAreas: two areas, in files of their own and in one.
func TestAreas(t *testing.T) {
	for _, files := range []int{1, 2} {
		s := newServer(t)
		fds := []int{int(s.bar.Fd()), int(s.bar.Fd())}[:files]
		s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
			q, err := vfuser.ParseRegionInfo(m.Payload)
			if m.Command != vfuser.CmdRegionInfo || err != nil || q.Index != 0 {
				return false
			}
			r := vfuser.RegionInfo{Flags: 7, Size: 0x4000, Areas: []vfuser.Area{{Offset: 0x3000, Size: 0x1000}, {Offset: 0x1000, Size: 0x1000}, {Offset: 0x2000}}}
			r.Areas = r.Areas[:2]
			r.ArgSize = r.FullSize()
			_ = c.Send(m.Reply(), r.Append(nil), fds)
			return true
		})
		d := s.mustOpen()
		for _, off := range []uint64{0x1000, 0x3000} {
			w, err := d.Map(0, off, 0x1000)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write32(0, uint32(off)); err != nil {
				t.Error(err)
			}
			var b [4]byte
			if _, err := s.bar.ReadAt(b[:], int64(off)); err != nil || b[1] != byte(off>>8) {
				t.Errorf("%#x: %x, %v", off, b, err)
			}
		}
	}
}
