package pcietest

import (
	"encoding/binary"
	"syscall"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// regionSize returns the size of a region in bytes, 0 for what is not there.
func (c *Controller) regionSize(index uint32) uint64 {
	switch {
	case index <= vfuser.RegionBAR5:
		return c.config.barSize(int(index))
	case index == vfuser.RegionConfig:
		return pciSpace
	}
	return 0
}

// regionInfo describes a region. Doorbells and the controller memory buffer can
// be mapped: one area each, at its offset in the file.
func (s *session) regionInfo(m *vfuser.Message) (reply, error) {
	c := s.c
	q, err := vfuser.ParseRegionInfo(m.Payload)
	if err != nil || q.ArgSize < vfuser.RegionInfoSize || q.Index >= vfuser.Regions {
		return reply{}, syscall.EINVAL
	}
	r := vfuser.RegionInfo{Index: q.Index, Size: c.regionSize(q.Index)}
	fd := -1
	if r.Size > 0 {
		r.Flags = vfuser.RegionRead | vfuser.RegionWrite
	}
	switch {
	case q.Index == vfuser.RegionBAR0:
		fd, r.Areas = c.doorbells.fd, []vfuser.Area{{Offset: nvme.RegDoorbells, Size: uint64(len(c.doorbells.b))}}
	case q.Index == cmbBAR && c.cmb != nil:
		fd, r.Areas = c.cmb.fd, []vfuser.Area{{Size: uint64(len(c.cmb.b))}}
	}
	r.ArgSize = r.FullSize()
	if fd < 0 {
		return reply{payload: r.Append(nil)}, nil
	}
	r.Flags |= vfuser.RegionMmap
	if q.ArgSize < r.ArgSize || s.fds < 1 {
		r.Areas = nil // there is no room for them
		return reply{payload: r.Append(nil)}, nil
	}
	return reply{payload: r.Append(nil), fds: []int{fd}}, nil
}

// regionIO lists the eventfds for writes to a region: there are none.
func (s *session) regionIO(m *vfuser.Message) (reply, error) {
	if len(m.Payload) < 16 {
		return reply{}, syscall.EINVAL
	}
	le := binary.LittleEndian
	argsz, index := le.Uint32(m.Payload), le.Uint32(m.Payload[8:])
	if argsz < 16 || le.Uint32(m.Payload[4:]) != 0 || le.Uint32(m.Payload[12:]) != 0 || s.c.regionSize(index) == 0 {
		return reply{}, syscall.EINVAL
	}
	b := make([]byte, 16)
	le.PutUint32(b, 16)
	le.PutUint32(b[8:], index)
	return reply{payload: b}, nil
}

// access checks an access to a region.
func (s *session) access(m *vfuser.Message, data bool) (vfuser.RegionAccess, error) {
	a, err := vfuser.ParseRegionAccess(m.Payload, data)
	if err != nil {
		return a, syscall.EINVAL
	}
	size := s.c.regionSize(a.Region)
	if a.Count == 0 || a.Count > vfuser.DefaultMaxData || a.Offset > size || uint64(a.Count) > size-a.Offset {
		return a, syscall.EINVAL
	}
	return a, nil
}

// memoryRegion returns what a region is backed by: nil for registers and the
// configuration space, and for the rest of a BAR that is larger.
func (c *Controller) memoryRegion(a *vfuser.RegionAccess) []byte {
	var b []byte
	switch {
	case a.Region == cmbBAR && c.cmb != nil:
		b = c.cmb.b
	case a.Region == msixBAR:
		b = c.config.table
	}
	if a.Offset+uint64(a.Count) > uint64(len(b)) {
		return nil
	}
	return b[a.Offset : a.Offset+uint64(a.Count)]
}

// register checks an access to BAR 0: 4 or 8 bytes, aligned.
func (c *Controller) registerAccess(a *vfuser.RegionAccess) bool {
	return a.Region == vfuser.RegionBAR0 && (a.Count == 4 || a.Count == 8) && a.Offset%uint64(a.Count) == 0 &&
		a.Offset+uint64(a.Count) <= nvme.RegDoorbells+uint64(len(c.doorbells.b))
}

func (s *session) regionRead(m *vfuser.Message) (reply, error) {
	c := s.c
	a, err := s.access(m, false)
	if err != nil {
		return reply{}, err
	}
	a.Data = make([]byte, a.Count)
	switch b := c.memoryRegion(&a); {
	case c.regs.vanished:
		for i := range a.Data {
			a.Data[i] = 0xff
		}
	case a.Region == vfuser.RegionConfig:
		c.config.read(a.Data, a.Offset)
	case b != nil:
		copy(a.Data, b)
	case c.registerAccess(&a):
		var v [8]byte
		n, err := uint64(0), error(nil)
		if a.Offset < nvme.RegDoorbells {
			n = c.readRegisters(uint32(a.Offset), int(a.Count))
		} else if n, err = c.readDoorbell(a.Offset-nvme.RegDoorbells, int(a.Count)); err != nil {
			return reply{}, syscall.EINVAL
		}
		binary.LittleEndian.PutUint64(v[:], n)
		copy(a.Data, v[:])
	default:
		return reply{}, syscall.EINVAL
	}
	return reply{payload: a.Append(nil)}, nil
}

func (s *session) regionWrite(m *vfuser.Message) (reply, error) {
	c := s.c
	a, err := s.access(m, true)
	if err != nil {
		return reply{}, err
	}
	switch b := c.memoryRegion(&a); {
	case c.regs.vanished:
	case a.Region == vfuser.RegionConfig:
		flr := c.config.write(a.Data, a.Offset)
		if flr {
			c.resetAll()
		}
		c.setMaster(c.config.command&commandMaster != 0)
	case b != nil:
		copy(b, a.Data)
	case c.registerAccess(&a):
		var v [8]byte
		copy(v[:], a.Data)
		n := binary.LittleEndian.Uint64(v[:])
		if a.Offset < nvme.RegDoorbells {
			c.touch(func() { c.writeRegisters(uint32(a.Offset), int(a.Count), n) })
			c.interrupts()
		} else if err := c.writeDoorbell(a.Offset-nvme.RegDoorbells, int(a.Count), n); err != nil {
			return reply{}, syscall.EINVAL
		}
	default:
		return reply{}, syscall.EINVAL
	}
	a.Data = nil
	return reply{payload: a.Append(nil)}, nil
}
