package guest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const helperEnv = "QPOLL_GUEST_TEST_HELPER"

// TestProcessDiesWithParent kills a process that has started another one by
// startProcess, and checks that this one goes too.
func TestProcessDiesWithParent(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		p, err := startProcess(exec.Command("sleep", "1000"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", p.cmd.Process.Pid)
		<-p.done
		t.Fatal("the child has ended")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestProcessDiesWithParent$")
	parent.Env = append(os.Environ(), helperEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for s := bufio.NewScanner(out); pid == 0 && s.Scan(); {
		if n, ok := strings.CutPrefix(s.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(n)
		}
	}
	if pid == 0 || !running(pid) {
		t.Errorf("no child: pid %d", pid)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
	for pid != 0 && running(pid) {
		time.Sleep(time.Millisecond)
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
