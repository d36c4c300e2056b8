package vfio

import (
	"structs"
	"unsafe"
)

// The ioctls are _IO(';', base + n): no size and no direction in the number.
const (
	ioctlType   = ';' << 8
	vfioBase    = ioctlType + 100
	iommufdBase = ioctlType + 0x80

	getAPIVersion     = vfioBase + 0
	checkExtension    = vfioBase + 1
	setIOMMU          = vfioBase + 2
	groupGetStatus    = vfioBase + 3
	groupSetContainer = vfioBase + 4
	groupGetDeviceFD  = vfioBase + 6
	deviceGetInfo     = vfioBase + 7
	getRegionInfo     = vfioBase + 8
	getIRQInfo        = vfioBase + 9
	setIRQs           = vfioBase + 10
	deviceReset       = vfioBase + 11
	iommuGetInfo      = vfioBase + 12
	iommuMapDMA       = vfioBase + 13
	iommuUnmapDMA     = vfioBase + 14
	bindIOMMUFD       = vfioBase + 18
	attachIOMMUFD     = vfioBase + 19

	iommufdDestroy    = iommufdBase + 0
	iommufdIOASAlloc  = iommufdBase + 1
	iommufdIOVARanges = iommufdBase + 4
	iommufdIOASMap    = iommufdBase + 5
	iommufdIOASUnmap  = iommufdBase + 6
)

// Numbers of linux/vfio.h.
const (
	// APIVersion is the only version of the interface that there is.
	APIVersion = 0

	Type1IOMMU   = 1 // VFIO_TYPE1_IOMMU
	Type1v2IOMMU = 3 // VFIO_TYPE1v2_IOMMU
	NoIOMMU      = 8 // VFIO_NOIOMMU_IOMMU

	GroupViable       = 1 << 0 // VFIO_GROUP_FLAGS_VIABLE
	GroupContainerSet = 1 << 1 // VFIO_GROUP_FLAGS_CONTAINER_SET

	DeviceReset = 1 << 0 // VFIO_DEVICE_FLAGS_RESET
	DevicePCI   = 1 << 1 // VFIO_DEVICE_FLAGS_PCI

	RegionRead  = 1 << 0 // VFIO_REGION_INFO_FLAG_READ
	RegionWrite = 1 << 1 // VFIO_REGION_INFO_FLAG_WRITE
	RegionMmap  = 1 << 2 // VFIO_REGION_INFO_FLAG_MMAP
	RegionCaps  = 1 << 3 // VFIO_REGION_INFO_FLAG_CAPS

	IRQEventFD  = 1 << 0 // VFIO_IRQ_INFO_EVENTFD
	IRQNoResize = 1 << 3 // VFIO_IRQ_INFO_NORESIZE

	IRQDataNone      = 1 << 0 // VFIO_IRQ_SET_DATA_NONE
	IRQDataEventFD   = 1 << 2 // VFIO_IRQ_SET_DATA_EVENTFD
	IRQActionTrigger = 1 << 5 // VFIO_IRQ_SET_ACTION_TRIGGER

	PCIConfigRegion = 7 // VFIO_PCI_CONFIG_REGION_INDEX
	PCIMSIXIRQ      = 2 // VFIO_PCI_MSIX_IRQ_INDEX
	PCIReqIRQ       = 4 // VFIO_PCI_REQ_IRQ_INDEX

	DMARead  = 1 << 0 // VFIO_DMA_MAP_FLAG_READ
	DMAWrite = 1 << 1 // VFIO_DMA_MAP_FLAG_WRITE

	capSparseMmap = 1 // VFIO_REGION_INFO_CAP_SPARSE_MMAP
	capIOVARange  = 1 // VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE
	capDMAAvail   = 3 // VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL

	iommuInfoCaps = 1 << 1 // VFIO_IOMMU_INFO_CAPS
)

// Numbers of linux/iommufd.h.
const (
	ioasFixed     = 1 << 0 // IOMMU_IOAS_MAP_FIXED_IOVA
	ioasWriteable = 1 << 1 // IOMMU_IOAS_MAP_WRITEABLE
	ioasReadable  = 1 << 2 // IOMMU_IOAS_MAP_READABLE
)

type groupStatus struct {
	_            structs.HostLayout
	argsz, flags uint32
}

type deviceInfo struct {
	_                           structs.HostLayout
	argsz, flags, regions, irqs uint32
	capOffset, _                uint32
}

type regionInfo struct {
	_                              structs.HostLayout
	argsz, flags, index, capOffset uint32
	size, offset                   uint64
}

type irqInfo struct {
	_                          structs.HostLayout
	argsz, flags, index, count uint32
}

type irqSet struct {
	_                                 structs.HostLayout
	argsz, flags, index, start, count uint32
}

