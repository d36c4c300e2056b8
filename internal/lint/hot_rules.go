package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// coldPackages are those of which a hot file uses nothing: neither imports
// them nor calls a method of one of their types.
var coldPackages = map[string]string{
	"fmt":          "it formats and allocates",
	"log":          "it formats and locks",
	"log/slog":     "it formats and allocates",
	"math/rand":    "its global source locks",
	"math/rand/v2": "use a generator of the core's own",
	"reflect":      "it allocates",
	"sync":         "the hot path has one owner and no locks",
	"os":           "it makes system calls",
	"os/exec":      "it makes system calls",
	"net":          "it goes through the runtime's network poller",
}

// coldFuncs are functions of packages that are otherwise allowed.
var coldFuncs = map[string]map[string]bool{
	"time": {
		"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true,
		"AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
	},
	"runtime": {"Gosched": true, "GC": true, "Stack": true, "Caller": true, "Callers": true, "ReadMemStats": true},
}

// rmwPrefixes are the names of read-modify-write operations in sync/atomic,
// functions and methods alike. Loads and single-writer stores are allowed.
var rmwPrefixes = []string{"Add", "And", "CompareAndSwap", "Or", "Swap"}

// hotWalker walks one file of the hot path.
type hotWalker struct {
	pkg      *Package
	path     string
	problems []Problem
	seen     map[Problem]bool
}

func (h *hotWalker) report(pos token.Pos, text string) {
	p := Problem{h.path, h.pkg.Fset.Position(pos).Line, "hot path: " + text}
	if !h.seen[p] {
		h.seen[p] = true
		h.problems = append(h.problems, p)
	}
}

func (h *hotWalker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		h.importSpec(n)
	case *ast.DeferStmt:
		h.report(n.Pos(), "defer")
	case *ast.GoStmt:
		h.report(n.Pos(), "go statement")
	case *ast.FuncLit:
		h.report(n.Pos(), "function literal")
	case *ast.SelectStmt:
		h.report(n.Pos(), "select")
	case *ast.SendStmt:
		h.report(n.Pos(), "channel send")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			h.report(n.Pos(), "channel receive")
		}
	case *ast.MapType:
		h.report(n.Pos(), "map type")
	case *ast.RangeStmt:
		h.rangeOver(n)
	case *ast.IndexExpr:
		if h.isMap(n.X) {
			h.report(n.Pos(), "map access")
		}
	case *ast.CompositeLit:
		if h.isMap(n) {
			h.report(n.Pos(), "map literal")
		}
	case *ast.CallExpr:
		h.call(n)
	case *ast.Ident:
		h.use(n)
	}
	return true
}

func (h *hotWalker) importSpec(spec *ast.ImportSpec) {
	p := strings.Trim(spec.Path.Value, "\"`")
	if why, cold := coldPackages[p]; cold {
		h.report(spec.Pos(), "import of "+p+": "+why)
	}
}

func (h *hotWalker) rangeOver(n *ast.RangeStmt) {
	switch h.underlying(n.X).(type) {
	case *types.Chan:
		h.report(n.Pos(), "range over a channel")
	case *types.Map:
		h.report(n.Pos(), "range over a map")
	case *types.Signature:
		h.report(n.Pos(), "range over a function makes a closure of the body")
	}
}

// call looks at the built-in functions; others are seen as uses of their name.
func (h *hotWalker) call(n *ast.CallExpr) {
	id, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok || len(n.Args) == 0 {
		return
	}
	if _, ok := h.pkg.Info.Uses[id].(*types.Builtin); !ok {
		return
	}
	switch t := h.underlying(n.Args[0]); id.Name {
	case "close", "delete":
		h.report(n.Pos(), id.Name)
	case "clear", "make":
		switch t.(type) {
		case *types.Map:
			h.report(n.Pos(), id.Name+" of a map")
		case *types.Chan:
			h.report(n.Pos(), id.Name+" of a channel")
		}
	}
}

// use looks at what a name stands for, so that neither a renamed import nor an
// embedded or promoted method hides it.
func (h *hotWalker) use(id *ast.Ident) {
	obj := h.pkg.Info.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return
	}
	from := obj.Pkg().Path()
	if why, cold := coldPackages[from]; cold {
		h.report(id.Pos(), from+"."+obj.Name()+": "+why)
		return
	}
	fn, ok := obj.(*types.Func)
	if !ok {
		return
	}
	if coldFuncs[from][fn.Name()] && fn.Signature().Recv() == nil {
		h.report(id.Pos(), from+"."+fn.Name())
	}
	if from == "sync/atomic" {
		for _, prefix := range rmwPrefixes {
			if strings.HasPrefix(fn.Name(), prefix) {
				h.report(id.Pos(), "atomic read-modify-write "+fn.Name())
			}
		}
	}
}

func (h *hotWalker) isMap(x ast.Expr) bool {
	_, ok := h.underlying(x).(*types.Map)
	return ok
}

func (h *hotWalker) underlying(x ast.Expr) types.Type {
	t := h.pkg.Info.TypeOf(x)
	if t == nil {
		return nil
	}
	return t.Underlying()
}
