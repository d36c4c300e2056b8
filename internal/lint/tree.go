package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A File is one text file of the tree.
type File struct {
	Path string // slash-separated, relative to the module's root
	Src  []byte
	AST  *ast.File // nil if the file is not Go
}

// Dir returns the directory of the file, "." for the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is compiled for tests only.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Imports returns the import specs of a Go file with their unquoted paths.
func (f *File) Imports() map[*ast.ImportSpec]string {
	m := make(map[*ast.ImportSpec]string)
	if f.AST == nil {
		return m
	}
	for _, spec := range f.AST.Imports {
		m[spec] = strings.Trim(spec.Path.Value, "\"`")
	}
	return m
}

// A Tree is the text of a module. Binary files, version control and testdata
// are left out: a fuzz corpus may hold anything.
type Tree struct {
	Module string // module path, from go.mod
	Fset   *token.FileSet
	Files  []*File // in lexical order of their paths
}

// A Problem is one breach of a rule.
type Problem struct {
	Path string
	Line int // 0 if the whole file is meant
	Text string
}

// String gives the problem in the form that editors jump to.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Path, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// Load reads the tree and parses its Go files with their comments.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // .git is a file in a linked work tree
			return nil
		}
		return t.add(fsys, name)
	})
	if err != nil {
		return nil, err
	}
	if t.Module == "" {
		return nil, fmt.Errorf("lint: no module line in go.mod")
	}
	return t, nil
}

func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(src, 0) >= 0 {
		return nil
	}
	f := &File{Path: name, Src: src}
	if strings.HasSuffix(name, ".go") {
		f.AST, err = parser.ParseFile(t.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
	}
	if name == "go.mod" {
		t.Module = modulePath(src)
	}
	t.Files = append(t.Files, f)
	return nil
}

func modulePath(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// GoFiles returns the Go files of the tree.
func (t *Tree) GoFiles() []*File {
	var files []*File
	for _, f := range t.Files {
		if f.AST != nil {
			files = append(files, f)
		}
	}
	return files
}

// File returns the file with that path, or nil.
func (t *Tree) File(path string) *File {
	for _, f := range t.Files {
		if f.Path == path {
			return f
		}
	}
	return nil
}

// isDir reports whether there are files below that path.
func (t *Tree) isDir(path string) bool {
	return slices.ContainsFunc(t.Files, func(f *File) bool { return under(f.Dir(), path) })
}

// rel strips the module path off an import path; ok is false for imports of
// other modules.
func (t *Tree) rel(importPath string) (dir string, ok bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// at builds a problem for the position of a node.
func (t *Tree) at(f *File, pos token.Pos, format string, args ...any) Problem {
	return Problem{f.Path, t.Fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// under reports whether dir is root or below it.
func under(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, root+"/")
}

// underAny reports whether dir is one of roots or below one.
func underAny(dir string, roots []string) bool {
	for _, r := range roots {
		if under(dir, r) {
			return true
		}
	}
	return false
}
