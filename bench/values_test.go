package main

import (
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for in, want := range map[string]size{
		"0": 0, "512": 512, "4096": 4096, "4k": 4096, "4K": 4096, "4kb": 4096, "4KiB": 4096, "128KiB": 128 << 10,
		"1m": 1 << 20, "1MiB": 1 << 20, "3g": 3 << 30, "1T": 1 << 40, "512b": 512, " 8k ": 8192,
	} {
		var s size
		if err := s.Set(in); err != nil || s != want {
			t.Errorf("%q is %d, %v, want %d", in, s, err, want)
		}
	}
	for _, in := range []string{"", "k", "b", "ib", "4x", "4i", "4ib", "-1", "1.5k", "0x10", "99999999999999999999", "9000000t", "1 k", "4kk"} {
		s := size(7)
		if err := s.Set(in); err == nil || s != 7 {
			t.Errorf("%q is %d, want an error", in, s)
		}
	}
	for s, want := range map[size]string{0: "0", 512: "512", 4096: "4 KiB", 1 << 20: "1 MiB", 1<<20 + 1: "1048577", 3 << 40: "3 TiB"} {
		if got := s.String(); got != want {
			t.Errorf("%d is written %q, want %q", s, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"10": 10 * time.Second, "10s": 10 * time.Second, "200ms": 200 * time.Millisecond, "0.5": time.Second / 2,
		"1m30s": 90 * time.Second, "0": 0,
	} {
		var d seconds
		if err := d.Set(in); err != nil || time.Duration(d) != want {
			t.Errorf("%q is %v, %v, want %v", in, &d, err, want)
		}
	}
	for _, in := range []string{"", "x", "10x", "-1", "-1s", "1e300", "NaN", "99999999h"} {
		var d seconds
		if err := d.Set(in); err == nil {
			t.Errorf("%q is %v, want an error", in, &d)
		}
	}
}

// Values must be fit for the zero value that package flag makes of them.
func TestZeroValues(t *testing.T) {
	for _, v := range []flag.Value{new(size), new(seconds), number{}, choice{}, text{}, toggle{}, new(coreList)} {
		zero := reflect.New(reflect.TypeOf(v)).Elem()
		if zero.Kind() == reflect.Pointer {
			zero = reflect.New(zero.Type().Elem())
		}
		_ = zero.Interface().(flag.Value).String()
	}
}

// parse reads arguments as the command does.
func parse(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	var help strings.Builder
	return parseOptions(args, &help)
}

func TestOptions(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if o.target != embedded || o.pattern != "randread" || o.block != 4096 || o.depth != 128 || o.nsid != 1 ||
		time.Duration(o.time) != 10*time.Second || time.Duration(o.warmup) != time.Second {
		t.Errorf("defaults %+v", o)
	}
	wl := o.workload()
	if !wl.Random || wl.ReadPercent != 100 || wl.Bytes != 4096 || wl.Jobs != 128 {
		t.Errorf("workload %+v", wl)
	}
	long, err := parse(t, "-target", "trtype:tcp traddr:a", "-rw", "rw", "-mix", "70", "-bs", "8k", "-depth", "32", "-queues", "2",
		"-cores", "0,2-3", "-time", "2", "-warmup", "0", "-hdgst", "-ddgst", "-nsid", "3", "-range", "1g")
	if err != nil {
		t.Fatal(err)
	}
	short, err := parse(t, "-r", "trtype:tcp traddr:a", "-w", "rw", "-M", "70", "-o", "8192", "-q", "32", "-P", "2",
		"-c", "0xd", "-t", "2s", "-a", "0s", "-H", "-I", "-nsid", "3", "-range", "1024m")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(long, short) {
		t.Errorf("long flags %+v\nshort flags %+v", long, short)
	}
	if wl := long.workload(); wl.Random || wl.ReadPercent != 70 || wl.Range != 1<<30 {
		t.Errorf("workload %+v", wl)
	}
	for pattern, want := range map[string]struct {
		random bool
		reads  int
	}{"read": {false, 100}, "write": {false, 0}, "randread": {true, 100}, "randwrite": {true, 0}, "rw": {false, 50}, "randrw": {true, 50}} {
		o, err := parse(t, "-rw", pattern)
		if err != nil {
			t.Fatal(err)
		}
		if wl := o.workload(); wl.Random != want.random || wl.ReadPercent != want.reads {
			t.Errorf("%s: %+v", pattern, wl)
		}
	}
	for in, want := range map[string]string{"10s": "1s", "1h": "1s", "2s": "200ms", "200ms": "20ms"} {
		if o, err := parse(t, "-time", in); err != nil || o.warmup.String() != want {
			t.Errorf("-time %s: warm-up %v, want %s", in, &o.warmup, want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"-help"}, {"--help"}, {"help"}} {
		var out, errs strings.Builder
		if code := run(t.Context(), args, &out, &errs); code != exitOK || errs.Len() != 0 {
			t.Errorf("%q: exit status %d, %s", args, code, &errs)
		}
		for _, want := range []string{"-w, -rw pattern", "(randread)", "bench target", "-json file"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in the help", args, want)
			}
		}
		for line := range strings.Lines(out.String()) {
			if len(line) > 81 || strings.Contains(line, "`") {
				t.Errorf("line %q", line)
			}
		}
	}
}
