package lint

import "testing"

func TestUnsafeReports(t *testing.T) {
	tr := tree(t, map[string]string{
		"a/plain.go":           "package a\n\nimport \"unsafe\"\n",
		"a/cgo.go":             "package a\n\nimport \"C\"\n",
		"a/idle_unsafe.go":     "package a\n",
		"a/plain_test.go":      "package a\n\nimport u \"unsafe\"\n",
		"a/good_unsafe.go":     "package a\n\nimport \"unsafe\"\n",
		"a/x_unsafe_test.go":   "package a\n\nimport _ \"unsafe\"\n",
		"a/unsafe_not_last.go": "package a\n",
	})
	expect(t, CheckUnsafe(tr), "a/plain.go:3", "a/cgo.go:3: no cgo", "a/idle_unsafe.go", "a/plain_test.go:3")
}

func TestSyscallsReports(t *testing.T) {
	unix := "\n\nimport \"golang.org/x/sys/unix\"\n\n"
	tr := tree(t, map[string]string{
		"a/constants.go":           "package a" + unix + "var _ = unix.MAP_SHARED | unix.O_DIRECT\n",
		"a/type.go":                "package a" + unix + "var _ unix.Stat_t\n",
		"a/a_test.go":              "package a" + unix + "var _ = unix.Socketpair\n",
		"a/listed_test.go":         "package a" + unix + "var _ = unix.Unshare\n",
		"a/mended_test.go":         "package a" + unix + "var _ = unix.EAGAIN\n",
		"a/blank.go":               "package a\n\nimport _ \"golang.org/x/sys/unix\"\n",
		"a/cpu.go":                 "package a\n\nimport \"golang.org/x/sys/cpu\"\n\nvar _ = cpu.Initialized\n",
		"internal/sys/a.go":        "package sys" + unix + "var _ = unix.Read\n",
		"internal/sys/pid1/a.go":   "package pid1\n\nimport \"syscall\"\n\nvar _ = syscall.Mount\n",
		"internal/system/sneak.go": "package system" + unix + "var _ = unix.Read\n",
		"a/calls.go": `package a

import (
	"syscall"
)

func f(fd int, b []byte) (int, syscall.Errno) {
	if _, err := syscall.Write(fd, b); err == syscall.EAGAIN || err == syscall.Errno(5) {
		return syscall.SIGINT, syscall.E2BIG
	}
	g := syscall.Syscall6
	return syscall.O_DIRECT
}
`,
		"a/renamed.go": "package a\n\nimport sc \"syscall\"\n\nvar _ = sc.Mmap\n",
		"a/dot.go":     "package a\n\nimport . \"syscall\"\n",
	})
	except := map[string]string{"a/listed_test.go": "sets up a namespace", "a/mended_test.go": "did once", "a/gone.go": "was needed once"}
	expect(t, CheckSyscalls(tr, except),
		"a/type.go:5: golang.org/x/sys/unix.Stat_t", "a/a_test.go:5: golang.org/x/sys/unix.Socketpair", "internal/system/sneak.go:5",
		"a/mended_test.go: listed", "a/gone.go: listed", "a/blank.go:3",
		"a/calls.go:8: syscall.Write", "a/calls.go:11: syscall.Syscall6",
		"a/renamed.go:5: syscall.Mmap", "a/dot.go:3",
	)
}

func TestArrowsReports(t *testing.T) {
	imp := func(pkg, path string) string {
		return "package " + pkg + "\n\nimport _ \"example.com/m/" + path + "\"\n"
	}
	tr := tree(t, map[string]string{
		"nvme/a.go":           imp("nvme", "tcp/pdu"),
		"nvme/b.go":           imp("nvme", "poller"), // allowed
		"nvme/sub/a.go":       imp("sub", "mpath"),
		"nvme/a_test.go":      imp("nvme", "tcp"), // tests are free
		"poller/a.go":         imp("poller", "nvme"),
		"tcp/a.go":            imp("tcp", "pcie"),
		"tcp/b.go":            imp("tcp", "tcp/target"),
		"tcp/c.go":            imp("tcp", "tcp/pdu"), // allowed
		"tcp/d_test.go":       imp("tcp", "tcp/target"),
		"tcp/target/a.go":     imp("target", "tcp/pdu"), // allowed
		"tcp/tcptest/a.go":    imp("tcptest", "tcp/target"),
		"pcie/a.go":           imp("pcie", "mpath"),
		"pcie/b.go":           imp("pcie", "pcie/pcietest"),
		"mpath/a.go":          imp("mpath", "tcp"),
		"mpath/lab/a.go":      imp("lab", "tcp/tcptest"), // allowed
		"mpathology/a.go":     imp("mpathology", "tcp"),  // another package
		"internal/hist/a.go":  imp("hist", "nvme"),
		"internal/guest/a.go": imp("guest", "nvme"), // allowed
		"nvme/bench.go":       imp("nvme", "bench"),
		"nvme/bench_test.go":  imp("nvme", "examples/quickstart"),
		"bench/sub/a.go":      imp("sub", "bench/report"), // its own
	})
	expect(t, CheckArrows(tr),
		"nvme/a.go:3: nvme must not import tcp/pdu",
		"nvme/sub/a.go:3",
		"poller/a.go:3",
		"tcp/a.go:3: tcp must not import pcie",
		"tcp/b.go:3: tcp must not import tcp/target",
		"pcie/a.go:3",
		"pcie/b.go:3",
		"mpath/a.go:3",
		"internal/hist/a.go:3",
		"nvme/bench.go:3: bench is imported by nobody",
		"nvme/bench_test.go:3: examples is imported by nobody",
	)
}

func TestExecReports(t *testing.T) {
	exec := "\n\nimport \"os/exec\"\n"
	tr := tree(t, map[string]string{
		"nvme/a.go":           "package nvme" + exec,
		"nvme/a_test.go":      "package nvme" + exec,
		"bench/main.go":       "package main" + exec,
		"bench/main_test.go":  "package main\n\nvar prog = \"qemu-system-x86_64\"\n",
		"internal/guest/a.go": "package guest" + exec + "\nconst prog = \"qemu-system-x86_64\"\n",
		"internal/ci/a.go":    "package main" + exec + "\nvar prog = `/usr/bin/qemu-img`\n",
	})
	expect(t, CheckExec(tr), "nvme/a.go:3", "bench/main.go:3", "bench/main_test.go:3: QEMU", "internal/ci/a.go:5: QEMU")
}

func TestSkipsReports(t *testing.T) {
	tr := tree(t, map[string]string{
		"a/a_test.go": `package a

import "testing"

type ring struct{}

func (ring) Skip(n int) {}

type env struct{ tb testing.TB }

func (e env) need() { e.tb.Skipf("no %s", "kernel") }

func TestA(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	ring{}.Skip(3)
	var r ring
	r.Skip(4)
}

func BenchmarkA(b *testing.B) { b.SkipNow() }
`,
		"a/help.go": "package a\n\nimport \"testing\"\n\nfunc Need(tb testing.TB) { tb.Skip() }\n",
	})
	expect(t, CheckSkips(tr), "a/a_test.go:11", "a/a_test.go:15", "a/a_test.go:22", "a/help.go:5")
}
