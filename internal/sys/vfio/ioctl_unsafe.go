package vfio

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
)

// call makes an ioctl with a number as its argument.
func call(fd int, name string, request, arg uintptr) (int, error) {
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, arg)
		switch e {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return -1, os.NewSyscallError("ioctl "+name, e)
		}
	}
}

// callWith makes an ioctl with a structure as its argument.
func callWith(fd int, name string, request uintptr, arg unsafe.Pointer) (int, error) {
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		switch e {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return -1, os.NewSyscallError("ioctl "+name, e)
		}
	}
}

// Version returns the version of the interface that a container has.
func Version(container int) (int, error) {
	return call(container, "VFIO_GET_API_VERSION", getAPIVersion, 0)
}

// CheckExtension asks a container for an extension, such as [Type1v2IOMMU].
func CheckExtension(container, extension int) (bool, error) {
	n, err := call(container, "VFIO_CHECK_EXTENSION", checkExtension, uintptr(extension))
	return n > 0, err
}

// SetIOMMU chooses the kind of IOMMU of a container that has a group.
func SetIOMMU(container, kind int) error {
	_, err := call(container, "VFIO_SET_IOMMU", setIOMMU, uintptr(kind))
	return err
}

// GroupStatus returns the flags of a group, such as [GroupViable].
func GroupStatus(group int) (flags uint32, err error) {
	s := groupStatus{argsz: uint32(unsafe.Sizeof(groupStatus{}))}
	_, err = callWith(group, "VFIO_GROUP_GET_STATUS", groupGetStatus, unsafe.Pointer(&s))
	return s.flags, err
}

// SetContainer adds a group to a container.
func SetContainer(group, container int) error {
	c := int32(container)
	_, err := callWith(group, "VFIO_GROUP_SET_CONTAINER", groupSetContainer, unsafe.Pointer(&c))
	return err
}

// GroupDevice opens a device of a group by its address.
func GroupDevice(group int, address string) (fd int, err error) {
	name, err := unix.BytePtrFromString(address)
	if err != nil {
		return -1, err
	}
	fd, err = callWith(group, "VFIO_GROUP_GET_DEVICE_FD", groupGetDeviceFD, unsafe.Pointer(name))
	if err == nil {
		sys.Adopt(fd)
	}
	return fd, err
}

// Device is what VFIO_DEVICE_GET_INFO tells.
type Device struct{ Flags, Regions, IRQs uint32 }

// DeviceInfo asks for a device's flags and its numbers of regions and
// interrupt indexes.
func DeviceInfo(device int) (Device, error) {
	d := deviceInfo{argsz: uint32(unsafe.Sizeof(deviceInfo{}))}
	_, err := callWith(device, "VFIO_DEVICE_GET_INFO", deviceGetInfo, unsafe.Pointer(&d))
	return Device{d.flags, d.regions, d.irqs}, err
}

// RegionInfo asks for a region of a device.
func RegionInfo(device int, index uint32) (Region, error) {
	const name = "VFIO_DEVICE_GET_REGION_INFO"
	buf, err := sized(device, name, getRegionInfo, unsafe.Sizeof(regionInfo{}), func(b []byte) {
		(*regionInfo)(unsafe.Pointer(&b[0])).index = index
	})
	if err != nil {
		return Region{}, err
	}
	return decodeRegion(buf)
}

// maxInfo bounds what the kernel may want for an answer with capabilities.
const maxInfo = 1 << 16

// sized makes an ioctl whose answer may want more room than the structure has:
// the kernel then writes the size that it wants into argsz, its first field. What
// it returns is 8-byte aligned.
func sized(fd int, name string, request, size uintptr, fill func([]byte)) ([]byte, error) {
	for {
		words := make([]uint64, (size+7)/8)
		b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
		*(*uint32)(unsafe.Pointer(&b[0])) = uint32(size)
		fill(b)
		if _, err := callWith(fd, name, request, unsafe.Pointer(&b[0])); err != nil {
			return nil, err
		}
		want := uintptr(*(*uint32)(unsafe.Pointer(&b[0])))
		if want <= size {
			return b, nil
		}
		if want > maxInfo {
			return nil, os.NewSyscallError("ioctl "+name, unix.EMSGSIZE)
		}
		size = want
	}
}

// IRQ is what VFIO_DEVICE_GET_IRQ_INFO tells: how many interrupts an index has.
type IRQ struct{ Flags, Count uint32 }

// IRQInfo asks for an interrupt index of a device, such as [PCIMSIXIRQ].
func IRQInfo(device int, index uint32) (IRQ, error) {
	i := irqInfo{argsz: uint32(unsafe.Sizeof(irqInfo{})), index: index}
	_, err := callWith(device, "VFIO_DEVICE_GET_IRQ_INFO", getIRQInfo, unsafe.Pointer(&i))
	return IRQ{i.flags, i.count}, err
}

// SetIRQs has interrupts of an index signal eventfds, from number start on; -1
// is none.
func SetIRQs(device int, index, start uint32, eventfds []int32) error {
	head := unsafe.Sizeof(irqSet{})
	size := head + uintptr(len(eventfds))*4
	words := make([]uint32, size/4)
	s := (*irqSet)(unsafe.Pointer(&words[0]))
	s.argsz, s.flags, s.index, s.start, s.count = uint32(size), IRQDataEventFD|IRQActionTrigger, index, start, uint32(len(eventfds))
	for i, fd := range eventfds {
		words[int(head/4)+i] = uint32(fd)
	}
	_, err := callWith(device, "VFIO_DEVICE_SET_IRQS", setIRQs, unsafe.Pointer(s))
	return err
}

// DisableIRQs turns an interrupt index off.
func DisableIRQs(device int, index uint32) error {
	s := irqSet{argsz: uint32(unsafe.Sizeof(irqSet{})), flags: IRQDataNone | IRQActionTrigger, index: index}
	_, err := callWith(device, "VFIO_DEVICE_SET_IRQS", setIRQs, unsafe.Pointer(&s))
	return err
}

// Reset resets a device.
func Reset(device int) error {
	_, err := call(device, "VFIO_DEVICE_RESET", deviceReset, 0)
	return err
}

// IOMMUInfo asks what a container's IOMMU takes.
func IOMMUInfo(container int) (IOMMU, error) {
	buf, err := sized(container, "VFIO_IOMMU_GET_INFO", iommuGetInfo, unsafe.Sizeof(iommuInfo{}), func([]byte) {})
	if err != nil {
		return IOMMU{}, err
	}
	return decodeIOMMU(buf)
}

// MapDMA lets the devices of a container read and write b, a mapping, at iova.
func MapDMA(container int, b []byte, iova uint64) error {
	m := dmaMap{
		argsz: uint32(unsafe.Sizeof(dmaMap{})), flags: DMARead | DMAWrite,
		vaddr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), iova: iova, size: uint64(len(b)),
	}
	_, err := callWith(container, "VFIO_IOMMU_MAP_DMA", iommuMapDMA, unsafe.Pointer(&m))
	runtime.KeepAlive(b)
	return err
}

// UnmapDMA undoes mappings that lie within n bytes at iova, and returns how many
// bytes those had.
func UnmapDMA(container int, iova, n uint64) (uint64, error) {
	u := dmaUnmap{argsz: uint32(unsafe.Sizeof(dmaUnmap{})), iova: iova, size: n}
	_, err := callWith(container, "VFIO_IOMMU_UNMAP_DMA", iommuUnmapDMA, unsafe.Pointer(&u))
	return u.size, err
}
