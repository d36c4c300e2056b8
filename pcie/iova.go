package pcie

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoIOVA: no I/O virtual addresses are left that the device may use.
var ErrNoIOVA = errors.New("pcie: out of I/O virtual addresses")

// lowestIOVA keeps clear of address 0, which in a PRP entry reads like a
// mistake, and of the first megabyte, which old machines treat specially.
const lowestIOVA = 1 << 20

// iovaSpace hands out ranges of I/O virtual addresses.
type iovaSpace struct {
	allowed []Range
	used    []Range // sorted
}

// newIOVASpace takes the ranges that a device allows, sorted, up to and with
// limit.
func newIOVASpace(allowed []Range, limit uint64) iovaSpace {
	var s iovaSpace
	for _, r := range allowed {
		r.First, r.Last = max(r.First, lowestIOVA), min(r.Last, limit)
		if r.First <= r.Last {
			s.allowed = append(s.allowed, r)
		}
	}
	return s
}

// take returns the lowest free range of n bytes at a multiple of align, a power
// of two that is a multiple of the page size.
func (s *iovaSpace) take(n, align uint64) (uint64, error) {
	if n == 0 {
		return 0, fmt.Errorf("%w: nothing asked for", ErrNoIOVA)
	}
	for _, r := range s.allowed {
		at, ok := alignUp(r.First, align)
		for _, u := range s.used {
			if !ok || u.First > at && u.First-at >= n {
				break
			}
			if u.Last >= at {
				at, ok = alignUp(u.Last+1, align)
				ok = ok && u.Last != ^uint64(0)
			}
		}
		if ok && at <= r.Last && r.Last-at >= n-1 {
			i, _ := slices.BinarySearchFunc(s.used, at, func(u Range, at uint64) int {
				if u.First < at {
					return -1
				}
				return 1
			})
			s.used = slices.Insert(s.used, i, Range{at, at + n - 1})
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w: %d bytes, of %d ranges with %d in use", ErrNoIOVA, n, len(s.allowed), len(s.used))
}

// give returns what take gave.
func (s *iovaSpace) give(at uint64) {
	s.used = slices.DeleteFunc(s.used, func(u Range) bool { return u.First == at })
}

// alignUp rounds v up; ok is false if that overflows.
func alignUp(v, align uint64) (uint64, bool) {
	up := (v + align - 1) &^ (align - 1)
	return up, up >= v
}
