package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// sysPackages wrap system calls.
var sysPackages = []string{"syscall", "golang.org/x/sys/unix"}

// sysExceptions are the files outside of internal/sys that may call functions
// of sysPackages, each with its reason. Keep it short: internal/sys is to have
// what others need.
var sysExceptions = map[string]string{}

// sysNames matches what any file may use of sysPackages: constants, and the
// types of package syscall that interfaces of the standard library are made of.
var sysNames = regexp.MustCompile(`^([A-Z][A-Z0-9_]*|Conn|Errno|RawConn|Signal|SysProcAttr|WaitStatus)$`)

// execPackages are the directories whose code may start other programs. Tests
// may everywhere.
var execPackages = []string{
	"internal/guest", // QEMU
	"internal/ci",    // the go command
	"internal/lint",  // go list
}

// An arrow says what the packages at or below From must not import. Tests are
// free, so that a package can be tested against the fakes of another.
type arrow struct {
	from   string
	except []string // below from, but not meant
	forbid []string
	why    string
}

var arrows = []arrow{
	{from: "nvme", forbid: []string{"pcie", "tcp", "mpath"},
		why: "transports implement the interfaces of nvme and register with it"},
	{from: "poller", forbid: []string{"nvme", "pcie", "tcp", "mpath"},
		why: "whatever is polled registers with the poller"},
	{from: "tcp", forbid: []string{"pcie", "mpath"},
		why: "a transport knows neither its siblings nor what is above it"},
	{from: "pcie", forbid: []string{"tcp", "mpath"},
		why: "a transport knows neither its siblings nor what is above it"},
	{from: "tcp", except: []string{"tcp/target", "tcp/tcptest"}, forbid: []string{"tcp/target", "tcp/tcptest"},
		why: "an initiator does not carry a target"},
	{from: "pcie", except: []string{"pcie/pcietest"}, forbid: []string{"pcie/pcietest"},
		why: "a driver does not carry a fake device"},
	{from: "mpath", except: []string{"mpath/lab"}, forbid: []string{"pcie", "tcp"},
		why: "paths are opened through nvme.Open"},
	{from: "internal", except: []string{"internal/guest"}, forbid: []string{"nvme", "poller", "pcie", "tcp", "mpath"},
		why: "internal packages are below the public ones"},
}

// roots are packages that nothing outside of them imports, tests included.
var roots = []string{"bench", "examples", "internal/guest", "internal/ci"}

// CheckUnsafe reports imports of unsafe in files that do not say so in their
// name, files that say so and do not import it, and any use of cgo.
func CheckUnsafe(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.GoFiles() {
		stem := strings.TrimSuffix(strings.TrimSuffix(f.Path, ".go"), "_test")
		named := strings.HasSuffix(stem, "_unsafe")
		imported := false
		for spec, p := range f.Imports() {
			switch p {
			case "unsafe":
				imported = true
				if !named {
					ps = append(ps, t.at(f, spec.Pos(), "unsafe is imported only in files named *_unsafe.go or *_unsafe_test.go"))
				}
			case "C":
				ps = append(ps, t.at(f, spec.Pos(), "no cgo"))
			}
		}
		if named && !imported {
			ps = append(ps, Problem{f.Path, 0, "the name says unsafe, but unsafe is not imported"})
		}
	}
	return ps
}

// CheckSyscalls reports, outside of internal/sys and the files that except
// names, the use of sysPackages for more than constants. It reports exceptions
// that are not needed, too.
func CheckSyscalls(t *Tree, except map[string]string) []Problem {
	var ps []Problem
	used := make(map[string]bool)
	for _, f := range t.GoFiles() {
		if under(f.Dir(), "internal/sys") {
			continue
		}
		for spec, p := range f.Imports() {
			if !slices.Contains(sysPackages, p) {
				continue
			}
			uses := t.sysUses(f, spec, p)
			used[f.Path] = used[f.Path] || len(uses) > 0
			if except[f.Path] == "" {
				ps = append(ps, uses...)
			}
		}
	}
	for name := range except {
		if !used[name] {
			ps = append(ps, Problem{name, 0, "listed as making system calls, but does not"})
		}
	}
	return ps
}

// sysUses reports what a file uses of a package in sysPackages and may not.
func (t *Tree) sysUses(f *File, spec *ast.ImportSpec, importPath string) []Problem {
	name := path.Base(importPath)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if name == "." || name == "_" {
		return []Problem{t.at(f, spec.Pos(), "%s is imported by a name or not at all", importPath)}
	}
	var ps []Problem
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && !sysNames.MatchString(sel.Sel.Name) {
			ps = append(ps, t.at(f, sel.Pos(), "%s.%s belongs in internal/sys", importPath, sel.Sel.Name))
		}
		return true
	})
	return ps
}

// CheckArrows reports imports against the direction of the design.
func CheckArrows(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.GoFiles() {
		for spec, p := range f.Imports() {
			to, ok := t.rel(p)
			if !ok {
				continue
			}
			if root, ok := rootOf(to); ok && !under(f.Dir(), root) {
				ps = append(ps, t.at(f, spec.Pos(), "%s is imported by nobody", root))
			}
			if f.IsTest() {
				continue
			}
			for _, a := range arrows {
				if under(f.Dir(), a.from) && !underAny(f.Dir(), a.except) && underAny(to, a.forbid) {
					ps = append(ps, t.at(f, spec.Pos(), "%s must not import %s: %s", a.from, to, a.why))
				}
			}
		}
	}
	return ps
}

func rootOf(dir string) (string, bool) {
	for _, r := range roots {
		if under(dir, r) {
			return r, true
		}
	}
	return "", false
}

// CheckExec reports code that may start other programs where that is not its
// business, and mentions of QEMU's programs outside of internal/guest.
func CheckExec(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.GoFiles() {
		allowed := f.IsTest() || underAny(f.Dir(), execPackages)
		for spec, p := range f.Imports() {
			if p == "os/exec" && !allowed {
				ps = append(ps, t.at(f, spec.Pos(), "os/exec is imported only in %s", strings.Join(execPackages, ", ")))
			}
		}
		if under(f.Dir(), "internal/guest") || under(f.Dir(), "internal/lint") {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && strings.HasPrefix(path.Base(strings.Trim(lit.Value, "\"`")), "qemu-") {
				ps = append(ps, t.at(f, lit.Pos(), "QEMU is run only by internal/guest"))
			}
			return true
		})
	}
	return ps
}
