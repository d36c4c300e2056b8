package main

import (
	"slices"
	"strings"
	"testing"
)

const goodRun = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestX/sub"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.010s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"output","Package":"m/empty","Output":"?   \tm/empty\t[no test files]\n"}
{"Action":"skip","Package":"m/empty"}
`

const badRun = `{"ImportPath":"m/c","Action":"build-output","Output":"c.go:1: no such thing\n"}
{"ImportPath":"m/c","Action":"build-fail"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c [build failed]\n"}
{"Action":"fail","Package":"m/c","FailedBuild":"m/c"}
{"Action":"output","Package":"m/b","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"m/b","Test":"TestGood"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"loud\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Test":"TestHung","Output":"panic: timed out\n"}
{"Action":"skip","Package":"m/b","Test":"TestLazy"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.1s\n"}
{"Action":"fail","Package":"m/b"}
not json
`

const emptyRun = `{"Action":"output","Package":"m/z","Output":"ok  \tm/z\t0.010s [no tests to run]\n"}
{"Action":"pass","Package":"m/z"}
`

const benchRun = `{"Action":"output","Package":"m/a","Test":"BenchmarkRing","Output":"BenchmarkRing\n"}
{"Action":"output","Package":"m/a","Test":"BenchmarkRing","Output":"BenchmarkRing-2  \t"}
{"Action":"output","Package":"m/a","Test":"BenchmarkRing","Output":"  1\t  151.0 ns/op\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.010s\n"}
{"Action":"pass","Package":"m/a"}
`

func read(t *testing.T, run string) (tally, string) {
	t.Helper()
	var w strings.Builder
	got, err := readEvents(strings.NewReader(run), &w)
	if err != nil {
		t.Fatal(err)
	}
	return got, w.String()
}

func TestReadEventsGood(t *testing.T) {
	got, out := read(t, goodRun)
	if got.Passed != 2 || got.Failed != 0 || got.Packages != 1 || got.Broken != 0 || len(got.Skipped) != 0 {
		t.Errorf("tally %+v", got)
	}
	if want := "ok  \tm/a\t0.010s\t2 passed\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}

func TestReadEventsBad(t *testing.T) {
	got, out := read(t, badRun)
	if got.Passed != 1 || got.Failed != 1 || got.Broken != 2 || !slices.Equal(got.Skipped, []string{"m/b TestLazy"}) {
		t.Errorf("tally %+v", got)
	}
	for _, want := range []string{"no such thing", "[build failed]", "loud", "panic: timed out", "FAIL\tm/b", "not json"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "quiet") {
		t.Errorf("output of a test that passed:\n%s", out)
	}
}

func TestReadEventsBench(t *testing.T) {
	if got, _ := read(t, benchRun); got.Benchmarks != 1 || got.Passed != 0 {
		t.Errorf("tally %+v", got)
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  string
		l    limits
		want string // part of the error, empty for none
	}{
		{"good", goodRun, limits{min: 2}, ""},
		{"too few", goodRun, limits{min: 3}, "only 2 tests ran"},
		{"none", "", limits{min: 1}, "only 0 tests ran"},
		{"no benchmark", goodRun, limits{min: 1, bench: true}, "only 0 benchmarks ran"},
		{"benchmark", benchRun, limits{min: 1, bench: true}, ""},
		{"empty package", goodRun + emptyRun, limits{min: 1}, "no tests: m/z"},
		{"no benchmark in one", benchRun + emptyRun, limits{min: 1, bench: true}, ""},
		{"failed", badRun, limits{min: 1}, "1 tests and 2 packages failed"},
		{"skipped", badRun, limits{min: 1}, "m/b TestLazy"},
	} {
		got, _ := read(t, tt.run)
		err := tt.l.verdict(got)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: verdict %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestJSONCommand(t *testing.T) {
	got, err := jsonCommand([]string{"go", "test", "-race", "./..."})
	if want := []string{"go", "test", "-json", "-race", "./..."}; err != nil || !slices.Equal(got, want) {
		t.Errorf("command %q, %v, want %q", got, err, want)
	}
	for _, bad := range [][]string{nil, {"go"}, {"make", "test"}, {"go", "vet", "./..."}} {
		if _, err := jsonCommand(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
