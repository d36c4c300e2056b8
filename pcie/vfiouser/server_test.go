package vfiouser

import (
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// override is a function that may be changed while the server runs.
type override struct{ f atomic.Pointer[overrideFunc] }

type overrideFunc func(c *vfuser.Conn, m *vfuser.Message) (done bool)

func (o *override) set(f overrideFunc) { o.f.Store(&f) }

func (o *override) call(c *vfuser.Conn, m *vfuser.Message) bool {
	f := o.f.Load()
	return f != nil && (*f)(c, m)
}

// server is a device on the other side of a socket: configuration space, and a
// BAR whose second page is shared. Tests change its answers.
type server struct {
	t    testing.TB
	path string
	l    *net.UnixListener
	bar  *os.File
	wg   sync.WaitGroup

	// override answers instead of the server, if it says so. It may send on its
	// own, and close.
	override override

	mu sync.Mutex
	state
}

// state is what a server has in its hands.
type state struct {
	config [256]byte
	regs   [0x1000]byte
	maps   map[uint64]uint64
	fds    map[uint64]int // of the mappings, kept if there are any
	irqs   []int          // eventfds
	resets int
	conn   *vfuser.Conn
}

// look returns the state as it is now.
func (s *server) look() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state
	now.maps, now.irqs = maps.Clone(now.maps), slices.Clone(now.irqs)
	return now
}

func newServer(t testing.TB) *server {
	dir, err := os.MkdirTemp("", "vfu")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, path: filepath.Join(dir, "cntrl")}
	s.maps, s.fds = map[uint64]uint64{}, map[uint64]int{}
	if s.l, err = net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	if s.bar, err = os.Create(filepath.Join(dir, "bar0")); err != nil {
		t.Fatal(err)
	}
	if err := s.bar.Truncate(0x4000); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	le.PutUint16(s.config[0:], 0x1b36)
	le.PutUint16(s.config[2:], 0x10)
	le.PutUint16(s.config[4:], 2)
	le.PutUint32(s.config[8:], 0x01080205)
	le.PutUint32(s.config[0x2c:], 0x11001af4)
	le.PutUint32(s.regs[8:], 0x10400)
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		s.l.Close()
		s.hangUp()
		s.wg.Wait()
		for _, fd := range s.fds {
			_ = sys.Close(fd)
		}
		for _, fd := range s.irqs {
			_ = sys.Close(fd)
		}
		s.bar.Close()
		os.RemoveAll(dir)
	})
	return s
}

// hangUp ends the connection.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
	}
}

func (s *server) accept() {
	for {
		nc, err := s.l.AcceptUnix()
		if err != nil {
			return
		}
		c := vfuser.NewConn(nc, vfuser.MaxFDs)
		s.mu.Lock()
		s.conn = c
		s.mu.Unlock()
		for {
			m, err := c.Receive()
			if err != nil {
				break
			}
			if !s.override.call(c, &m) {
				s.answer(c, &m)
			}
			m.CloseFDs()
		}
		c.Close()
	}
}

func (s *server) answer(c *vfuser.Conn, m *vfuser.Message) {
	s.mu.Lock()
	payload, fds, err := s.execute(m)
	s.mu.Unlock()
	if err != nil {
		_ = c.Send(m.ErrorReply(errnoOf(err)), nil, nil)
		return
	}
	_ = c.Send(m.Reply(), payload, fds)
}

func (s *server) region(i uint32) []byte {
	switch i {
	case vfuser.RegionBAR0:
		return s.regs[:]
	case vfuser.RegionConfig:
		return s.config[:]
	}
	return nil
}

