package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fence writes a page with ”' for the fences.
func fence(s string) []byte { return []byte(strings.ReplaceAll(s, "'''", "```")) }

func TestPageCommand(t *testing.T) {
	page := fence("'''sh run=test\ngo test ./...\n'''\n'''sh run\nls\n'''\n'''sh run=twice\na\n'''\n'''sh run=twice\nb\n'''\n'''sh run=empty\n'''\n")
	if got, err := pageCommand(page, "test"); got != "go test ./..." || err != nil {
		t.Errorf("command %q, %v", got, err)
	}
	for _, gate := range []string{"twice", "empty", "none"} {
		if got, err := pageCommand(page, gate); err == nil {
			t.Errorf("%s: command %q, want an error", gate, got)
		}
	}
}

func TestPageScripts(t *testing.T) {
	page := fence("text\n\n'''sh run\nls\n'''\n'''sh run=test\ngo test\n'''\n'''sh manual\nreboot\n'''\n'''text\nx\n'''\n")
	if got, want := pageScripts("a.md", page), []script{{"a.md", 3, "ls\n"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("scripts %v, want %v", got, want)
	}
}

func TestRunPages(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, fence(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	proof := filepath.Join(dir, "proof")
	good := file("good.md", "'''sh run\ntouch "+proof+"\n'''\n")
	bad := file("bad.md", "'''sh run\nfalse\ntrue\n'''\n")
	pipe := file("pipe.md", "'''sh run\nfalse | true\n'''\n")
	none := file("none.md", "'''sh manual\ntrue\n'''\n")
	if err := runPages(t.Context(), []string{none, good}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(proof); err != nil {
		t.Errorf("the block of %s did not run: %v", good, err)
	}
	for _, name := range []string{bad, pipe, none, filepath.Join(dir, "gone.md")} {
		if err := runPages(t.Context(), []string{name}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestIOPS(t *testing.T) {
	for doc, want := range map[string]float64{
		`{"iops": 12.5}`: 12.5,
		`{"runs":[{"read":{"iops":3},"write":{"iops":0}}]}`: 3,
		`{"IOPS": 7}`:             7,
		`{"iops": 0}`:             0,
		`{"iops": "12"}`:          0,
		`{"kiops": 12}`:           0,
		`{"iops": 1} {"iops": 2}`: 0,
		``:                        0,
		`IOPS: 12`:                0,
	} {
		got, err := iops(strings.NewReader(doc))
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %v, %v, want %v", doc, got, err, want)
		}
	}
}

func TestParseList(t *testing.T) {
	const out = `{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"FuzzOne\n"}
{"Action":"output","Package":"m/a","Output":"FuzzTwo\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.01s\n"}
{"Action":"output","Package":"m/b","Output":"FuzzThree\n"}
`
	want := []fuzzPackage{{Path: "m/a", Targets: []string{"FuzzOne", "FuzzTwo"}}, {Path: "m/b", Targets: []string{"FuzzThree"}}}
	if got := parseList([]byte(out)); !reflect.DeepEqual(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
}

func TestFuzzVerdict(t *testing.T) {
	const ran = "fuzz: elapsed: 0s, execs: 0 (0/sec)\nfuzz: elapsed: 3s, execs: 1934 (644/sec)\n"
	if n, err := fuzzVerdict([]byte(ran + "PASS\n")); n != 1934 || err != nil {
		t.Errorf("%d execs, %v", n, err)
	}
	for name, log := range map[string]string{
		"failed":   ran + "--- FAIL: FuzzX\nFAIL\n",
		"skipped":  ran + "--- SKIP: FuzzX\nPASS\n",
		"no execs": "fuzz: elapsed: 0s, execs: 0 (0/sec)\nPASS\n",
		"no run":   "testing: warning: no fuzz tests to fuzz\nPASS\n",
		"blind":    "warning: the test binary was not built with coverage instrumentation\n" + ran + "PASS\n",
	} {
		if _, err := fuzzVerdict([]byte(log)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// standIn is the environment variable that makes this test binary act as a
// fuzzing one; the value says how.
const standIn = "QPOLL_CI_STAND_IN"

func TestMain(m *testing.M) {
	start := "fuzz: elapsed: 0s, gathering baseline coverage: 1/1 completed, now fuzzing with 2 workers"
	switch os.Getenv(standIn) {
	case "":
		os.Exit(m.Run())
	case "unseeded":
		start = "fuzz: elapsed: 0s, execs: 0 (0/sec), new interesting: 0 (total: 0)"
		fallthrough
	case "good":
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		fmt.Println(start)
		<-interrupts
		fmt.Println("fuzz: elapsed: 1s, execs: 42 (42/sec)\nPASS")
	case "finds":
		fmt.Println(start + "\n--- FAIL: FuzzX")
		os.Exit(1)
	case "nothing":
		fmt.Println("PASS")
	}
}

func TestFuzzOne(t *testing.T) {
	for _, tt := range []struct {
		act   string
		d     time.Duration
		execs int // 0 for an error
	}{
		{"good", time.Millisecond, 42},
		{"unseeded", time.Millisecond, 42},
		{"finds", time.Hour, 0},
		{"nothing", time.Hour, 0},
	} {
		t.Setenv(standIn, tt.act)
		n, err := fuzzOne(t.Context(), os.Args[0], ".", "FuzzX", t.TempDir(), tt.d)
		if n != tt.execs || (err != nil) != (tt.execs == 0) {
			t.Errorf("%s: %d execs, %v, want %d", tt.act, n, err, tt.execs)
		}
	}
}

func TestRunUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nosuch"}, {"iops", "x"}, {"page-command"}, {"page-command", "", "README.md"}, {"gotest", "-nosuch"}, {"gotest", "--", "ls"}, {"fuzz", "-each", "x"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
