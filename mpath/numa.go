package mpath

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/nvme"
)

// What a distance is taken to be where the kernel does not tell: that of a node
// to itself is 10, and unknown ones are farther than near ones.
const (
	distanceLocal   = 10
	distanceUnknown = 20
)

var sysfs fs.FS = os.DirFS("/sys")

// nodeOf returns the NUMA node of a controller that is a PCI function.
func nodeOf(c *nvme.Controller) int {
	if c.Transport().Name() != "pcie" {
		return -1
	}
	for f := range strings.FieldsSeq(c.Address()) {
		if n, ok := readNumber(sysfs, path.Join("bus/pci/devices", f, "numa_node")); ok {
			return n
		}
	}
	return -1
}

func readNumber(root fs.FS, name string) (int, bool) {
	if !fs.ValidPath(name) {
		return 0, false
	}
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil
}

// nodeOfCore returns the NUMA node of a core, -1 if unknown.
func nodeOfCore(root fs.FS, core int) int {
	list, err := fs.Glob(root, "devices/system/cpu/cpu"+strconv.Itoa(core)+"/node[0-9]*")
	if core < 0 || err != nil || len(list) == 0 {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(path.Base(list[0]), "node"))
	if err != nil {
		return -1
	}
	return n
}

// distance returns how far one NUMA node is from another.
func distance(root fs.FS, from, to int) int {
	switch {
	case from < 0 || to < 0:
		return distanceUnknown
	case from == to:
		return distanceLocal
	}
	b, err := fs.ReadFile(root, "devices/system/node/node"+strconv.Itoa(from)+"/distance")
	if err != nil {
		return distanceUnknown
	}
	row := strings.Fields(string(b))
	if to >= len(row) {
		return distanceUnknown
	}
	n, err := strconv.Atoi(row[to])
	if err != nil {
		return distanceUnknown
	}
	return n
}
