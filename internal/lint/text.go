package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// MaxFileSize is the size in bytes above which a file is to be split by
// concept.
const MaxFileSize = 40 << 10

// The patterns are put together from parts, so that this file passes too.
var (
	unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b` +
		`|(?i:not ` + `implemented)`)
	machinePath = regexp.MustCompile(`(^|[^\w.~/$})-])/(work|farm|home)(/|\b)` +
		`|/tmp/` + `(wt|brief)\b|\.\./` + `shared\b|\.` + `library\b`)
	rootsHome = regexp.MustCompile(`(^|[^\w.~/$})-])/root(/|\b)`)
)

// CheckText reports marks of unfinished work and paths of somebody's machine.
func CheckText(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.Files {
		if f.Path == "go.sum" {
			continue // hashes may spell anything
		}
		n := 0
		for line := range bytes.Lines(f.Src) {
			n++
			if m := unfinished.Find(line); m != nil {
				ps = append(ps, Problem{f.Path, n, fmt.Sprintf("mark of unfinished work %q", m)})
			}
			m := machinePath.Find(line)
			if m == nil && !under(f.Dir(), "internal/guest") { // a guest is a machine of our own
				m = rootsHome.Find(line)
			}
			if m != nil {
				ps = append(ps, Problem{f.Path, n, fmt.Sprintf("path of one machine %q", bytes.TrimSpace(m))})
			}
		}
	}
	return ps
}

// CheckSize reports files over MaxFileSize, but for those that nobody writes.
func CheckSize(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.Files {
		if f.Path != "go.sum" && f.Path != "LICENSE" && len(f.Src) > MaxFileSize {
			ps = append(ps, Problem{f.Path, 0, fmt.Sprintf("%d bytes, more than %d: split it by concept", len(f.Src), MaxFileSize)})
		}
	}
	return ps
}
