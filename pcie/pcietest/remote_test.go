package pcietest

import (
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// remote is a device over vfio-user, as far as the driver of these tests needs
// one.
type remote struct {
	pcie.Device // what is not there panics
	t           testing.TB
	conn        *vfuser.Conn
	id          uint16
	maps        map[int][]byte
}

// dial serves a controller on a socket and connects to it.
func dial(t testing.TB, c *Controller) *remote {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cntrl")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Serve(l) }()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	r := &remote{t: t, conn: connectTo(t, path), maps: map[int][]byte{}}
	v := vfuser.Version{Minor: 1, Capabilities: vfuser.Capabilities{MaxFDs: 8}}
	m := r.call(vfuser.CmdVersion, v.Append(nil))
	if v, err := vfuser.ParseVersion(m.Payload); err != nil || v.Major != 0 || v.Minor != 1 || v.Capabilities.MaxFDs < 1 {
		t.Fatalf("version %+v, %v", v, err)
	}
	return r
}

func connectTo(t testing.TB, path string) *vfuser.Conn {
	t.Helper()
	u, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn := vfuser.NewConn(u.(*net.UnixConn), vfuser.MaxFDs)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// try sends a command and waits for the reply.
func (r *remote) try(cmd vfuser.Command, payload []byte, fds ...int) (vfuser.Message, error) {
	r.t.Helper()
	r.id++
	if err := r.conn.Send(vfuser.Header{ID: r.id, Command: cmd}, payload, fds); err != nil {
		return vfuser.Message{}, err
	}
	m, err := r.conn.Receive()
	if err != nil {
		return m, err
	}
	if m.ID != r.id || m.Command != cmd || !m.IsReply() {
		r.t.Fatalf("%v, %d is answered with %+v", cmd, r.id, m.Header)
	}
	return m, m.Err()
}

func (r *remote) call(cmd vfuser.Command, payload []byte, fds ...int) vfuser.Message {
	r.t.Helper()
	m, err := r.try(cmd, payload, fds...)
	if err != nil {
		r.t.Fatalf("%v: %v", cmd, err)
	}
	return m
}

func (r *remote) region(index uint32) (vfuser.RegionInfo, []int) {
	r.t.Helper()
	m := r.call(vfuser.CmdRegionInfo, vfuser.RegionInfo{ArgSize: 256, Index: index}.Append(nil))
	i, err := vfuser.ParseRegionInfo(m.Payload)
	if err != nil || i.Index != index {
		r.t.Fatalf("region %d: %+v, %v", index, i, err)
	}
	return i, m.FDs
}

func (r *remote) read(region uint32, off uint64, n int) ([]byte, error) {
	m, err := r.try(vfuser.CmdRegionRead, vfuser.RegionAccess{Offset: off, Region: region, Count: uint32(n)}.Append(nil))
	if err != nil {
		return nil, err
	}
	a, err := vfuser.ParseRegionAccess(m.Payload, true)
	return a.Data, err
}

func (r *remote) write(region uint32, off uint64, b []byte) error {
	_, err := r.try(vfuser.CmdRegionWrite, vfuser.RegionAccess{Offset: off, Region: region, Count: uint32(len(b)), Data: b}.Append(nil))
	return err
}

func (r *remote) Read32(off uint32) (uint32, error) {
	b, err := r.read(0, uint64(off), 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *remote) Read64(off uint32) (uint64, error) {
	b, err := r.read(0, uint64(off), 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (r *remote) Write32(off uint32, v uint32) error {
	return r.write(0, uint64(off), binary.LittleEndian.AppendUint32(nil, v))
}

func (r *remote) Write64(off uint32, v uint64) error {
	return r.write(0, uint64(off), binary.LittleEndian.AppendUint64(nil, v))
}

func (r *remote) BARSize(bar int) uint64 {
	i, fds := r.region(uint32(bar))
	closeAll(fds)
	return i.Size
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = sys.Close(fd)
	}
}

// Map maps the one area that a BAR has.
func (r *remote) Map(bar int, off, n uint64) (mmio.Window, error) {
	i, fds := r.region(uint32(bar))
	defer closeAll(fds)
	if len(i.Areas) != 1 || len(fds) != 1 || i.Flags&vfuser.RegionMmap == 0 {
		r.t.Fatalf("BAR %d: %+v, %d descriptors", bar, i, len(fds))
	}
	a := i.Areas[0]
	if off < a.Offset || off+n > a.Offset+a.Size {
		return mmio.Window{}, ErrAccess
	}
	b, err := sys.Mmap(fds[0], int64(i.Offset+a.Offset), int(a.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mmio.Window{}, err
	}
	r.maps[bar] = b
	return mmio.NewWindow(b).Slice(off-a.Offset, n)
}

func (r *remote) Reset(context.Context) error {
	_, err := r.try(vfuser.CmdDeviceReset, nil)
	return err
}

func (r *remote) SetBusMaster(on bool) error {
	v := uint16(commandMemory | commandINTx)
	if on {
		v |= commandMaster
	}
	return r.write(vfuser.RegionConfig, pciCommand, binary.LittleEndian.AppendUint16(nil, v))
}

func (r *remote) MapDMA(m pcie.Memory, iova uint64) error {
	d := vfuser.DMAMap{Flags: vfuser.DMARead | vfuser.DMAWrite, Offset: uint64(m.Offset), Address: iova, Size: uint64(len(m.Bytes))}
	_, err := r.try(vfuser.CmdDMAMap, d.Append(nil), m.FD)
	return err
}

func (r *remote) UnmapDMA(iova, n uint64) error {
	_, err := r.try(vfuser.CmdDMAUnmap, vfuser.DMAUnmap{Address: iova, Size: n}.Append(nil))
	return err
}

func (r *remote) SetInterrupt(vector, eventfd int) error {
	s := vfuser.IRQSet{Flags: vfuser.IRQDataEventFD | vfuser.IRQTrigger, Index: vfuser.IRQMSIX, Start: uint32(vector), Count: 1}
	if eventfd < 0 {
		_, err := r.try(vfuser.CmdSetIRQs, s.Append(nil))
		return err
	}
	_, err := r.try(vfuser.CmdSetIRQs, s.Append(nil), eventfd)
	return err
}

func (r *remote) Close() error {
	for _, b := range r.maps {
		if err := sys.Munmap(b); err != nil {
			return err
		}
	}
	return r.conn.Close()
}

// newRemote is newDriver over vfio-user: the controller runs by itself.
func newRemote(t testing.TB, cfg Config) *driver {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := drive(t, c, dial(t, c))
	d.step = wait
	return d
}
