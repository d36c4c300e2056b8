package vfio

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BindIOMMUFD gives a device that was opened as a character device to an
// iommufd. Nothing else works on it before.
func BindIOMMUFD(device, iommufd int) error {
	b := bind{argsz: uint32(unsafe.Sizeof(bind{})), iommufd: int32(iommufd)}
	_, err := callWith(device, "VFIO_DEVICE_BIND_IOMMUFD", bindIOMMUFD, unsafe.Pointer(&b))
	return err
}

// AttachIOAS has a device's DMA go through an address space of its iommufd.
func AttachIOAS(device int, ioas uint32) error {
	a := attach{argsz: uint32(unsafe.Sizeof(attach{})), pt: ioas}
	_, err := callWith(device, "VFIO_DEVICE_ATTACH_IOMMUFD_PT", attachIOMMUFD, unsafe.Pointer(&a))
	return err
}

// AllocIOAS makes an address space in an iommufd.
func AllocIOAS(iommufd int) (ioas uint32, err error) {
	a := ioasAlloc{size: uint32(unsafe.Sizeof(ioasAlloc{}))}
	_, err = callWith(iommufd, "IOMMU_IOAS_ALLOC", iommufdIOASAlloc, unsafe.Pointer(&a))
	return a.id, err
}

// Destroy takes an object of an iommufd away, an address space with its
// mappings. No device may be attached.
func Destroy(iommufd int, id uint32) error {
	d := destroy{size: uint32(unsafe.Sizeof(destroy{})), id: id}
	_, err := callWith(iommufd, "IOMMU_DESTROY", iommufdDestroy, unsafe.Pointer(&d))
	return err
}

// Both structures of a range are alike: first, last.
var _ [16]byte = [unsafe.Sizeof(Range{})]byte{}

// IOASRanges asks for the addresses that an address space takes, given the
// devices that are attached.
func IOASRanges(iommufd int, ioas uint32) ([]Range, error) {
	const name = "IOMMU_IOAS_IOVA_RANGES"
	num := uint32(16)
	for {
		ranges := make([]Range, num)
		r := ioasRanges{
			size: uint32(unsafe.Sizeof(ioasRanges{})), id: ioas, num: num,
			allowed: uint64(uintptr(unsafe.Pointer(&ranges[0]))),
		}
		var pin runtime.Pinner
		pin.Pin(&ranges[0])
		_, err := callWith(iommufd, name, iommufdIOVARanges, unsafe.Pointer(&r))
		pin.Unpin()
		switch {
		case errors.Is(err, unix.EMSGSIZE) && r.num > num && r.num <= maxInfo/16:
			num = r.num
		case err != nil:
			return nil, err
		case r.num > num:
			return nil, os.NewSyscallError("ioctl "+name, unix.EMSGSIZE)
		default:
			return cleanRanges(ranges[:r.num])
		}
	}
}

// MapIOAS lets the devices of an address space read and write b at iova.
func MapIOAS(iommufd int, ioas uint32, b []byte, iova uint64) error {
	m := ioasMap{
		size: uint32(unsafe.Sizeof(ioasMap{})), flags: ioasFixed | ioasWriteable | ioasReadable, id: ioas,
		va: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: uint64(len(b)), iova: iova,
	}
	_, err := callWith(iommufd, "IOMMU_IOAS_MAP", iommufdIOASMap, unsafe.Pointer(&m))
	runtime.KeepAlive(b)
	return err
}

// UnmapIOAS undoes mappings that lie within n bytes at iova, and returns how
// many bytes those had.
func UnmapIOAS(iommufd int, ioas uint32, iova, n uint64) (uint64, error) {
	u := ioasUnmap{size: uint32(unsafe.Sizeof(ioasUnmap{})), id: ioas, iova: iova, length: n}
	_, err := callWith(iommufd, "IOMMU_IOAS_UNMAP", iommufdIOASUnmap, unsafe.Pointer(&u))
	return u.length, err
}
