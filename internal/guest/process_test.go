package guest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	var out tail
	out.max = 100
	cmd := exec.Command("sh", "-c", "echo hello; exec sleep 1000")
	cmd.Stdout = &out
	p, err := startProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	for out.String() != "hello\n" {
		time.Sleep(time.Millisecond)
	}
	p.kill()
	p.kill()
	if p.err == nil || running(cmd.Process.Pid) {
		t.Errorf("ended with %v", p.err)
	}
	if _, err := startProcess(exec.Command("/no/such/program")); err == nil {
		t.Error("a program that does not exist could be started")
	}
}

// running tells whether a process executes; one that waits to be collected by
// its new parent does not.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	return ok && rest[0] != 'Z' && rest[0] != 'X'
}
