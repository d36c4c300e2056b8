package pcie

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrAddress: the text is no PCI address.
var ErrAddress = errors.New("pcie: not a PCI address such as 0000:01:00.0")

// ParseAddress returns a PCI address in the form that the kernel uses,
// domain:bus:device.function in lower case hexadecimal digits. The domain may
// be left out: it is 0000 then. Errors are of kind [ErrAddress].
func ParseAddress(s string) (string, error) {
	bad := func() (string, error) { return "", fmt.Errorf("%w: %q", ErrAddress, s) }
	rest, function, ok := strings.Cut(s, ".")
	if !ok {
		return bad()
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 2 {
		parts = append([]string{"0000"}, parts...)
	}
	if len(parts) != 3 {
		return bad()
	}
	var v [4]uint64
	for i, p := range append(parts, function) {
		digits := [4]int{8, 2, 2, 1}[i]
		most := [4]uint64{0xffffffff, 0xff, 0x1f, 7}[i]
		n, err := strconv.ParseUint(p, 16, 32)
		if err != nil || len(p) > digits || n > most {
			return bad()
		}
		v[i] = n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", v[0], v[1], v[2], v[3]), nil
}

// linkBase returns the last element of what a link points to, or "".
func linkBase(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// readText returns the text of an attribute without white space around it, ""
// if it cannot be read.
func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readHex reads an attribute like "0x1b36".
func readHex(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(b)), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("pcie: %s: %w", path, err)
	}
	return v, nil
}

func numaNode(dir string) int {
	n, err := strconv.Atoi(readText(filepath.Join(dir, "numa_node")))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// cdevName finds the name of the vfio character device: the only entry of the
// vfio-dev directory (Documentation/ABI/testing/sysfs-devices-vfio-dev). The
// device node exists only where the entry has a number.
func cdevName(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "vfio-dev", "vfio*", "dev"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return filepath.Base(filepath.Dir(found[0]))
}

// readBARs reads the first six lines of a resource file: start, end and flags.
func readBARs(path string) (bars [6]BAR, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return bars, err
	}
	i := 0
	for line := range strings.Lines(string(b)) {
		if i == len(bars) {
			break // the expansion ROM and bridge windows
		}
		var v [3]uint64
		fields := strings.Fields(line)
		if len(fields) != len(v) {
			return bars, fmt.Errorf("pcie: %s: line %q is not start, end, flags", path, line)
		}
		for k, f := range fields {
			if v[k], err = strconv.ParseUint(f, 0, 64); err != nil {
				return bars, fmt.Errorf("pcie: %s: %w", path, err)
			}
		}
		bars[i] = BAR{Start: v[0], Flags: v[2]}
		if v[1] > v[0] && v[2] != 0 {
			bars[i].Size = v[1] - v[0] + 1
		}
		i++
	}
	return bars, nil
}