type iommuInfo struct {
	_            structs.HostLayout
	argsz, flags uint32
	pageSizes    uint64
	capOffset, _ uint32
}

type dmaMap struct {
	_                 structs.HostLayout
	argsz, flags      uint32
	vaddr, iova, size uint64
}

type dmaUnmap struct {
	_            structs.HostLayout
	argsz, flags uint32
	iova, size   uint64
}

type bind struct {
	_            structs.HostLayout
	argsz, flags uint32
	iommufd      int32
	devid        uint32
}

type attach struct {
	_                structs.HostLayout
	argsz, flags, pt uint32
}

type destroy struct {
	_        structs.HostLayout
	size, id uint32
}

type ioasAlloc struct {
	_               structs.HostLayout
	size, flags, id uint32
}

type ioasRanges struct {
	_                structs.HostLayout
	size, id, num, _ uint32
	allowed          uint64
	alignment        uint64
}

type ioasMap struct {
	_                  structs.HostLayout
	size, flags, id, _ uint32
	va, length, iova   uint64
}

type ioasUnmap struct {
	_            structs.HostLayout
	size, id     uint32
	iova, length uint64
}

var (
	_ [8]byte  = [unsafe.Sizeof(groupStatus{})]byte{}
	_ [24]byte = [unsafe.Sizeof(deviceInfo{})]byte{}
	_ [32]byte = [unsafe.Sizeof(regionInfo{})]byte{}
	_ [16]byte = [unsafe.Sizeof(irqInfo{})]byte{}
	_ [20]byte = [unsafe.Sizeof(irqSet{})]byte{}
	_ [24]byte = [unsafe.Sizeof(iommuInfo{})]byte{}
	_ [32]byte = [unsafe.Sizeof(dmaMap{})]byte{}
	_ [24]byte = [unsafe.Sizeof(dmaUnmap{})]byte{}
	_ [16]byte = [unsafe.Sizeof(bind{})]byte{}
	_ [12]byte = [unsafe.Sizeof(attach{})]byte{}
	_ [8]byte  = [unsafe.Sizeof(destroy{})]byte{}
	_ [12]byte = [unsafe.Sizeof(ioasAlloc{})]byte{}
	_ [32]byte = [unsafe.Sizeof(ioasRanges{})]byte{}
	_ [40]byte = [unsafe.Sizeof(ioasMap{})]byte{}
	_ [24]byte = [unsafe.Sizeof(ioasUnmap{})]byte{}

	_ [16]byte = [unsafe.Offsetof(deviceInfo{}.capOffset)]byte{}
	_ [12]byte = [unsafe.Offsetof(regionInfo{}.capOffset)]byte{}
	_ [16]byte = [unsafe.Offsetof(regionInfo{}.size)]byte{}
	_ [24]byte = [unsafe.Offsetof(regionInfo{}.offset)]byte{}
	_ [12]byte = [unsafe.Offsetof(irqInfo{}.count)]byte{}
	_ [16]byte = [unsafe.Offsetof(irqSet{}.count)]byte{}
	_ [8]byte  = [unsafe.Offsetof(iommuInfo{}.pageSizes)]byte{}
	_ [16]byte = [unsafe.Offsetof(iommuInfo{}.capOffset)]byte{}
	_ [8]byte  = [unsafe.Offsetof(dmaMap{}.vaddr)]byte{}
	_ [16]byte = [unsafe.Offsetof(dmaMap{}.iova)]byte{}
	_ [24]byte = [unsafe.Offsetof(dmaMap{}.size)]byte{}
	_ [8]byte  = [unsafe.Offsetof(dmaUnmap{}.iova)]byte{}
	_ [16]byte = [unsafe.Offsetof(dmaUnmap{}.size)]byte{}
	_ [8]byte  = [unsafe.Offsetof(bind{}.iommufd)]byte{}
	_ [12]byte = [unsafe.Offsetof(bind{}.devid)]byte{}
	_ [8]byte  = [unsafe.Offsetof(attach{}.pt)]byte{}
	_ [8]byte  = [unsafe.Offsetof(ioasAlloc{}.id)]byte{}
	_ [8]byte  = [unsafe.Offsetof(ioasRanges{}.num)]byte{}
	_ [16]byte = [unsafe.Offsetof(ioasRanges{}.allowed)]byte{}
	_ [24]byte = [unsafe.Offsetof(ioasRanges{}.alignment)]byte{}
	_ [8]byte  = [unsafe.Offsetof(ioasMap{}.id)]byte{}
	_ [16]byte = [unsafe.Offsetof(ioasMap{}.va)]byte{}
	_ [32]byte = [unsafe.Offsetof(ioasMap{}.iova)]byte{}
	_ [8]byte  = [unsafe.Offsetof(ioasUnmap{}.iova)]byte{}
	_ [16]byte = [unsafe.Offsetof(ioasUnmap{}.length)]byte{}
)
