package kmod

import (
	"fmt"
	"strings"
)

// Module is a module to load.
type Module struct {
	Name string // canonical
	File string // relative to the directory of the index
}

// Builtin reports whether the kernel has the module built in.
func (x *Index) Builtin(name string) bool { return x.builtin[Name(name)] }

// Resolve returns the modules to load, in order, so that all of the named ones
// are there in the end. What is built in does not appear. A soft dependency
// that the kernel does not have is left out; any other is ErrUnknown.
func (x *Index) Resolve(names ...string) ([]Module, error) {
	r := resolver{x: x, state: map[string]visit{}}
	for _, n := range names {
		if err := r.add(n); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

type visit uint8

const (
	visiting visit = iota + 1
	visited
)

type resolver struct {
	x     *Index
	state map[string]visit
	stack []string
	out   []Module
}

func (r *resolver) add(name string) error {
	n, known := r.x.find(name)
	if !known {
		return fmt.Errorf("%w: %s%s", ErrUnknown, name, r.via())
	}
	if r.x.builtin[n] || r.state[n] == visited {
		return nil
	}
	if r.state[n] == visiting {
		return fmt.Errorf("%w: %s%s", ErrCycle, name, r.via())
	}
	r.state[n] = visiting
	r.stack = append(r.stack, n)
	// A module lists all that it needs, directly or not, nearest first; each
	// of those has a line of its own, so following them orders them rightly.
	for _, d := range r.x.deps[n] {
		if err := r.add(d); err != nil {
			return err
		}
	}
	for _, s := range r.x.pre[n] {
		// A soft dependency on one another is no error: whoever comes
		// first has to do without.
		if d, ok := r.x.find(s); ok && r.state[d] != visiting {
			if err := r.add(d); err != nil {
				return err
			}
		}
	}
	r.stack = r.stack[:len(r.stack)-1]
	r.state[n] = visited
	r.out = append(r.out, Module{Name: n, File: r.x.file[n]})
	return nil
}

func (r *resolver) via() string {
	if len(r.stack) == 0 {
		return ""
	}
	return " (needed by " + strings.Join(r.stack, ", ") + ")"
}

// find returns the canonical name for a module name or an alias.
func (x *Index) find(name string) (string, bool) {
	n := Name(name)
	if x.builtin[n] || x.file[n] != "" {
		return n, true
	}
	if a := x.alias[n]; a != "" && (x.builtin[a] || x.file[a] != "") {
		return a, true
	}
	return n, false
}
