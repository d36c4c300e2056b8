package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// size is a number of bytes, as in 4k, 128KiB, 1m, 4096.
type size uint64

var units = []struct {
	suffix string
	shift  int
}{{"t", 40}, {"g", 30}, {"m", 20}, {"k", 10}, {"", 0}}

// Set implements flag.Value. Suffixes are powers of 1024, as fio and
// spdk_nvme_perf have them, with or without iB or B, in any case.
func (s *size) Set(text string) error {
	t := strings.ToLower(strings.TrimSpace(text))
	t = strings.TrimSuffix(t, "b")
	if short := strings.TrimSuffix(t, "i"); short != t {
		t = short
		if t == "" || t[len(t)-1] >= '0' && t[len(t)-1] <= '9' {
			return fmt.Errorf("%q is not a size: write 4096, 4k or 4KiB", text)
		}
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n > math.MaxInt64>>u.shift {
			return fmt.Errorf("%q is not a size: write 4096, 4k or 4KiB", text)
		}
		*s = size(n << u.shift)
		return nil
	}
	return nil // not reached: the last unit has no suffix
}

// String implements flag.Value.
func (s *size) String() string {
	for _, u := range units {
		if *s != 0 && *s%(1<<u.shift) == 0 && u.shift > 0 {
			return fmt.Sprintf("%d %siB", *s>>u.shift, strings.ToUpper(u.suffix[:1]))
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// seconds is a time, as in 10, 10s, 200ms, 1m30s; without a unit in seconds.
type seconds time.Duration

// longest keeps times far away from overflow when they are added.
const longest = 365 * 24 * time.Hour

// Set implements flag.Value.
func (d *seconds) Set(text string) error {
	v, err := time.ParseDuration(text)
	if n, bare := strconv.ParseFloat(text, 64); bare == nil && !math.IsNaN(n) {
		v, err = time.Duration(min(max(n, -1), longest.Seconds()+1)*float64(time.Second)), nil
	}
	if err != nil {
		return fmt.Errorf("%q is not a time: write 10, 10s, 200ms or 1m30s", text)
	}
	if v < 0 || v > longest {
		return fmt.Errorf("%s is out of range, 0 to %d days are possible", text, longest/(24*time.Hour))
	}
	*d = seconds(v)
	return nil
}

// String implements flag.Value.
func (d *seconds) String() string { return time.Duration(*d).String() }

// number is an integer within bounds.
type number struct {
	v        *int
	min, max int
}

// Set implements flag.Value.
func (n number) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	if v < n.min || v > n.max {
		return fmt.Errorf("%d is out of range, %d to %d are possible", v, n.min, n.max)
	}
	*n.v = v
	return nil
}

// String implements flag.Value.
func (n number) String() string {
	if n.v == nil {
		return ""
	}
	return strconv.Itoa(*n.v)
}

// choice is one of several words.
type choice struct {
	v     *string
	words []string
}

// Set implements flag.Value.
func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		last := len(c.words) - 1
		return fmt.Errorf("%q is not known, it is %s or %s", text, strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.v = text
	return nil
}

// String implements flag.Value.
func (c choice) String() string { return deref(c.v) }

// text is any string.
type text struct{ v *string }

// Set implements flag.Value.
func (t text) Set(s string) error {
	if s == "" {
		return fmt.Errorf("there is nothing in it")
	}
	*t.v = s
	return nil
}

// String implements flag.Value.
func (t text) String() string { return deref(t.v) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// toggle is a flag without a value.
type toggle struct{ v *bool }

// Set implements flag.Value.
func (t toggle) Set(s string) error {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", s)
	}
	*t.v = v
	return nil
}

// String implements flag.Value.
func (t toggle) String() string { return strconv.FormatBool(t.v != nil && *t.v) }

// IsBoolFlag lets it stand alone.
func (t toggle) IsBoolFlag() bool { return true }

// coreList is a set of cores.
type coreList []int

// Set implements flag.Value.
func (c *coreList) Set(text string) error {
	cores, err := poller.ParseCores(text)
	if err != nil {
		return fmt.Errorf("%q is not a set of cores: write 0, 1-3, 0,2 or a mask like 0x5", text)
	}
	*c = cores
	return nil
}

// String implements flag.Value.
func (c *coreList) String() string {
	var parts []string
	for _, core := range *c {
		parts = append(parts, strconv.Itoa(core))
	}
	return strings.Join(parts, ",")
}
