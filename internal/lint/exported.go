package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// CheckDocs reports packages without a package comment, and exported names of
// the public packages without a doc comment.
//
// A comment above a struct field or interface method also stands for those
// that follow it without an empty line. Fields of structs that are marked
// structs.HostLayout may go without: their names and places are those of the
// specification that the struct names.
func CheckDocs(t *Tree) []Problem {
	var ps []Problem
	documented := make(map[string]bool)
	first := make(map[string]*File)
	for _, f := range t.GoFiles() {
		if f.IsTest() {
			continue
		}
		dir := f.Dir()
		if first[dir] == nil {
			first[dir] = f
		}
		documented[dir] = documented[dir] || f.AST.Doc != nil
		if f.AST.Name.Name != "main" && !internal(dir) {
			c := docChecker{t: t, f: f}
			for _, d := range f.AST.Decls {
				c.decl(d)
			}
			ps = append(ps, c.problems...)
		}
	}
	for dir, f := range first {
		if !documented[dir] {
			ps = append(ps, t.at(f, f.AST.Name.Pos(), "package %s has no package comment", path.Join(t.Module, dir)))
		}
	}
	return ps
}

func internal(dir string) bool {
	for elem := range strings.SplitSeq(dir, "/") {
		if elem == "internal" {
			return true
		}
	}
	return false
}

type docChecker struct {
	t        *Tree
	f        *File
	problems []Problem
}

func (c *docChecker) want(ok bool, name *ast.Ident, kind string) {
	if !ok && name.IsExported() {
		c.problems = append(c.problems, c.t.at(c.f, name.Pos(), "exported %s %s has no doc comment", kind, name.Name))
	}
}

func (c *docChecker) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			c.want(d.Doc != nil, d.Name, "function")
		} else if ast.IsExported(receiver(d.Recv)) {
			c.want(d.Doc != nil, d.Name, "method")
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			c.spec(d, spec)
		}
	}
}

func (c *docChecker) spec(d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			c.want(d.Doc != nil || s.Doc != nil || s.Comment != nil, name, d.Tok.String())
		}
	case *ast.TypeSpec:
		c.want(s.Doc != nil || d.Doc != nil && d.Lparen == token.NoPos, s.Name, "type")
		if !s.Name.IsExported() {
			return
		}
		switch typ := s.Type.(type) {
		case *ast.StructType:
			if !hostLayout(typ) {
				c.fields(typ.Fields, "field")
			}
		case *ast.InterfaceType:
			c.fields(typ.Methods, "method")
		}
	}
}

// fields checks the fields of a struct or the methods of an interface.
func (c *docChecker) fields(list *ast.FieldList, kind string) {
	headed := false // a comment stands above this run of lines
	last := 0
	for _, field := range list.List {
		start := field.Pos()
		if field.Doc != nil {
			start = field.Doc.Pos()
		}
		if c.t.Fset.Position(start).Line > last+1 {
			headed = false
		}
		headed = headed || field.Doc != nil
		for _, name := range field.Names {
			c.want(headed || field.Comment != nil, name, kind)
		}
		last = c.t.Fset.Position(field.End()).Line
	}
}

// receiver returns the name of a receiver's type, less pointer and type
// parameters.
func receiver(recv *ast.FieldList) string {
	x := recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

func hostLayout(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if sel, ok := field.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "HostLayout" {
			return true
		}
	}
	return false
}
