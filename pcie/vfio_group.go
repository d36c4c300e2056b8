package pcie

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"

	"github.com/qpoll/qpoll/internal/sys/vfio"
)

const (
	containerPath = "dev/vfio/vfio"
	type1Module   = "vfio_iommu_type1"
)

// openFile opens a device file. The errors are those of OpenVFIO.
func (o *vfioOpener) openFile(path, module string) (int, error) {
	fd, err := o.kernel.Open(o.host.path(path))
	shown := "/" + path
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, fs.ErrPermission):
		return -1, &PermissionError{shown, unwrapPath(err)}
	case errors.Is(err, syscall.EBUSY):
		return -1, o.inUse(shown)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		return -1, errors.Join(&ModuleError{Module: module, For: shown}, err)
	}
	return -1, err
}

// inUse says who has a device file open.
func (o *vfioOpener) inUse(path string) error {
	uses, err := o.host.openIn(map[string]bool{path: true})
	if len(uses) == 0 {
		uses = []Use{{path, UseOpen, "that cannot be seen from here, or this one"}}
	}
	return errors.Join(&InUseError{o.f.Address, uses}, err)
}

// openGroup opens the function through its group.
func (o *vfioOpener) openGroup() (int, dmaSpace, error) {
	if o.f.IOMMUGroup < 0 {
		return -1, nil, ErrNoIOMMU
	}
	s, err := share(spaceKey{o.kernel, o.f.IOMMUGroup, false}, o.f.Address, o.newContainer)
	if err != nil {
		return -1, nil, err
	}
	fd, err := o.kernel.GroupDevice(s.group, o.f.Address)
	if err != nil {
		return -1, nil, errors.Join(err, s.release(o.f.Address))
	}
	if s.kind == vfio.NoIOMMU {
		return fd, &physicalSpace{s, o.f.Address}, nil
	}
	i, n := o.f.turn()
	return fd, &ioSpace{s, o.f.Address, partOf(s.allowed, i, n)}, nil
}

// newContainer makes a container that has the function's group.
func (o *vfioOpener) newContainer() (_ *sharedSpace, err error) {
	s := &sharedSpace{kernel: o.kernel, container: -1, group: -1, kind: vfio.Type1v2IOMMU}
	if s.container, err = o.openFile(containerPath, "vfio"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeFiles())
		}
	}()
	version, err := o.kernel.Version(s.container)
	if err != nil {
		return nil, err
	}
	if version != vfio.APIVersion {
		return nil, fmt.Errorf("version %d of vfio is not known, want %d", version, vfio.APIVersion)
	}
	if s.group, err = o.openFile(groupPath(&o.f)[1:], vfioDriver); err != nil {
		return nil, err
	}
	if err = o.joinGroup(s); err != nil {
		return nil, err
	}
	return s, o.useIOMMU(s)
}

// joinGroup puts the group into the container, if it can be.
func (o *vfioOpener) joinGroup(s *sharedSpace) error {
	flags, err := o.kernel.GroupStatus(s.group)
	switch {
	case err != nil:
		return err
	case flags&vfio.GroupViable == 0:
		return &GroupError{o.f.Address, o.f.IOMMUGroup, o.f.hindering()}
	case flags&vfio.GroupContainerSet != 0:
		return o.inUse(groupPath(&o.f))
	}
	return o.kernel.SetContainer(s.group, s.container)
}

// useIOMMU chooses the kind of IOMMU and asks what it takes.
func (o *vfioOpener) useIOMMU(s *sharedSpace) error {
	if o.f.NoIOMMU {
		s.kind = vfio.NoIOMMU
	}
	ok, err := o.kernel.CheckExtension(s.container, s.kind)
	switch {
	case err != nil:
		return err
	case !ok && s.kind == vfio.NoIOMMU:
		return ErrNoIOMMU
	case !ok:
		return &ModuleError{Module: type1Module, For: o.f.Address}
	}
	if err := o.kernel.SetIOMMU(s.container, s.kind); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			// The interrupts of the function cannot be kept apart.
			return fmt.Errorf("the IOMMU cannot remap interrupts; allow_unsafe_interrupts=1 of module %s accepts that: %w", type1Module, err)
		}
		return err
	}
	if s.kind == vfio.NoIOMMU {
		return nil
	}
	info, err := o.kernel.IOMMUInfo(s.container)
	if err != nil {
		return err
	}
	s.limit = int(info.Avail)
	if s.allowed = toRanges(info.Ranges); info.Ranges == nil {
		// Kernels before 5.4 do not tell. What is below 4 GiB may be taken by
		// interrupts, and 39 bits are the least that an IOMMU has.
		s.allowed = []Range{{1 << 32, 1<<39 - 1}}
	}
	return nil
}

// physicalSpace is that of a device without an IOMMU: memory where it is.
type physicalSpace struct {
	*sharedSpace
	address string
}

func (s *physicalSpace) ranges() []Range  { return []Range{{0, math.MaxUint64}} }
func (s *physicalSpace) maxMappings() int { return 0 }
func (s *physicalSpace) close() error     { return s.release(s.address) }

func (s *physicalSpace) mapDMA(b []byte, _ uint64) error {
	if err := s.kernel.Mlock(b); err != nil {
		return err
	}
	if err := hugePages(b); err != nil {
		return errors.Join(err, s.kernel.Munlock(b))
	}
	return nil
}

func (s *physicalSpace) unmapDMA(b []byte, _ uint64) error { return s.kernel.Munlock(b) }
