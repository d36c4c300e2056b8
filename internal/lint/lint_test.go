package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// hotFiles are files that must be there and be marked as hot, so that the
// rules of the hot path cannot pass for want of anything to check. Extend it
// with every file that I/O goes through.
var hotFiles = []string{
	"bench/internal/load/job.go",
	"bench/internal/load/rng.go",
	"internal/hist/hist.go",
	"internal/mmio/register.go",
	"internal/sys/iovec_unsafe.go",
	"internal/sys/stream_unsafe.go",
	"internal/tsc/counter.go",
	"internal/tsc/now.go",
	"mpath/channel.go",
	"mpath/io.go",
	"mpath/policy/expected.go",
	"mpath/policy/io.go",
	"mpath/policy/latency.go",
	"mpath/policy/model.go",
	"mpath/policy/publish.go",
	"mpath/policy/queuedepth.go",
	"mpath/policy/servicetime.go",
	"nvme/completion.go",
	"nvme/deallocate.go",
	"nvme/dsm.go",
	"nvme/geometry_check.go",
	"nvme/queue.go",
	"nvme/queuepair.go",
	"nvme/request.go",
	"nvme/sgl.go",
	"nvme/split.go",
	"pcie/bounce.go",
	"pcie/place.go",
	"pcie/queue.go",
	"pcie/region.go",
	"poller/mailbox.go",
	"poller/pass.go",
	"poller/publish.go",
	"poller/stats.go",
	"tcp/conn.go",
	"tcp/pdu/capsule.go",
	"tcp/pdu/common.go",
	"tcp/pdu/data.go",
	"tcp/pdu/digest.go",
	"tcp/pdu/layout.go",
	"tcp/pdu/receiver.go",
	"tcp/pdu/wire_unsafe.go",
	"tcp/receive.go",
	"tcp/receive_direct.go",
	"tcp/send.go",
	"tcp/sendqueue.go",
	"tcp/target/backend/memory_channel.go",
	"tcp/target/backend/null.go",
	"tcp/target/backend/op.go",
	"tcp/target/buffers.go",
	"tcp/target/conn.go",
	"tcp/target/io.go",
	"tcp/target/r2t.go",
	"tcp/target/receive.go",
	"tcp/target/request.go",
	"tcp/target/respond.go",
	"tcp/target/send.go",
	"tcp/target/view.go",
	"tcp/target/worker.go",
}

// gates are the gates of .ci/run that run commands of a page by name.
var gates = []string{"test", "bench"}

// moduleRoot returns the directory of go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}

// loadModule parses this module once for all tests.
var loadModule = sync.OnceValues(func() (*Tree, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	return Load(os.DirFS(root))
})

// loadChecker lists and builds the module once for all tests.
var loadChecker = sync.OnceValues(func() (*Checker, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	tree, err := loadModule()
	if err != nil {
		return nil, err
	}
	return NewChecker(root, tree.Module, "./...")
})

func module(t *testing.T) *Tree {
	t.Helper()
	tree, err := loadModule()
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.GoFiles()) < 10 {
		t.Fatalf("only %d Go files in the tree: the wrong directory?", len(tree.GoFiles()))
	}
	return tree
}

func report(t *testing.T, problems []Problem) {
	t.Helper()
	for _, p := range problems {
		t.Errorf("%s", p)
	}
}

func TestUnsafe(t *testing.T)   { report(t, CheckUnsafe(module(t))) }
func TestSyscalls(t *testing.T) { report(t, CheckSyscalls(module(t), sysExceptions)) }
func TestArrows(t *testing.T)   { report(t, CheckArrows(module(t))) }
func TestExec(t *testing.T)     { report(t, CheckExec(module(t))) }
func TestSkips(t *testing.T)    { report(t, CheckSkips(module(t))) }
func TestDocs(t *testing.T)     { report(t, CheckDocs(module(t))) }
func TestText(t *testing.T)     { report(t, CheckText(module(t))) }
func TestSize(t *testing.T)     { report(t, CheckSize(module(t))) }
func TestLinks(t *testing.T)    { report(t, CheckLinks(module(t))) }
func TestMarkdown(t *testing.T) { report(t, CheckMarkdown(module(t), gates)) }

func TestHot(t *testing.T) {
	c, err := loadChecker()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := CheckHot(module(t), c.Load)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
	report(t, CheckHotFiles(module(t), hotFiles))
}

// TestExceptionReasons keeps the tables of exceptions from holding any without
// a reason.
func TestExceptionReasons(t *testing.T) {
	for name, why := range sysExceptions {
		if strings.TrimSpace(why) == "" {
			t.Errorf("no reason for the exception of %s", name)
		}
	}
}

// TestGatesRunPages holds the gates that pages may name against the script,
// and the README against the gates: each takes its command from it.
func TestGatesRunPages(t *testing.T) {
	script := module(t).File(".ci/run")
	readme := module(t).File("README.md")
	if script == nil || readme == nil {
		t.Fatal("no .ci/run or no README.md")
	}
	var named []string
	for _, b := range Blocks(readme.Src) {
		if gate, _ := b.Tag("run"); gate != "" {
			named = append(named, gate)
		}
	}
	for _, gate := range gates {
		if !bytes.Contains(script.Src, []byte("page_command "+gate)) {
			t.Errorf(".ci/run does not take the command of gate %s from a page", gate)
		}
		if n := len(slices.DeleteFunc(slices.Clone(named), func(s string) bool { return s != gate })); n != 1 {
			t.Errorf("README.md has %d blocks for gate %s, want 1", n, gate)
		}
	}
}
