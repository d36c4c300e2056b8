package vfiouser

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// socketName is the socket in the directory that SPDK calls the address of a
// listener.
const socketName = "cntrl"

// minBAR is the size of the registers and one pair of doorbells.
const minBAR = 0x1008

// Open connects to the server at a unix socket, or in a directory that has one
// named cntrl, and asks what its device is. ctx bounds the opening alone. The
// caller closes the Device.
func Open(ctx context.Context, path string, cfg Config) (*Device, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, socketName)
	}
	c, err := dial(ctx, path, cfg)
	if err != nil {
		return nil, err
	}
	d := &Device{client: c, dma: map[uint64]pcie.Memory{}}
	c.serve = d.serve
	c.start()
	if err := d.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("vfiouser: opening %s: %w", path, err), d.Close())
	}
	return d, nil
}

// setUp makes the device known.
func (d *Device) setUp(ctx context.Context) error {
	if err := d.negotiate(ctx); err != nil {
		return err
	}
	di, err := parse(ctx, d.client, vfuser.CmdDeviceInfo, vfuser.DeviceInfo{ArgSize: vfuser.DeviceInfoSize}.Append(nil), nil, vfuser.ParseDeviceInfo)
	if err != nil {
		return err
	}
	if di.Flags&vfuser.DevicePCI == 0 || di.Regions <= vfuser.RegionConfig {
		return fmt.Errorf("%w: flags %#x, %d regions", ErrDevice, di.Flags, di.Regions)
	}
	d.canReset = di.Flags&vfuser.DeviceReset != 0
	for i := range d.regions {
		if i == vfuser.RegionROM {
			continue
		}
		if err := d.askRegion(ctx, uint32(i)); err != nil {
			return err
		}
	}
	if err := d.readInfo(ctx); err != nil {
		return err
	}
	if n := d.regions[vfuser.RegionBAR0].size; n < minBAR {
		return fmt.Errorf("%w: BAR 0 of %d bytes", ErrDevice, n)
	}
	if di.IRQs <= vfuser.IRQMSIX {
		return nil
	}
	ask := vfuser.IRQInfo{ArgSize: vfuser.IRQInfoSize, Index: vfuser.IRQMSIX}
	irq, err := parse(ctx, d.client, vfuser.CmdIRQInfo, ask.Append(nil), nil, vfuser.ParseIRQInfo)
	if err != nil {
		return err
	}
	if irq.Flags&vfuser.IRQEventFD != 0 {
		d.vectors = int(min(irq.Count, maxVectors))
	}
	return nil
}

// maxVectors is the most that MSI-X has (PCI Local Bus Specification 6.8.2).
const maxVectors = 2048

// negotiate agrees on the version: ours, or an older minor one.
func (d *Device) negotiate(ctx context.Context) error {
	ours := vfuser.Version{Major: vfuser.Major, Minor: vfuser.Minor, Capabilities: vfuser.Capabilities{
		MaxFDs: vfuser.MaxFDs, MaxData: vfuser.DefaultMaxData,
	}}
	theirs, err := parse(ctx, d.client, vfuser.CmdVersion, ours.Append(nil), nil, vfuser.ParseVersion)
	if err != nil {
		return err
	}
	if theirs.Major != vfuser.Major || theirs.Minor > vfuser.Minor {
		return fmt.Errorf("%w: %d.%d, want %d.%d", ErrVersion, theirs.Major, theirs.Minor, vfuser.Major, vfuser.Minor)
	}
	d.limits = theirs.Capabilities.WithDefaults()
	return nil
}

// readInfo reads what the device is from its configuration space.
func (d *Device) readInfo(ctx context.Context) error {
	var b [64]byte
	if err := d.readRegion(ctx, vfuser.RegionConfig, 0, b[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	class := le.Uint32(b[8:])
	d.info = pcie.Info{
		Vendor: le.Uint16(b[0:]), Device: le.Uint16(b[2:]), SubsystemVendor: le.Uint16(b[0x2c:]), SubsystemDevice: le.Uint16(b[0x2e:]),
		Class: class >> 8, Revision: uint8(class), NUMANode: -1,
	}
	if d.info.Class != pcie.ClassNVMe {
		return fmt.Errorf("%w: class %#06x", ErrDevice, d.info.Class)
	}
	return nil
}
