package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const agentPackage = "github.com/qpoll/qpoll/internal/guest/agent"

// agentBinary is the agent, built once per process.
var agentBinary = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "qpoll-agent-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "agent")
	if err := goTool(context.Background(), "build", "-ldflags=-s -w", "-o", out, agentPackage); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

// goTool runs the go command so that it makes a static program for the guest.
func goTool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("guest: go %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// Build builds the command with the given import path as a static program that
// runs in a guest, and returns its path. It is removed with the test.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return build(t, pkg, "build")
}

// BuildTest builds the tests of the package as a static program, with the given
// build tags, and returns its path. It is removed with the test. In the guest
// it takes the flags of a test binary, such as -test.v and -test.run.
func BuildTest(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	return build(t, pkg, "test", "-c", "-tags", strings.Join(tags, ","))
}

func build(t testing.TB, pkg string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	if err := goTool(t.Context(), append(args, "-o", out, pkg)...); err != nil {
		t.Fatal(err)
	}
	return out
}
