package pcie

import (
	"errors"
	"fmt"
	"syscall"
)

const iommufdPath = "dev/iommu"

// openCdev opens the function through its character device and an iommufd.
func (o *vfioOpener) openCdev() (fd int, space dmaSpace, err error) {
	if o.f.Cdev == "" {
		return -1, nil, errors.New("the kernel has no character device for it (CONFIG_VFIO_DEVICE_CDEV, Linux 6.6)")
	}
	fd, err = o.openFile("dev/vfio/devices/"+o.f.Cdev, vfioDriver)
	if err != nil {
		return -1, nil, err
	}
	// All functions of a group have to be in the same address space.
	key := spaceKey{o.kernel, o.f.IOMMUGroup, true}
	s, err := share(key, o.f.Address, o.newIOAS)
	if err != nil {
		return -1, nil, errors.Join(err, o.kernel.Close(fd))
	}
	part, err := o.attach(fd, s)
	if err != nil {
		// The device goes first: it holds on to the iommufd.
		return -1, nil, errors.Join(err, o.kernel.Close(fd), s.release(o.f.Address))
	}
	return fd, &ioSpace{s, o.f.Address, part}, nil
}

// newIOAS makes an iommufd with an empty address space.
func (o *vfioOpener) newIOAS() (*sharedSpace, error) {
	fd, err := o.openFile(iommufdPath, "iommufd")
	if err != nil {
		return nil, err
	}
	s := &sharedSpace{kernel: o.kernel, container: fd, group: -1}
	if s.ioas, err = o.kernel.AllocIOAS(fd); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// attach binds the device to the iommufd and its address space, and returns the
// device's part of that.
func (o *vfioOpener) attach(fd int, s *sharedSpace) ([]Range, error) {
	err := o.kernel.BindIOMMUFD(fd, s.container)
	switch {
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EPERM):
		// Another function of the group has a driver that does DMA.
		if h := o.f.hindering(); len(h) > 0 {
			return nil, errors.Join(&GroupError{o.f.Address, o.f.IOMMUGroup, h}, err)
		}
		return nil, errors.Join(o.inUse(groupPath(&o.f)), err)
	case err != nil:
		return nil, err
	}
	if err := o.kernel.AttachIOAS(fd, s.ioas); err != nil {
		return nil, fmt.Errorf("attaching it to an address space: %w", err)
	}
	ranges, err := o.kernel.IOASRanges(s.container, s.ioas)
	if err != nil {
		return nil, err
	}
	i, n := o.f.turn()
	return partOf(toRanges(ranges), i, n), nil
}
