package poller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/internal/sys"
)

// maxCore is the highest core number that is understood.
const maxCore = 1<<16 - 1

// allowed is what the process was given when it started. Asking later would
// tell about the asking thread, which may be a poller's.
var allowed = func() (a struct {
	cores []int
	err   error
}) {
	a.cores, a.err = sys.GetAffinity()
	return a
}()

// AllowedCores returns the cores that the process was allowed to run on when
// it started, in rising order.
func AllowedCores() ([]int, error) {
	return slices.Clone(allowed.cores), allowed.err
}

// ParseCores reads a set of cores, and returns it in rising order: numbers and
// ranges as in "0,2-5", or a mask in hexadecimal as in "0x3d", whose lowest bit
// is core 0. Naming a core twice is not an error, naming none is.
func ParseCores(s string) ([]int, error) {
	set := map[int]bool{}
	var err error
	if mask, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "0x"); ok {
		err = parseMask(mask, set)
	} else {
		err = parseList(s, set)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: cores %q: %w", ErrConfig, s, err)
	}
	cores := make([]int, 0, len(set))
	for core := range set {
		cores = append(cores, core)
	}
	slices.Sort(cores)
	return cores, nil
}

func parseList(s string, set map[int]bool) error {
	for item := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(item), "-")
		first, err := parseCore(from)
		if err != nil {
			return err
		}
		last := first
		if isRange {
			if last, err = parseCore(to); err != nil {
				return err
			}
		}
		if last < first {
			return fmt.Errorf("range %q runs backwards", item)
		}
		for core := first; core <= last; core++ {
			set[core] = true
		}
	}
	return nil
}

func parseCore(s string) (int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, fmt.Errorf("a core number is missing")
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no core number", s)
	}
	if n > maxCore {
		return 0, fmt.Errorf("core %d is above %d", n, maxCore)
	}
	return int(n), nil
}

func parseMask(mask string, set map[int]bool) error {
	if mask == "" {
		return fmt.Errorf("the mask has no digits")
	}
	if len(mask) > (maxCore+1)/4 {
		return fmt.Errorf("the mask is longer than %d cores", maxCore+1)
	}
	for i := range len(mask) {
		digit, err := strconv.ParseUint(mask[len(mask)-1-i:len(mask)-i], 16, 4)
		if err != nil {
			return fmt.Errorf("%q is no hexadecimal digit", mask[len(mask)-1-i])
		}
		for bit := range 4 {
			if digit>>bit&1 != 0 {
				set[4*i+bit] = true
			}
		}
	}
	if len(set) == 0 {
		return fmt.Errorf("the mask is empty")
	}
	return nil
}
