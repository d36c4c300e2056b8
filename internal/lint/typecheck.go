package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// A Package is a type-checked package.
type Package struct {
	Fset  *token.FileSet
	Files map[string]*ast.File // by path relative to the module's root
	Info  *types.Info
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Export     string // file with the export data
	GoFiles    []string
}

// A Checker type-checks packages of a module for the running platform,
// without build tags. What they import comes as export data from the build
// cache.
type Checker struct {
	root   string
	module string
	listed map[string]listed
	done   map[string]*Package
}

// NewChecker has the go command list and build, in the module at root, the
// packages that match the patterns and what they import.
func NewChecker(root, module string, patterns ...string) (*Checker, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "--"}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	c := &Checker{root: root, module: module, listed: make(map[string]listed), done: make(map[string]*Package)}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		c.listed[l.ImportPath] = l
	}
}

// Load type-checks the package in dir, a path relative to the module's root.
func (c *Checker) Load(dir string) (*Package, error) {
	if p := c.done[dir]; p != nil {
		return p, nil
	}
	l, ok := c.listed[path.Join(c.module, dir)]
	if !ok {
		return nil, fmt.Errorf("lint: go list knows no package in %s", dir)
	}
	src := make(map[string][]byte)
	for _, name := range l.GoFiles {
		b, err := os.ReadFile(filepath.Join(c.root, filepath.FromSlash(dir), name))
		if err != nil {
			return nil, err
		}
		src[path.Join(dir, name)] = b
	}
	p, err := c.Check(l.ImportPath, src)
	if err != nil {
		return nil, err
	}
	c.done[dir] = p
	return p, nil
}

// Check type-checks a package given as source text by file path.
func (c *Checker) Check(importPath string, src map[string][]byte) (*Package, error) {
	p := &Package{
		Fset:  token.NewFileSet(),
		Files: make(map[string]*ast.File),
		Info: &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue),
			Uses:  make(map[*ast.Ident]types.Object),
		},
	}
	var files []*ast.File
	for name, text := range src {
		f, err := parser.ParseFile(p.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.Files[name] = f
		files = append(files, f)
	}
	conf := types.Config{
		Importer: importer.ForCompiler(p.Fset, "gc", c.exportData),
		Sizes:    types.SizesFor("gc", runtime.GOARCH),
	}
	_, err := conf.Check(importPath, p.Fset, files, p.Info)
	return p, err
}

func (c *Checker) exportData(importPath string) (io.ReadCloser, error) {
	l := c.listed[importPath]
	if l.Export == "" {
		return nil, fmt.Errorf("no export data for %s", importPath)
	}
	return os.Open(l.Export)
}

// otherArch reports whether the file name restricts the file to an
// architecture other than the running one. Its turn comes when the tests run
// there.
func otherArch(name string) bool {
	stem := strings.TrimSuffix(path.Base(name), ".go")
	stem = strings.TrimSuffix(stem, "_unsafe")
	for _, arch := range []string{"amd64", "arm64"} {
		if strings.HasSuffix(stem, "_"+arch) {
			return arch != runtime.GOARCH
		}
	}
	return false
}
