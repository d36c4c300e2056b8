package poller

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseCores(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
	}{
		{"0", []int{0}},
		{"0,2-5", []int{0, 2, 3, 4, 5}},
		{" 3 , 1 - 2 ", []int{1, 2, 3}},
		{"7,7,6-8", []int{6, 7, 8}},
		{"5-5", []int{5}},
		{"65535", []int{maxCore}},
		{"0x1", []int{0}},
		{"0x3d", []int{0, 2, 3, 4, 5}},
		{"0XF0", []int{4, 5, 6, 7}},
		{"0x" + "1" + strings.Repeat("0", 17), []int{68}},
		{"0x0001", []int{0}},
	} {
		got, err := ParseCores(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v; want %v", c.in, got, err, c.want)
		}
	}
}

func TestParseCoresErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "missing",
		" ":                    "missing",
		",":                    "missing",
		"1,":                   "missing",
		"1,,2":                 "missing",
		"1-":                   "missing",
		"-1":                   "missing",
		"1-2-3":                `"2-3" is no core number`,
		"a":                    `"a" is no core number`,
		"1.5":                  "no core number",
		"+1":                   "no core number",
		"5-2":                  "backwards",
		"65536":                "above 65535",
		"0-99999999999":        "above 65535",
		"99999999999999999999": "no core number",
		"0x":                   "no digits",
		"0x0":                  "empty",
		"0xg":                  "no hexadecimal digit",
		"0x1,2":                "no hexadecimal digit",
		"0x1_0":                "no hexadecimal digit",
		"0x" + strings.Repeat("0", (maxCore+1)/4) + "1": "longer",
	} {
		got, err := ParseCores(in)
		if err == nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want an error with %q", in, got, err, want)
		}
	}
}

func FuzzParseCores(f *testing.F) {
	for _, s := range []string{"0,2-5", "0x3d", "", "1-", "0x", "65535", "3-1,x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cores, err := ParseCores(s)
		if err != nil {
			return
		}
		if len(cores) == 0 || !slices.IsSorted(cores) || cores[0] < 0 || cores[len(cores)-1] > maxCore {
			t.Errorf("%q is %v", s, cores)
		}
		if len(slices.Compact(slices.Clone(cores))) != len(cores) {
			t.Errorf("%q names a core twice: %v", s, cores)
		}
	})
}

func TestAllowedCores(t *testing.T) {
	cores, err := AllowedCores()
	if err != nil || len(cores) == 0 || !slices.IsSorted(cores) {
		t.Fatalf("%v, %v", cores, err)
	}
	cores[0] = -1
	if again, _ := AllowedCores(); again[0] == -1 {
		t.Error("the caller can change the list")
	}
	// It is the process's, also when a pinned thread asks.
	p := startPoller(t, Config{Idle: Adaptive})
	onCore(t, p, func() {
		if got, err := AllowedCores(); err != nil || len(got) != len(cores) {
			t.Errorf("on core %v, %v are allowed", got, err)
		}
	})
}
