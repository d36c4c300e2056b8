// Package kmod finds out which kernel modules a module needs, and in which
// order they load, from the index files that depmod writes beside them.
package kmod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// ErrUnknown is returned for a module that the kernel does not have.
var ErrUnknown = errors.New("kmod: no such module")

// ErrCycle is returned for modules that need one another.
var ErrCycle = errors.New("kmod: circular dependency")

// Index is the content of the index files of one kernel. It does not change
// after Load, so it is safe for concurrent use.
type Index struct {
	file    map[string]string   // module name to file, relative to the index
	deps    map[string][]string // module name to the names of what it needs
	pre     map[string][]string // soft dependencies to load first
	alias   map[string]string   // aliases without a wildcard
	builtin map[string]bool
}

// Name returns the canonical name of a module: hyphens become underscores, and
// directory and suffix go.
func Name(s string) string {
	s = path.Base(s)
	for _, suffix := range []string{".xz", ".zst", ".gz", ".ko"} {
		s = strings.TrimSuffix(s, suffix)
	}
	return strings.ReplaceAll(s, "-", "_")
}

// Load reads modules.dep, modules.builtin, modules.softdep and modules.alias
// from the top of fsys. The last two may be missing.
func Load(fsys fs.FS) (*Index, error) {
	x := &Index{
		file: map[string]string{}, deps: map[string][]string{}, pre: map[string][]string{},
		alias: map[string]string{}, builtin: map[string]bool{},
	}
	for _, f := range []struct {
		name     string
		optional bool
		line     func(string) error
	}{
		{"modules.dep", false, x.depLine},
		{"modules.builtin", false, x.builtinLine},
		{"modules.softdep", true, x.softdepLine},
		{"modules.alias", true, x.aliasLine},
	} {
		err := eachLine(fsys, f.name, f.line)
		if err != nil && !(f.optional && errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("kmod: %s: %w", f.name, err)
		}
	}
	return x, nil
}

// eachLine calls f for every line that is neither empty nor a comment.
func eachLine(fsys fs.FS, name string, f func(string) error) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return lines(file, f)
}

func lines(r io.Reader, f func(string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		l := strings.TrimSpace(s.Text())
		if l == "" || l[0] == '#' {
			continue
		}
		if err := f(l); err != nil {
			return err
		}
	}
	return s.Err()
}

// depLine takes "kernel/a.ko: kernel/b.ko kernel/c.ko".
func (x *Index) depLine(l string) error {
	file, rest, ok := strings.Cut(l, ":")
	if !ok {
		return fmt.Errorf("no colon in %q", l)
	}
	n := Name(file)
	x.file[n] = file
	for _, d := range strings.Fields(rest) {
		x.deps[n] = append(x.deps[n], Name(d))
	}
	return nil
}

func (x *Index) builtinLine(l string) error {
	x.builtin[Name(l)] = true
	return nil
}

// softdepLine takes "softdep a pre: b c post: d". What should come afterwards
// is of no concern here.
func (x *Index) softdepLine(l string) error {
	f := strings.Fields(l)
	if len(f) < 2 || f[0] != "softdep" {
		return fmt.Errorf("bad line %q", l)
	}
	in := false
	for _, w := range f[2:] {
		if strings.HasSuffix(w, ":") {
			in = w == "pre:"
		} else if in {
			n := Name(f[1])
			x.pre[n] = append(x.pre[n], w)
		}
	}
	return nil
}

// aliasLine takes "alias pattern module". The first of several wins, as it does
// in modprobe for a name that is spelt out.
func (x *Index) aliasLine(l string) error {
	f := strings.Fields(l)
	if len(f) != 3 || f[0] != "alias" {
		return fmt.Errorf("bad line %q", l)
	}
	if strings.ContainsAny(f[1], "*?[") {
		return nil
	}
	if n := Name(f[1]); x.alias[n] == "" {
		x.alias[n] = Name(f[2])
	}
	return nil
}
