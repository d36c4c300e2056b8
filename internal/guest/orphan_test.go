//go:build guest

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
