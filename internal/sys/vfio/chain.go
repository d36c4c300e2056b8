package vfio

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrInfo: an answer to an INFO call contradicts itself.
var ErrInfo = errors.New("vfio: malformed information")

var le = binary.LittleEndian

// Region is what VFIO_DEVICE_GET_REGION_INFO tells: a BAR, or the configuration
// space.
type Region struct {
	Flags        uint32 // RegionRead, RegionWrite, RegionMmap
	Size, Offset uint64 // bytes; where it begins in the device's file
	// Mappable are the parts that can be mapped, sorted: all of it, if nothing
	// else is said, and none without RegionMmap.
	Mappable []Area
}

// Area is a part of a region, in bytes.
type Area struct{ Offset, Size uint64 }

// Range is a range of addresses, both ends included.
type Range struct{ First, Last uint64 }

// IOMMU is what VFIO_IOMMU_GET_INFO tells.
type IOMMU struct {
	PageSizes uint64  // a bit for each size that it takes
	Ranges    []Range // addresses that it takes, sorted; nil: not told
	Avail     uint32  // how many mappings it takes; 0: not told
}

// chain calls f with each capability of an answer, header included, from offset
// first on (struct vfio_info_cap_header). The offsets rise in what the kernel
// writes; going on only while they do ends every chain.
func chain(info []byte, first uint32, f func(id, version uint16, c []byte) error) error {
	const header = 8
	for at := first; at != 0; {
		if uint64(at)+header > uint64(len(info)) {
			return fmt.Errorf("%w: capability at %d of %d bytes", ErrInfo, at, len(info))
		}
		c := info[at:]
		if err := f(le.Uint16(c), le.Uint16(c[2:]), c); err != nil {
			return err
		}
		next := le.Uint32(c[4:])
		if next != 0 && next < at+header {
			return fmt.Errorf("%w: capability at %d is followed by one at %d", ErrInfo, at, next)
		}
		at = next
	}
	return nil
}

// table returns the entries of 16 bytes of a capability that counts them.
func table(c []byte) ([][2]uint64, error) {
	const head = 16
	if len(c) < head {
		return nil, fmt.Errorf("%w: capability of %d bytes", ErrInfo, len(c))
	}
	n := le.Uint32(c[8:])
	if uint64(n)*16 > uint64(len(c)-head) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrInfo, n, len(c)-head)
	}
	t := make([][2]uint64, n)
	for i := range t {
		e := c[head+i*16:]
		t[i] = [2]uint64{le.Uint64(e), le.Uint64(e[8:])}
	}
	return t, nil
}

// decodeRegion decodes struct vfio_region_info with its capabilities. The error
// is of kind [ErrInfo].
func decodeRegion(b []byte) (Region, error) {
	const size = 32
	if len(b) < size {
		return Region{}, fmt.Errorf("%w: region information of %d bytes", ErrInfo, len(b))
	}
	r := Region{Flags: le.Uint32(b[4:]), Size: le.Uint64(b[16:]), Offset: le.Uint64(b[24:])}
	if r.Size > math.MaxInt64 || r.Offset > math.MaxInt64-r.Size {
		return Region{}, fmt.Errorf("%w: region of %d bytes at %#x", ErrInfo, r.Size, r.Offset)
	}
	if r.Flags&RegionMmap == 0 {
		return r, nil
	}
	sparse := false
	if r.Flags&RegionCaps != 0 {
		err := chain(b, le.Uint32(b[12:]), func(id, version uint16, c []byte) error {
			if id != capSparseMmap || version != 1 {
				return nil
			}
			sparse = true
			t, err := table(c)
			for _, e := range t {
				r.Mappable = append(r.Mappable, Area{e[0], e[1]})
			}
			return err
		})
		if err != nil {
			return Region{}, err
		}
	}
	if !sparse && r.Size > 0 {
		r.Mappable = []Area{{0, r.Size}}
	}
	return r, r.tidy()
}

// tidy sorts and checks the areas, and drops empty ones.
func (r *Region) tidy() error {
	r.Mappable = slices.DeleteFunc(r.Mappable, func(a Area) bool { return a.Size == 0 })
	slices.SortFunc(r.Mappable, func(a, b Area) int { return cmp.Compare(a.Offset, b.Offset) })
	end := uint64(0)
	for _, a := range r.Mappable {
		if a.Offset < end || a.Offset > r.Size || a.Size > r.Size-a.Offset {
			return fmt.Errorf("%w: mappable area of %d bytes at %#x in a region of %d", ErrInfo, a.Size, a.Offset, r.Size)
		}
		end = a.Offset + a.Size
	}
	return nil
}

// decodeIOMMU decodes struct vfio_iommu_type1_info with its capabilities.
func decodeIOMMU(b []byte) (IOMMU, error) {
	const size = 20 // without padding
	if len(b) < size {
		return IOMMU{}, fmt.Errorf("%w: IOMMU information of %d bytes", ErrInfo, len(b))
	}
	i := IOMMU{PageSizes: le.Uint64(b[8:])}
	if le.Uint32(b[4:])&iommuInfoCaps == 0 {
		return i, nil
	}
	err := chain(b, le.Uint32(b[16:]), func(id, version uint16, c []byte) error {
		switch {
		case id == capIOVARange && version == 1:
			t, err := table(c)
			if err != nil {
				return err
			}
			var rs []Range
			for _, e := range t {
				rs = append(rs, Range{e[0], e[1]})
			}
			i.Ranges, err = cleanRanges(rs)
			return err
		case id == capDMAAvail && version == 1:
			if len(c) < 12 {
				return fmt.Errorf("%w: capability of %d bytes", ErrInfo, len(c))
			}
			i.Avail = le.Uint32(c[8:])
		}
		return nil
	})
	if err != nil {
		return IOMMU{}, err
	}
	return i, nil
}

// cleanRanges sorts ranges and checks that they do not overlap.
func cleanRanges(rs []Range) ([]Range, error) {
	rs = slices.Clone(rs)
	slices.SortFunc(rs, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	for i, r := range rs {
		if r.First > r.Last || i > 0 && r.First <= rs[i-1].Last {
			return nil, fmt.Errorf("%w: range %#x to %#x", ErrInfo, r.First, r.Last)
		}
	}
	return rs, nil
}
