package vfuser

import "encoding/binary"

// Flags of RegionInfo (VFIO_REGION_INFO_FLAG_*).
const (
	RegionRead  uint32 = 1 << 0
	RegionWrite uint32 = 1 << 1
	RegionMmap  uint32 = 1 << 2
	RegionCaps  uint32 = 1 << 3
)

// Sizes of RegionInfo in bytes, and of what may follow it.
const (
	RegionInfoSize = 32
	capHeaderSize  = 8
	sparseSize     = 16
	areaSize       = 16
)

// capSparseMmap is VFIO_REGION_INFO_CAP_SPARSE_MMAP.
const capSparseMmap = 1

// limitCaps bounds the capabilities of a region, limitAreas the areas.
const (
	limitCaps  = 64
	limitAreas = 256
)

// Area is a part of a region that can be mapped, in bytes from its start.
type Area struct {
	Offset, Size uint64
}

// RegionInfo describes a region (struct vfio_region_info), both ways.
type RegionInfo struct {
	// ArgSize is how much the caller has room for, and in a reply how much
	// there is: if that is more than came, ask again.
	ArgSize uint32
	Flags   uint32
	Index   uint32
	Size    uint64
	Offset  uint64 // of the region in the descriptor that comes with it

	// Areas can be mapped; none with RegionMmap is all of the region
	// (VFIO_REGION_INFO_CAP_SPARSE_MMAP).
	Areas []Area
}

// FullSize is the size in bytes of the payload with all areas.
func (r *RegionInfo) FullSize() uint32 {
	if len(r.Areas) == 0 {
		return RegionInfoSize
	}
	return uint32(RegionInfoSize + sparseSize + areaSize*len(r.Areas))
}

// Append appends the payload to b; RegionCaps is set if there are areas.
func (r RegionInfo) Append(b []byte) []byte {
	offset := uint32(0)
	if len(r.Areas) > 0 {
		r.Flags |= RegionCaps
		offset = RegionInfoSize
	}
	b = append32(b, r.ArgSize, r.Flags, r.Index, offset)
	b = append64(b, r.Size, r.Offset)
	if len(r.Areas) == 0 {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, capSparseMmap)
	b = binary.LittleEndian.AppendUint16(b, 1) // version
	b = append32(b, 0, uint32(len(r.Areas)), 0)
	for _, a := range r.Areas {
		b = append64(b, a.Offset, a.Size)
	}
	return b
}

// ParseRegionInfo reads the payload. Unknown capabilities are passed over;
// areas lie within the region.
func ParseRegionInfo(b []byte) (RegionInfo, error) {
	if len(b) < RegionInfoSize {
		return RegionInfo{}, short("region info", len(b), RegionInfoSize)
	}
	v := words(b)
	r := RegionInfo{
		ArgSize: v(0), Flags: v(1), Index: v(2),
		Size: binary.LittleEndian.Uint64(b[16:]), Offset: binary.LittleEndian.Uint64(b[24:]),
	}
	if r.Flags&RegionCaps == 0 {
		return r, nil
	}
	// The whole may not have come; then there are no capabilities in it.
	at := uint64(v(3))
	for range limitCaps {
		if at == 0 {
			return r, nil
		}
		if at < RegionInfoSize || at+capHeaderSize > uint64(len(b)) {
			return RegionInfo{}, malformed("region info", "capability at %d of %d bytes", at, len(b))
		}
		if binary.LittleEndian.Uint16(b[at:]) == capSparseMmap {
			if err := r.parseAreas(b[at:]); err != nil {
				return RegionInfo{}, err
			}
		}
		at = uint64(binary.LittleEndian.Uint32(b[at+4:]))
	}
	return RegionInfo{}, malformed("region info", "more than %d capabilities", limitCaps)
}

func (r *RegionInfo) parseAreas(b []byte) error {
	const what = "region info"
	if len(b) < sparseSize {
		return short(what+" areas", len(b), sparseSize)
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > limitAreas || len(r.Areas) > 0 || int(n)*areaSize > len(b)-sparseSize {
		return malformed(what, "%d areas in %d bytes", n, len(b))
	}
	for i := range int(n) {
		p := b[sparseSize+i*areaSize:]
		a := Area{Offset: binary.LittleEndian.Uint64(p), Size: binary.LittleEndian.Uint64(p[8:])}
		if a.Offset > r.Size || a.Size > r.Size-a.Offset {
			return malformed(what, "area of %d bytes at %d in a region of %d", a.Size, a.Offset, r.Size)
		}
		r.Areas = append(r.Areas, a)
	}
	return nil
}

// RegionAccessSize is the size of RegionAccess in bytes, less the data.
const RegionAccessSize = 16

// RegionAccess reads or writes a region (struct vfio_user_region_access), both
// ways. The command to read and the reply to a write have no data.
type RegionAccess struct {
	Offset uint64
	Region uint32
	Count  uint32 // bytes
	Data   []byte
}

// Append appends the payload to b.
func (a RegionAccess) Append(b []byte) []byte {
	b = append64(b, a.Offset)
	b = append32(b, a.Region, a.Count)
	return append(b, a.Data...)
}

// ParseRegionAccess reads the payload, which has Count bytes of data, part of
// b, if data is set, and else none.
func ParseRegionAccess(b []byte, data bool) (RegionAccess, error) {
	const what = "region access"
	if len(b) < RegionAccessSize {
		return RegionAccess{}, short(what, len(b), RegionAccessSize)
	}
	v := words(b)
	a := RegionAccess{Offset: binary.LittleEndian.Uint64(b), Region: v(2), Count: v(3)}
	if !data {
		return a, nil
	}
	if uint64(len(b)-RegionAccessSize) != uint64(a.Count) {
		return RegionAccess{}, malformed(what, "%d bytes of data, the count is %d", len(b)-RegionAccessSize, a.Count)
	}
	a.Data = b[RegionAccessSize:]
	return a, nil
}
