package lint

import "go/ast"

// skipMethods stop a test without a verdict.
var skipMethods = map[string]bool{"Skip": true, "Skipf": true, "SkipNow": true}

// CheckSkips reports tests that can skip. A test whose needs are not met
// fails; what only some builds can test is behind a build tag.
func CheckSkips(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.GoFiles() {
		handles := testingNames(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !skipMethods[sel.Sel.Name] {
				return true
			}
			if handles[lastName(sel.X)] {
				ps = append(ps, t.at(f, sel.Pos(), "a test must not skip"))
			}
			return true
		})
	}
	return ps
}

// lastName returns b for both b and a.b.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// testingNames returns the names of all parameters and fields whose type is testing.TB
// or a pointer to testing.T, B or F.
func testingNames(file *ast.File) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, ok := typ.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "testing" {
			for _, name := range field.Names {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}
