package pcie

import (
	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/sys/vfio"
)

// vfioKernel is what of the kernel a vfioDevice needs; see package vfio for the
// calls. Tests put one of their own in its place.
type vfioKernel interface {
	Open(path string) (fd int, err error)
	Close(fd int) error
	Pread(fd int, b []byte, off int64) (int, error)
	Pwrite(fd int, b []byte, off int64) (int, error)
	Mmap(fd int, off int64, n int) ([]byte, error)
	Munmap(b []byte) error
	Mlock(b []byte) error
	Munlock(b []byte) error

	Version(container int) (int, error)
	CheckExtension(container, extension int) (bool, error)
	SetIOMMU(container, kind int) error
	GroupStatus(group int) (uint32, error)
	SetContainer(group, container int) error
	GroupDevice(group int, address string) (fd int, err error)
	IOMMUInfo(container int) (vfio.IOMMU, error)
	MapDMA(container int, b []byte, iova uint64) error
	UnmapDMA(container int, iova, n uint64) (uint64, error)

	BindIOMMUFD(device, iommufd int) error
	AllocIOAS(iommufd int) (uint32, error)
	AttachIOAS(device int, ioas uint32) error
	IOASRanges(iommufd int, ioas uint32) ([]vfio.Range, error)
	MapIOAS(iommufd int, ioas uint32, b []byte, iova uint64) error
	UnmapIOAS(iommufd int, ioas uint32, iova, n uint64) (uint64, error)

	DeviceInfo(device int) (vfio.Device, error)
	RegionInfo(device int, index uint32) (vfio.Region, error)
	IRQInfo(device int, index uint32) (vfio.IRQ, error)
	SetIRQs(device int, index, start uint32, eventfds []int32) error
	DisableIRQs(device int, index uint32) error
	Reset(device int) error
}

// linuxVFIO is the kernel that the program runs on.
type linuxVFIO struct{}

func (linuxVFIO) Open(path string) (int, error)                   { return sys.OpenDevice(path) }
func (linuxVFIO) Close(fd int) error                              { return sys.Close(fd) }
func (linuxVFIO) Pread(fd int, b []byte, off int64) (int, error)  { return sys.Pread(fd, b, off) }
func (linuxVFIO) Pwrite(fd int, b []byte, off int64) (int, error) { return sys.Pwrite(fd, b, off) }
func (linuxVFIO) Munmap(b []byte) error                           { return sys.Munmap(b) }
func (linuxVFIO) Mlock(b []byte) error                            { return sys.Mlock(b) }
func (linuxVFIO) Munlock(b []byte) error                          { return sys.Munlock(b) }

func (linuxVFIO) Mmap(fd int, off int64, n int) ([]byte, error) {
	return sys.Mmap(fd, off, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (linuxVFIO) Version(c int) (int, error)               { return vfio.Version(c) }
func (linuxVFIO) CheckExtension(c, ext int) (bool, error)  { return vfio.CheckExtension(c, ext) }
func (linuxVFIO) SetIOMMU(c, kind int) error               { return vfio.SetIOMMU(c, kind) }
func (linuxVFIO) GroupStatus(g int) (uint32, error)        { return vfio.GroupStatus(g) }
func (linuxVFIO) SetContainer(g, c int) error              { return vfio.SetContainer(g, c) }
func (linuxVFIO) GroupDevice(g int, a string) (int, error) { return vfio.GroupDevice(g, a) }
func (linuxVFIO) IOMMUInfo(c int) (vfio.IOMMU, error)      { return vfio.IOMMUInfo(c) }

func (linuxVFIO) MapDMA(c int, b []byte, iova uint64) error        { return vfio.MapDMA(c, b, iova) }
func (linuxVFIO) UnmapDMA(c int, iova, n uint64) (uint64, error)   { return vfio.UnmapDMA(c, iova, n) }
func (linuxVFIO) BindIOMMUFD(d, iommufd int) error                 { return vfio.BindIOMMUFD(d, iommufd) }
func (linuxVFIO) AllocIOAS(i int) (uint32, error)                  { return vfio.AllocIOAS(i) }
func (linuxVFIO) AttachIOAS(d int, ioas uint32) error              { return vfio.AttachIOAS(d, ioas) }
func (linuxVFIO) IOASRanges(i int, o uint32) ([]vfio.Range, error) { return vfio.IOASRanges(i, o) }

func (linuxVFIO) MapIOAS(i int, ioas uint32, b []byte, iova uint64) error {
	return vfio.MapIOAS(i, ioas, b, iova)
}

func (linuxVFIO) UnmapIOAS(i int, ioas uint32, iova, n uint64) (uint64, error) {
	return vfio.UnmapIOAS(i, ioas, iova, n)
}

func (linuxVFIO) DeviceInfo(d int) (vfio.Device, error)           { return vfio.DeviceInfo(d) }
func (linuxVFIO) RegionInfo(d int, i uint32) (vfio.Region, error) { return vfio.RegionInfo(d, i) }
func (linuxVFIO) IRQInfo(d int, i uint32) (vfio.IRQ, error)       { return vfio.IRQInfo(d, i) }
func (linuxVFIO) DisableIRQs(d int, i uint32) error               { return vfio.DisableIRQs(d, i) }
func (linuxVFIO) Reset(d int) error                               { return vfio.Reset(d) }

func (linuxVFIO) SetIRQs(d int, index, start uint32, fds []int32) error {
	return vfio.SetIRQs(d, index, start, fds)
}
