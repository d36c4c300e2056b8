//qpoll:hot

package pcie

// region is memory that the device can reach: an arena, or memory of the
// user's own that was registered.
type region struct {
	base uintptr
	size uintptr
	iova uint64 // of base; of no use where there are pages
	// Without an IOMMU, memory is contiguous within its pages only.
	pages []uint64 // physical addresses
	shift uint8    // page size as a power of two
}

// has tells whether the n bytes at p lie in r.
func (r *region) has(p uintptr, n uintptr) bool {
	off := p - r.base
	return off < r.size && n <= r.size-off
}

// at returns the address that the device knows p by.
func (r *region) at(p uintptr) uint64 {
	off := p - r.base
	if r.pages == nil {
		return r.iova + uint64(off)
	}
	return r.pages[off>>r.shift] + uint64(off&(1<<r.shift-1))
}

// extent returns how many of the n bytes at p the device sees in one piece.
func (r *region) extent(p uintptr, n uintptr) uintptr {
	if r.pages == nil {
		return n
	}
	return min(n, 1<<r.shift-(p-r.base)&(1<<r.shift-1))
}

// regionTable holds all regions, sorted by base. It never changes; a change
// makes a new one.
type regionTable struct{ list []region }

// find returns the region with the n bytes at p, nil if there is none.
func (t *regionTable) find(p uintptr, n uintptr) *region {
	lo, hi := 0, len(t.list)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if t.list[mid].base <= p {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	if r := &t.list[lo-1]; r.has(p, n) {
		return r
	}
	return nil
}
