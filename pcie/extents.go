package pcie

import "slices"

// extent is a run of pages.
type extent struct{ first, n int }

// extents are runs of free pages, sorted and never adjacent.
type extents []extent

// take returns the first of n pages, the lowest that are free and in one piece.
// If per is not 0 they do not cross a multiple of it.
func (x *extents) take(n, per int) (at int, ok bool) {
	for i, e := range *x {
		at := e.first
		if per > 0 && at/per != (at+n-1)/per {
			at = (at/per + 1) * per
		}
		if n > e.first+e.n-at || per > 0 && n > per {
			continue
		}
		*x = slices.Delete(*x, i, i+1)
		if rest := e.first + e.n - at - n; rest > 0 {
			*x = slices.Insert(*x, i, extent{at + n, rest})
		}
		if at > e.first {
			*x = slices.Insert(*x, i, extent{e.first, at - e.first})
		}
		return at, true
	}
	return 0, false
}

// give takes back n pages.
func (x *extents) give(first, n int) {
	i := 0
	for i < len(*x) && (*x)[i].first < first {
		i++
	}
	s := slices.Insert(*x, i, extent{first, n})
	if i+1 < len(s) && first+n == s[i+1].first {
		s[i].n += s[i+1].n
		s = slices.Delete(s, i+1, i+2)
	}
	if i > 0 && s[i-1].first+s[i-1].n == first {
		s[i-1].n += s[i].n
		s = slices.Delete(s, i, i+1)
	}
	*x = s
}
