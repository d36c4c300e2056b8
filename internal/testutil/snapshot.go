package testutil

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/internal/sys"
)

// snapshot is what a process holds at one moment, each thing by a line that
// names it.
type snapshot struct {
	fds      map[string]int    // "fd 7: socket:[123]" to 7
	mappings map[string]bool   // lines of /proc/self/maps
	children map[string]bool   // process IDs
	stacks   map[int]string    // of descriptors that internal/sys opened
	tracked  map[string]string // mappings that it made, to their stacks
}

func take() (snapshot, error) {
	s := snapshot{stacks: map[int]string{}, tracked: map[string]string{}}
	for _, r := range sys.Tracked() {
		if r.FD >= 0 {
			s.stacks[r.FD] = r.Stack
			continue
		}
		s.tracked[fmt.Sprintf("mapping of %d bytes at %#x", r.Bytes, r.Address)] = r.Stack
	}
	var errs [3]error
	s.fds, errs[0] = openFDs()
	s.mappings, errs[1] = sharedMappings()
	s.children, errs[2] = childProcesses()
	return s, errors.Join(errs[:]...)
}

// beyond reports what s has and before has not.
func (s snapshot) beyond(before snapshot) error {
	var errs []error
	for name, fd := range s.fds {
		if _, ok := before.fds[name]; !ok {
			errs = append(errs, left(name, s.stacks[fd]))
		}
	}
	for name, stack := range s.tracked {
		if _, ok := before.tracked[name]; !ok {
			errs = append(errs, left(name, stack))
		}
	}
	for name := range s.mappings {
		if !before.mappings[name] {
			errs = append(errs, left("mapping "+name, ""))
		}
	}
	for pid := range s.children {
		if !before.children[pid] {
			errs = append(errs, left("process "+pid, ""))
		}
	}
	return errors.Join(errs...)
}

func left(name, stack string) error {
	if stack == "" {
		return fmt.Errorf("left open: %s", name)
	}
	return fmt.Errorf("left open: %s, opened by\n%s", name, stack)
}

// openFDs lists the open descriptors and what they refer to.
func openFDs() (map[string]int, error) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fds := map[string]int{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the descriptor that read the directory
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		fds[fmt.Sprintf("fd %d: %s", fd, target)] = fd
	}
	return fds, nil
}

// sharedMappings lists what is mapped shared, or from huge pages. The runtime
// maps nothing of the kind, so that it does not change on its own.
func sharedMappings() (map[string]bool, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	return parseMaps(string(maps)), nil
}

func parseMaps(maps string) map[string]bool {
	shared := map[string]bool{}
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line) // address, permissions, offset, device, inode, path
		if len(fields) < 2 {
			continue
		}
		if strings.HasSuffix(fields[1], "s") || strings.Contains(line, "/anon_hugepage") {
			shared[strings.Join(fields, " ")] = true
		}
	}
	return shared
}

// childProcesses lists the processes that this one has started and that have
// not been waited for.
func childProcesses() (map[string]bool, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	pids := map[string]bool{}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(b)) {
			pids[pid] = true
		}
	}
	return pids, nil
}
