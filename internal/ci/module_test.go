package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inModule changes to a new module with one test file.
func inModule(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.26\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\n" + body,
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const (
	passing = "func TestPass(t *testing.T) {}\n"
	failing = "func TestFail(t *testing.T) { t.Fail() }\n"
	lazy    = "func TestLazy(t *testing.T) { t.SkipNow() }\n"
	fuzzing = "func FuzzGood(f *testing.F) { f.Add([]byte{1}); f.Fuzz(func(t *testing.T, b []byte) {}) }\n"
	finding = "func FuzzBad(f *testing.F) { f.Add([]byte{1}); f.Fuzz(func(t *testing.T, b []byte) { t.Fail() }) }\n"
	timing  = "func BenchmarkNothing(b *testing.B) {}\n"
)

func TestGates(t *testing.T) {
	for _, tt := range []struct {
		body, command string
		want          string // part of the error, empty for none
	}{
		{passing, "gotest -- go test ./...", ""},
		{passing + failing, "gotest -- go test ./...", "1 tests and 1 packages failed"},
		{passing + lazy, "gotest -- go test ./...", "skipped, which no test may: example.com/m/a TestLazy"},
		{passing, "gotest -- go test -run Nothing ./...", "only 0 tests ran"},
		{passing + "func broken() int {}\n", "gotest -- go test ./...", "0 tests and 1 packages failed"},
		{timing, "gotest -bench -- go test -bench . -benchtime 1x ./...", ""},
		{passing, "gotest -bench -- go test -bench . -benchtime 1x ./...", "only 0 benchmarks ran"},
		{fuzzing, "fuzz -each 1ms", ""},
		{fuzzing + finding, "fuzz -each 1ms", "example.com/m/a FuzzBad: exit status 1"},
		{passing, "fuzz -each 1ms", "no fuzz target found"},
		{fuzzing + "func broken() int {}\n", "fuzz -each 1ms", "listing fuzz targets"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			inModule(t, tt.body)
			err := run(t.Context(), strings.Fields(tt.command))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
