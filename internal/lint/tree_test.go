package lint

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree makes a module of the given files; a go.mod is added.
func tree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n\ngo 1.26\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tr, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// expect compares problems with substrings, in any order.
func expect(t *testing.T, problems []Problem, want ...string) {
	t.Helper()
	rest := slices.Clone(problems)
	for _, w := range want {
		i := slices.IndexFunc(rest, func(p Problem) bool { return strings.Contains(p.String(), w) })
		if i < 0 {
			t.Errorf("no problem contains %q in %v", w, problems)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	for _, p := range rest {
		t.Errorf("unexpected: %s", p)
	}
}

func TestLoad(t *testing.T) {
	tr := tree(t, map[string]string{
		"a/a.go":            "package a\n",
		"a/a_test.go":       "package a\n",
		"a/testdata/bad.go": "not Go at all",
		".git/config":       "[core]\n",
		"prog":              "\x7fELF\x00",
		".ci/run":           "#!/bin/bash\n",
	})
	var got []string
	for _, f := range tr.Files {
		got = append(got, f.Path)
	}
	if want := []string{".ci/run", "a/a.go", "a/a_test.go", "go.mod"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if tr.Module != "example.com/m" || len(tr.GoFiles()) != 2 || tr.File("a/a.go").IsTest() || !tr.File("a/a_test.go").IsTest() {
		t.Errorf("module %q, %d Go files", tr.Module, len(tr.GoFiles()))
	}
}

func TestLoadErrors(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"no module": {"a.go": {Data: []byte("package a\n")}},
		"bad Go":    {"go.mod": {Data: []byte("module m\n")}, "a.go": {Data: []byte("package\n")}},
	} {
		if _, err := Load(fsys); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
