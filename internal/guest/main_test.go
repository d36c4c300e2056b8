package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain fails a run that leaves a child process or a file behind.
func TestMain(m *testing.M) {
	before := leftovers()
	code := m.Run()
	for _, l := range leftovers() {
		if !strings.Contains(strings.Join(before, "\n"), l) {
			fmt.Fprintln(os.Stderr, "left behind:", l)
			code = 1
		}
	}
	os.Exit(code)
}

// leftovers lists the children of this process, and its temporary files.
func leftovers() []string {
	var out []string
	children, _ := filepath.Glob("/proc/self/task/*/children")
	for _, c := range children {
		b, _ := os.ReadFile(c)
		for _, pid := range strings.Fields(string(b)) {
			out = append(out, "process "+pid)
		}
	}
	files, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	return append(out, files...)
}
