package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// syscallExceptions are the files outside of internal/sys that may import
// syscall or golang.org/x/sys/unix, each with its reason. Keep it short: let
// internal/sys export what others need.
var syscallExceptions = map[string]string{}

// execPackages are the directories whose code may start other programs.
var execPackages = []string{
	"internal/guest", // QEMU
	"internal/ci",    // the go command
	"internal/lint",  // go list
}

// execTests are directories whose tests, but not their other files, may start
// other programs: those that are programs themselves.
var execTests = []string{"bench", "examples"}

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

// CheckSyscalls reports imports of the syscall packages outside of
// internal/sys and of the files that except names, and exceptions that are no
// longer needed.
func CheckSyscalls(t *Tree, except map[string]string) []Problem {
	var ps []Problem
	used := make(map[string]bool)
	for _, f := range t.GoFiles() {
		for spec, p := range f.Imports() {
			if p != "syscall" && !under(p, "golang.org/x/sys") || under(f.Dir(), "internal/sys") {
				continue
			}
			if except[f.Path] == "" {
				ps = append(ps, t.at(f, spec.Pos(), "%s is imported only in internal/sys", p))
			}
			used[f.Path] = true
		}
	}
	for name := range except {
		if !used[name] {
			ps = append(ps, Problem{name, 0, "listed as importing a syscall package, but does not"})
		}
	}
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
		allowed := underAny(f.Dir(), execPackages) || f.IsTest() && underAny(f.Dir(), execTests)
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