// execute does what a message asks for.
func (s *server) execute(m *vfuser.Message) (payload []byte, fds []int, err error) {
	switch m.Command {
	case vfuser.CmdVersion:
		return vfuser.Version{Minor: 1, Capabilities: vfuser.Capabilities{MaxFDs: 8, MaxDMAMaps: 100}}.Append(nil), nil, nil
	case vfuser.CmdDeviceInfo:
		return vfuser.DeviceInfo{ArgSize: 16, Flags: vfuser.DevicePCI | vfuser.DeviceReset, Regions: 9, IRQs: 5}.Append(nil), nil, nil
	case vfuser.CmdRegionInfo:
		return s.regionInfo(m)
	case vfuser.CmdIRQInfo:
		return vfuser.IRQInfo{ArgSize: 16, Flags: vfuser.IRQEventFD, Index: 2, Count: 4}.Append(nil), nil, nil
	case vfuser.CmdRegionRead, vfuser.CmdRegionWrite:
		return s.access(m)
	case vfuser.CmdDMAMap:
		d, err := vfuser.ParseDMAMap(m.Payload)
		s.maps[d.Address] = d.Size
		if len(m.FDs) > 0 {
			s.fds[d.Address] = m.TakeFD(0)
		}
		return nil, nil, err
	case vfuser.CmdDMAUnmap:
		d, err := vfuser.ParseDMAUnmap(m.Payload)
		delete(s.maps, d.Address)
		return d.Append(nil), nil, err
	case vfuser.CmdSetIRQs:
		if fd := m.TakeFD(0); fd >= 0 {
			s.irqs = append(s.irqs, fd)
		}
		return nil, nil, nil
	case vfuser.CmdDeviceReset:
		s.resets++
		return nil, nil, nil
	}
	return nil, nil, syscall.ENOTSUP
}

func (s *server) regionInfo(m *vfuser.Message) ([]byte, []int, error) {
	r, err := vfuser.ParseRegionInfo(m.Payload)
	if err != nil {
		return nil, nil, err
	}
	r.ArgSize = vfuser.RegionInfoSize
	switch r.Index {
	case vfuser.RegionConfig:
		r.Flags, r.Size = vfuser.RegionRead|vfuser.RegionWrite, uint64(len(s.config))
	case vfuser.RegionBAR0:
		r.Flags, r.Size = vfuser.RegionRead|vfuser.RegionWrite|vfuser.RegionMmap, 0x3000
		r.Areas = []vfuser.Area{{Offset: 0x1000, Size: 0x1000}}
		r.Offset = 0x1000 // in the file
		return r.Append(nil), []int{int(s.bar.Fd())}, nil
	}
	return r.Append(nil), nil, nil
}

func (s *server) access(m *vfuser.Message) ([]byte, []int, error) {
	write := m.Command == vfuser.CmdRegionWrite
	a, err := vfuser.ParseRegionAccess(m.Payload, write)
	if err != nil {
		return nil, nil, err
	}
	r := s.region(a.Region)
	if a.Offset > uint64(len(r)) || uint64(a.Count) > uint64(len(r))-a.Offset {
		return nil, nil, syscall.EINVAL
	}
	part := r[a.Offset:][:a.Count]
	if write {
		copy(part, a.Data)
		a.Data = nil
	} else {
		a.Data = part
	}
	return a.Append(nil), nil, nil
}

// open opens the server's device.
func (s *server) open(timeout time.Duration) (*Device, error) {
	return Open(s.t.Context(), filepath.Dir(s.path), Config{Timeout: timeout})
}

// mustOpen is open for what has to work.
func (s *server) mustOpen() *Device {
	s.t.Helper()
	d, err := s.open(0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return d
}

// memory is a shared mapping of a file in memory.
func memory(t testing.TB, n int) (b []byte, fd int) {
	fd, err := sys.Memfd("test", int64(n), 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err = sys.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(sys.Munmap(b), sys.Close(fd)); err != nil {
			t.Error(err)
		}
	})
	return b, fd
}

// reply answers one command with something else.
func replyTo(cmd vfuser.Command, payload []byte, fds ...int) func(*vfuser.Conn, *vfuser.Message) bool {
	return func(c *vfuser.Conn, m *vfuser.Message) bool {
		if m.Command != cmd {
			return false
		}
		_ = c.Send(m.Reply(), payload, fds)
		return true
	}
}
