package vfiouser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"syscall"

	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// Addresses that MapDMA takes: 48 bits are what every device has, and addresses
// near 0 are taken for none by some.
const (
	firstIOVA = 1 << 20
	lastIOVA  = 1<<48 - 1
)

// IOVARanges implements pcie.Device.
func (d *Device) IOVARanges() []pcie.Range { return []pcie.Range{{First: firstIOVA, Last: lastIOVA}} }

// MaxMappings implements pcie.Device.
func (d *Device) MaxMappings() int { return int(d.limits.MaxDMAMaps) }

// MapDMA implements pcie.Device. Memory without a file is not shared: the server
// has to ask for each piece of it by a message.
func (d *Device) MapDMA(m pcie.Memory, iova uint64) error {
	n := uint64(len(m.Bytes))
	if n == 0 || iova < firstIOVA || iova > lastIOVA || n-1 > lastIOVA-iova {
		return fmt.Errorf("%w: %d bytes at %#x", pcie.ErrIOVA, n, iova)
	}
	if err := d.remember(m, iova); err != nil {
		return err
	}
	msg := vfuser.DMAMap{Flags: vfuser.DMARead | vfuser.DMAWrite, Address: iova, Size: n}
	var fds []int
	if m.FD >= 0 {
		fds = []int{m.FD}
		msg.Offset = uint64(m.Offset)
	}
	r, err := d.client.request(context.Background(), vfuser.CmdDMAMap, msg.Append(nil), fds)
	r.closeFDs()
	if err != nil {
		d.forget(iova)
	}
	return err
}

// remember notes a mapping, which must not overlap with others.
func (d *Device) remember(m pcie.Memory, iova uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%w: %s", pcie.ErrGone, d.Name())
	}
	end := iova + uint64(len(m.Bytes))
	for at, other := range d.dma {
		if at < end && iova < at+uint64(len(other.Bytes)) {
			return fmt.Errorf("%w: %#x is mapped already", pcie.ErrIOVA, iova)
		}
	}
	d.dma[iova] = m
	return nil
}

func (d *Device) forget(iova uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dma, iova)
}

// UnmapDMA implements pcie.Device. Of a server that is gone it is taken that it
// does not write to the memory any more, which nobody can enforce.
func (d *Device) UnmapDMA(iova, n uint64) error {
	d.mu.Lock()
	m, ok := d.dma[iova]
	d.mu.Unlock()
	if !ok || uint64(len(m.Bytes)) != n {
		return fmt.Errorf("%w: no mapping of %d bytes at %#x", pcie.ErrIOVA, n, iova)
	}
	msg := vfuser.DMAUnmap{Address: iova, Size: n}
	_, err := parse(context.Background(), d.client, vfuser.CmdDMAUnmap, msg.Append(nil), nil, func(p []byte) (struct{}, error) {
		got, err := vfuser.ParseDMAUnmap(p)
		if err == nil && (got.Address != iova || got.Size != n) {
			err = fmt.Errorf("%d bytes at %#x unmapped, want %d at %#x", got.Size, got.Address, n, iova)
		}
		return struct{}{}, err
	})
	if err != nil && !errors.Is(err, pcie.ErrGone) {
		return err
	}
	d.forget(iova)
	return nil
}

// serve carries out commands of the server's: access to memory that is mapped.
func (d *Device) serve(m *vfuser.Message) ([]byte, error) {
	switch m.Command {
	case vfuser.CmdDMARead, vfuser.CmdDMAWrite:
	default:
		return nil, syscall.ENOTSUP
	}
	write := m.Command == vfuser.CmdDMAWrite
	a, err := vfuser.ParseDMAAccess(m.Payload, write)
	if err != nil {
		return nil, errors.Join(syscall.EINVAL, err)
	}
	if a.Count > vfuser.DefaultMaxData {
		return nil, syscall.E2BIG
	}
	// The lock keeps the memory from being unmapped while it is copied.
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, mem := range maps.All(d.dma) {
		n := uint64(len(mem.Bytes))
		if a.Address < at || a.Address-at > n || a.Count > n-(a.Address-at) {
			continue
		}
		part := mem.Bytes[a.Address-at:][:a.Count]
		if write {
			copy(part, a.Data)
			return vfuser.DMAAccess{Address: a.Address, Count: a.Count}.Append(nil), nil
		}
		return vfuser.DMAAccess{Address: a.Address, Count: a.Count, Data: part}.Append(nil), nil
	}
	return nil, syscall.EFAULT
}

// errnoOf is the number within an error, for the server.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}
