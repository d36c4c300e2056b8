package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/qpoll/qpoll/poller"
)

// loadName is the name of the pollers of the load.
const loadName = "bench"

// layout says which core does what.
type layout struct {
	load   []int
	target []int // of a target of our own
	shared bool  // one core does both: nobody may keep it to himself

	adaptive bool // pollers of the load sleep when there is nothing to do
}

// plan lays out what the options want on the cores that the process may use.
func (o *options) plan(allowed []int) (layout, error) {
	l := layout{load: o.cores, target: o.targetCores, adaptive: o.adaptive}
	for name, cores := range map[string][]int{"cores": o.cores, "target-cores": o.targetCores} {
		for _, c := range cores {
			if !slices.Contains(allowed, c) {
				return l, usagef("-%s: core %d is not there or not allowed, choose from %s", name, c, ranges(allowed))
			}
		}
	}
	if len(l.load) == 0 {
		l.load = []int{firstNot(allowed, l.target)}
	}
	if !o.own() {
		return l, nil
	}
	if len(l.target) == 0 {
		l.target = []int{firstNot(allowed, l.load)}
	}
	for _, c := range l.target {
		l.shared = l.shared || slices.Contains(l.load, c)
	}
	return l, nil
}

// firstNot returns the first of all that is not taken, or the last of all.
func firstNot(all, taken []int) int {
	for _, c := range all {
		if !slices.Contains(taken, c) {
			return c
		}
	}
	return all[len(all)-1]
}

// poller describes the pollers of one role. Where a core is shared they sleep
// as soon as there is nothing to do, for the other's sake.
func (l *layout) poller(name string) poller.Config {
	cfg := poller.Config{Name: name}
	switch {
	case l.shared:
		cfg.Idle, cfg.Spin = poller.Adaptive, -1
	case l.adaptive && name == loadName:
		cfg.Idle = poller.Adaptive
	}
	return cfg
}

// processors makes the Go scheduler use enough of them: one for each poller,
// and two for everything else. It returns the function that undoes that.
func (l *layout) processors() (undo func()) {
	need := len(l.load) + len(l.target) + 2
	had := runtime.GOMAXPROCS(0)
	if had >= need {
		return func() {}
	}
	runtime.GOMAXPROCS(need)
	return func() { runtime.GOMAXPROCS(had) }
}

// ranges writes a list of numbers in rising order, like 0-3,8.
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, fmt.Sprint(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// coreNames writes cores for people.
func coreNames(cores []int) string {
	if len(cores) == 1 {
		return "core " + ranges(cores)
	}
	return "cores " + ranges(cores)
}
