package vfuser

import "encoding/binary"

// Flags of DMAMap (VFIO_USER_F_DMA_REGION_*).
const (
	DMARead   uint32 = 1 << 0 // the device may read
	DMAWrite  uint32 = 1 << 1 // the device may write
	DMAMmap   uint32 = 1 << 2 // by mapping the descriptor; assumed if there is one
	DMAFileIO uint32 = 1 << 3 // by reading and writing the descriptor
)

// DMAMapSize is the size of DMAMap in bytes.
const DMAMapSize = 32

// DMAMap lets the device access memory of the driver (struct
// vfio_user_dma_map). The memory is that of the descriptor that goes with the
// message.
type DMAMap struct {
	Flags   uint32
	Offset  uint64 // in the descriptor
	Address uint64 // IOVA
	Size    uint64
}

// Append appends the payload to b.
func (d DMAMap) Append(b []byte) []byte {
	b = append32(b, DMAMapSize, d.Flags)
	return append64(b, d.Offset, d.Address, d.Size)
}

// ParseDMAMap reads the payload. The range is not empty and does not wrap.
func ParseDMAMap(b []byte) (DMAMap, error) {
	const what = "DMA map"
	if len(b) < DMAMapSize {
		return DMAMap{}, short(what, len(b), DMAMapSize)
	}
	le := binary.LittleEndian
	d := DMAMap{Flags: le.Uint32(b[4:]), Offset: le.Uint64(b[8:]), Address: le.Uint64(b[16:]), Size: le.Uint64(b[24:])}
	if n := le.Uint32(b); n < DMAMapSize {
		return DMAMap{}, malformed(what, "argsz %d", n)
	}
	if d.Size == 0 || d.Address+d.Size-1 < d.Address || d.Offset+d.Size < d.Offset {
		return DMAMap{}, malformed(what, "%#x bytes at %#x, offset %#x", d.Size, d.Address, d.Offset)
	}
	return d, nil
}

// Flags of DMAUnmap (VFIO_DMA_UNMAP_FLAG_*).
const (
	UnmapDirtyBitmap uint32 = 1 << 0
	UnmapAll         uint32 = 1 << 1 // address and size are zero
)

// DMAUnmapSize is the size of DMAUnmap in bytes.
const DMAUnmapSize = 24

// DMAUnmap ends mappings (struct vfio_user_dma_unmap), both ways.
type DMAUnmap struct {
	Flags   uint32
	Address uint64 // IOVA
	Size    uint64
}

// Append appends the payload to b.
func (d DMAUnmap) Append(b []byte) []byte {
	b = append32(b, DMAUnmapSize, d.Flags)
	return append64(b, d.Address, d.Size)
}

// ParseDMAUnmap reads the payload.
func ParseDMAUnmap(b []byte) (DMAUnmap, error) {
	const what = "DMA unmap"
	if len(b) < DMAUnmapSize {
		return DMAUnmap{}, short(what, len(b), DMAUnmapSize)
	}
	le := binary.LittleEndian
	d := DMAUnmap{Flags: le.Uint32(b[4:]), Address: le.Uint64(b[8:]), Size: le.Uint64(b[16:])}
	switch {
	case le.Uint32(b) < DMAUnmapSize:
		return DMAUnmap{}, malformed(what, "argsz %d", le.Uint32(b))
	case d.Flags&^(UnmapDirtyBitmap|UnmapAll) != 0 || d.Flags == UnmapDirtyBitmap|UnmapAll:
		return DMAUnmap{}, malformed(what, "flags %#x", d.Flags)
	case d.Flags&UnmapAll != 0 && d.Address|d.Size != 0:
		return DMAUnmap{}, malformed(what, "all, and %#x bytes at %#x", d.Size, d.Address)
	case d.Flags&UnmapAll == 0 && (d.Size == 0 || d.Address+d.Size-1 < d.Address):
		return DMAUnmap{}, malformed(what, "%#x bytes at %#x", d.Size, d.Address)
	}
	return d, nil
}

// DMAAccessSize is the size of DMAAccess in bytes, less the data.
const DMAAccessSize = 16

// DMAAccess reads or writes memory of the driver by message (struct
// vfio_user_dma_region_access), from the device to the driver and back. The
// command to read and the reply to a write have no data.
type DMAAccess struct {
	Address uint64 // IOVA
	Count   uint64 // bytes
	Data    []byte
}

// Append appends the payload to b.
func (d DMAAccess) Append(b []byte) []byte {
	return append(append64(b, d.Address, d.Count), d.Data...)
}

// ParseDMAAccess reads the payload, which has Count bytes of data, part of b,
// if data is set, and else none.
func ParseDMAAccess(b []byte, data bool) (DMAAccess, error) {
	const what = "DMA access"
	if len(b) < DMAAccessSize {
		return DMAAccess{}, short(what, len(b), DMAAccessSize)
	}
	d := DMAAccess{Address: binary.LittleEndian.Uint64(b), Count: binary.LittleEndian.Uint64(b[8:])}
	if !data {
		return d, nil
	}
	if uint64(len(b)-DMAAccessSize) != d.Count {
		return DMAAccess{}, malformed(what, "%d bytes of data, the count is %d", len(b)-DMAAccessSize, d.Count)
	}
	d.Data = b[DMAAccessSize:]
	return d, nil
}
