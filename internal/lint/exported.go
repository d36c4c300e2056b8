package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// CheckDocs reports packages without a package comment, and exported names of
// the public packages without a doc comment.
//
// A method of an interface may be explained in the comment of the interface.
// Fields need comments in the structs that a user fills in or reads numbers
// from; a comment above a field also stands for those that follow it without an
// empty line.
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

// fieldDocs matches the structs whose fields need comments.
var fieldDocs = regexp.MustCompile(`^Config$|(Options|Stats|Listener)$`)

// plainMethods say all in their name.
var plainMethods = map[string]bool{"Error": true, "String": true, "Unwrap": true}

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
		} else if ast.IsExported(receiver(d.Recv)) && !plainMethods[d.Name.Name] {
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
			if fieldDocs.MatchString(s.Name.Name) {
				c.fields(typ.Fields)
			}
		case *ast.InterfaceType:
			c.methods(typ.Methods, s.Doc.Text()+d.Doc.Text())
		}
	}
}

// fields checks the fields of a struct.
func (c *docChecker) fields(list *ast.FieldList) {
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
			c.want(headed || field.Comment != nil, name, "field")
		}
		last = c.t.Fset.Position(field.End()).Line
	}
}

// methods checks the methods of an interface, whose own comment is doc.
func (c *docChecker) methods(list *ast.FieldList, doc string) {
	for _, m := range list.List {
		for _, name := range m.Names {
			told := regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(doc)
			c.want(told || plainMethods[name.Name] || m.Doc != nil || m.Comment != nil, name, "method")
		}
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
