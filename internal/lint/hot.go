package lint

import (
	"go/ast"
	"strings"
)

// The directives. Anything else that starts with directivePrefix, with or
// without a space after the slashes, is a mistake and reported as one.
const (
	directivePrefix = "qpoll:"
	hotDirective    = "qpoll:hot"
	coldDirective   = "qpoll:cold"
)

// An exemption is a //qpoll:cold comment.
type exemption struct {
	reason string
	used   bool
}

// directives are the comments of one file that the hot rules obey.
type directives struct {
	hot  bool
	cold map[int]*exemption // by line
}

// readDirectives collects the directives of a file and reports malformed and
// misplaced ones.
func (t *Tree) readDirectives(f *File) (directives, []Problem) {
	d := directives{cold: make(map[int]*exemption)}
	var ps []Problem
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			text := strings.TrimPrefix(c.Text, "//")
			if !strings.HasPrefix(strings.TrimSpace(text), directivePrefix) {
				continue
			}
			name, rest, _ := strings.Cut(text, " ")
			switch {
			case name == hotDirective && rest == "":
				d.hot = true
				if len(f.AST.Decls) > 0 && c.Pos() > f.AST.Decls[0].Pos() {
					ps = append(ps, t.at(f, c.Pos(), "//%s belongs next to the package clause", hotDirective))
				}
			case name == coldDirective:
				reason := strings.TrimSpace(rest)
				if reason == "" {
					ps = append(ps, t.at(f, c.Pos(), "//%s needs a reason", coldDirective))
				}
				d.cold[t.Fset.Position(c.Pos()).Line] = &exemption{reason: reason}
			default:
				ps = append(ps, t.at(f, c.Pos(), "unknown directive %q", c.Text))
			}
		}
	}
	return d, ps
}

// HotFiles returns the files that declare themselves hot.
func HotFiles(t *Tree) []*File {
	var hot []*File
	for _, f := range t.GoFiles() {
		if d, _ := t.readDirectives(f); d.hot {
			hot = append(hot, f)
		}
	}
	return hot
}

// CheckHotFiles reports files of want that are missing or not marked hot.
func CheckHotFiles(t *Tree, want []string) []Problem {
	hot := make(map[string]bool)
	for _, f := range HotFiles(t) {
		hot[f.Path] = true
	}
	var ps []Problem
	for _, name := range want {
		switch {
		case hot[name]:
		case t.File(name) == nil:
			ps = append(ps, Problem{name, 0, "listed as a hot file, but does not exist"})
		default:
			ps = append(ps, Problem{name, 0, "listed as a hot file, but not marked //" + hotDirective})
		}
	}
	return ps
}

// CheckHot reports what hot files contain against the rules of the hot path,
// and directives that are malformed, misplaced or of no effect. load gives the
// type information of the package in a directory.
func CheckHot(t *Tree, load func(dir string) (*Package, error)) ([]Problem, error) {
	var ps []Problem
	for _, f := range t.GoFiles() {
		d, bad := t.readDirectives(f)
		ps = append(ps, bad...)
		if d.hot && f.IsTest() {
			ps = append(ps, Problem{f.Path, 0, "a test file cannot be hot"})
			continue
		}
		if d.hot && !otherArch(f.Path) {
			found, err := checkHotFile(t, f, load)
			if err != nil {
				return nil, err
			}
			for _, p := range found {
				if e := d.cold[p.Line]; e != nil {
					e.used = true
				} else {
					ps = append(ps, p)
				}
			}
		}
		for line, e := range d.cold {
			if !e.used && !(d.hot && otherArch(f.Path)) {
				ps = append(ps, Problem{f.Path, line, "//" + coldDirective + " exempts nothing"})
			}
		}
	}
	return ps, nil
}

func checkHotFile(t *Tree, f *File, load func(string) (*Package, error)) ([]Problem, error) {
	pkg, err := load(f.Dir())
	if err != nil {
		return nil, err
	}
	file := pkg.Files[f.Path]
	if file == nil {
		return []Problem{{f.Path, 0, "a hot file must be part of the default build"}}, nil
	}
	h := &hotWalker{pkg: pkg, path: f.Path, seen: make(map[Problem]bool)}
	ast.Inspect(file, h.visit)
	return h.problems, nil
}
