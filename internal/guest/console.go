package guest

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"sync"
)

// maxConsole and maxLine bound what is kept of the console, in bytes.
const (
	maxConsole = 1 << 20
	maxLine    = 4096
	maxFaults  = 64
)

// faultLine matches what the kernel prints when it is broken. The kernel's own
// prefix of time is optional.
var faultLine = regexp.MustCompile(
	`^(?:\[ *\d+\.\d+\](?:\[[^]]*\])? )?(?:[\w/ .-]+: )?(` +
		`Kernel panic - not syncing|Oops: |BUG: |kernel BUG at |WARNING: (?:CPU: \d|\S+:\d+ at )|` +
		`general protection fault|Unable to handle kernel|refcount_t: |list_(?:add|del) corruption|` +
		`unregister_netdevice: waiting for|INFO: task .* blocked for more than)`)

// console keeps the end of the guest's console and looks for faults.
type console struct {
	keep   tail
	copyTo io.Writer

	mu     sync.Mutex
	line   []byte
	faults []string
}

func newConsole(copyTo io.Writer) *console {
	return &console{keep: tail{max: maxConsole}, copyTo: copyTo}
}

func (c *console) Write(b []byte) (int, error) {
	_, _ = c.keep.Write(b)
	if c.copyTo != nil {
		_, _ = c.copyTo.Write(b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for rest := b; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		part := rest
		if i >= 0 {
			part = rest[:i]
		}
		if room := maxLine - len(c.line); room > 0 {
			c.line = append(c.line, part[:min(len(part), room)]...)
		}
		if i < 0 {
			break
		}
		c.endLine()
		rest = rest[i+1:]
	}
	return len(b), nil
}

func (c *console) endLine() {
	l := bytes.TrimRight(c.line, "\r")
	if len(c.faults) < maxFaults && faultLine.Match(l) {
		c.faults = append(c.faults, string(l))
	}
	c.line = c.line[:0]
}

// Faults returns the lines that tell of a fault.
func (c *console) Faults() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.faults)
}
