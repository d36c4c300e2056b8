package pcietest

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// serverFDs is how many descriptors may come with a message.
const serverFDs = 8

// session is a driver in another process.
type session struct {
	c    *Controller
	conn *vfuser.Conn
	fds  int // how many descriptors the driver takes with a message
}

// reply is what a message is answered with.
type reply struct {
	payload []byte
	fds     []int // stay the controller's
}

// negotiate takes the first message.
func (s *session) negotiate() error {
	m, err := s.conn.Receive()
	if err != nil {
		return err
	}
	defer m.CloseFDs()
	v, err := vfuser.ParseVersion(m.Payload)
	switch {
	case m.IsReply() || m.Command != vfuser.CmdVersion:
		err = fmt.Errorf("pcietest: the first message is %v", m.Command)
	case err == nil && v.Major != vfuser.Major:
		err = fmt.Errorf("pcietest: vfio-user version %d.%d", v.Major, v.Minor)
	}
	if err != nil {
		return errors.Join(err, s.conn.Send(m.ErrorReply(syscall.EINVAL), nil, nil))
	}
	s.fds = int(v.Capabilities.WithDefaults().MaxFDs)
	v = vfuser.Version{
		Major: vfuser.Major, Minor: min(v.Minor, vfuser.Minor),
		Capabilities: vfuser.Capabilities{MaxFDs: serverFDs, MaxData: vfuser.DefaultMaxData, MaxDMAMaps: maxMappings - 1, PageSizes: hostPage},
	}
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return s.conn.Send(m.Reply(), v.Append(nil), nil)
}

// answer executes a command and answers it.
func (s *session) answer(m *vfuser.Message) error {
	defer m.CloseFDs()
	if m.IsReply() {
		return fmt.Errorf("pcietest: a reply to nothing: %v", m.Command)
	}
	r, err := s.execute(m)
	switch {
	case !m.WantsReply():
		return nil
	case err != nil:
		return s.conn.Send(m.ErrorReply(errno(err)), nil, nil)
	}
	return s.conn.Send(m.Reply(), r.payload, r.fds)
}

// errno is the number that a refusal is reported with.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EINVAL
}

func (s *session) execute(m *vfuser.Message) (reply, error) {
	c := s.c
	c.lock()
	defer c.unlock()
	if c.gone.Load() {
		return reply{}, syscall.ENODEV
	}
	switch m.Command {
	case vfuser.CmdDeviceInfo:
		return s.deviceInfo(m)
	case vfuser.CmdRegionInfo:
		return s.regionInfo(m)
	case vfuser.CmdRegionIOFDs:
		return s.regionIO(m)
	case vfuser.CmdIRQInfo:
		return s.irqInfo(m)
	case vfuser.CmdSetIRQs:
		return reply{}, s.setIRQs(m)
	case vfuser.CmdRegionRead:
		return s.regionRead(m)
	case vfuser.CmdRegionWrite:
		return s.regionWrite(m)
	case vfuser.CmdDMAMap:
		return reply{}, s.mapDMA(m)
	case vfuser.CmdDMAUnmap:
		return s.unmapDMA(m)
	case vfuser.CmdDeviceReset:
		c.resetAll()
		return reply{}, nil
	case vfuser.CmdDirtyPages, vfuser.CmdRegionWriteMulti, vfuser.CmdDeviceFeature, vfuser.CmdMigDataRead, vfuser.CmdMigDataWrite:
		return reply{}, syscall.EOPNOTSUPP
	}
	return reply{}, syscall.EINVAL
}

func (s *session) deviceInfo(m *vfuser.Message) (reply, error) {
	d, err := vfuser.ParseDeviceInfo(m.Payload)
	if err != nil || d.ArgSize < vfuser.DeviceInfoSize {
		return reply{}, syscall.EINVAL
	}
	d = vfuser.DeviceInfo{
		ArgSize: vfuser.DeviceInfoSize, Flags: vfuser.DevicePCI | vfuser.DeviceReset,
		Regions: vfuser.Regions, IRQs: vfuser.IRQs,
	}
	return reply{payload: d.Append(nil)}, nil
}

// mapDMA maps the memory of a driver.
func (s *session) mapDMA(m *vfuser.Message) error {
	d, err := vfuser.ParseDMAMap(m.Payload)
	const known = vfuser.DMARead | vfuser.DMAWrite | vfuser.DMAMmap | vfuser.DMAFileIO
	if err != nil || d.Flags&^known != 0 || d.Flags&vfuser.DMAFileIO != 0 || len(m.FDs) > 1 ||
		len(m.FDs) == 0 && d.Flags&vfuser.DMAMmap != 0 {
		return syscall.EINVAL
	}
	n := mapping{iova: d.Address, size: d.Size, read: d.Flags&vfuser.DMARead != 0, write: d.Flags&vfuser.DMAWrite != 0}
	if s.c.dma.overlaps(n.iova, n.last()) {
		return syscall.EEXIST
	}
	if len(m.FDs) == 1 && (n.read || n.write) {
		if n.b, err = mapFile(m.FDs[0], d); err != nil {
			return err
		}
		n.release = func() error { return sys.Munmap(n.b) }
	}
	if err := s.c.mapDMA(n); err != nil {
		if n.release != nil {
			err = errors.Join(syscall.ENOSPC, err, n.release())
		}
		return errors.Join(syscall.ENOSPC, err)
	}
	return nil
}

// mapFile maps a part of a file, which must have it.
func mapFile(fd int, d vfuser.DMAMap) ([]byte, error) {
	size, err := sys.FileSize(fd)
	if err != nil {
		return nil, err
	}
	if d.Size > uint64(size) || d.Offset > uint64(size)-d.Size {
		return nil, syscall.EINVAL
	}
	prot := 0
	if d.Flags&vfuser.DMARead != 0 {
		prot |= syscall.PROT_READ
	}
	if d.Flags&vfuser.DMAWrite != 0 {
		prot |= syscall.PROT_READ | syscall.PROT_WRITE
	}
	return sys.Mmap(fd, int64(d.Offset), int(d.Size), prot, syscall.MAP_SHARED)
}

func (s *session) unmapDMA(m *vfuser.Message) (reply, error) {
	d, err := vfuser.ParseDMAUnmap(m.Payload)
	switch {
	case err != nil:
		return reply{}, syscall.EINVAL
	case d.Flags&vfuser.UnmapDirtyBitmap != 0:
		return reply{}, syscall.EOPNOTSUPP
	case d.Flags&vfuser.UnmapAll != 0:
		s.c.forget()
		for len(s.c.dma.maps) > 0 {
			first := &s.c.dma.maps[0]
			if err := s.c.unmapDMA(first.iova, first.size); err != nil {
				return reply{}, err
			}
		}
	default:
		if err := s.c.unmapDMA(d.Address, d.Size); err != nil {
			return reply{}, errors.Join(syscall.ENOENT, err)
		}
	}
	return reply{payload: d.Append(nil)}, nil
}
