package testutil

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
)

func TestMain(m *testing.M) { Main(m) }

// watch returns what is left now, without waiting for it to go.
func watch(t *testing.T) func() error {
	t.Helper()
	sys.Track()
	before, err := take()
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return before.settle(0) }
}

// expect checks that each of the wants is named among what is left, or that
// nothing is.
func expect(t *testing.T, left error, wants ...string) {
	t.Helper()
	if len(wants) == 0 {
		if left != nil {
			t.Errorf("left: %v", left)
		}
		return
	}
	if left == nil {
		t.Fatalf("nothing was found, want %q", wants)
	}
	for _, want := range wants {
		if !strings.Contains(left.Error(), want) {
			t.Errorf("found %v\nwithout %q", left, want)
		}
	}
}

func TestNothingLeft(t *testing.T) { expect(t, watch(t)()) }

func TestFDLeft(t *testing.T) {
	check := watch(t)
	fd, err := sys.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, check(), "left open: fd", "[eventfd]", "TestFDLeft")
	if err := sys.Close(fd); err != nil {
		t.Fatal(err)
	}
	expect(t, check())
}

func TestMappingLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags int
		want  string
	}{
		{"private", unix.MAP_PRIVATE, "mapping of 8192 bytes"},
		{"shared", unix.MAP_SHARED, "rw-s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := watch(t)
			b, err := sys.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|c.flags)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, check(), c.want, "TestMappingLeft")
			if err := sys.Munmap(b); err != nil {
				t.Fatal(err)
			}
			expect(t, check())
		})
	}
}

func TestProcessLeft(t *testing.T) {
	check := watch(t)
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expect(t, check(), "left open: process")
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	expect(t, check())
}

func TestGoroutineLeft(t *testing.T) {
	check, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		<-stop
		close(stopped)
	}()
	err = check()
	close(stop)
	<-stopped
	expect(t, err, "TestGoroutineLeft")
	expect(t, check())
}

func TestParseMaps(t *testing.T) {
	got := parseMaps(`00400000-00401000 r-xp 00000000 08:01 42   /bin/x
7f0000000000-7f0000001000 rw-s 00000000 00:01 7   /memfd:dma (deleted)
7f0000200000-7f0000400000 rw-p 00000000 00:0f 9   /anon_hugepage (deleted)
c000000000-c000400000 rw-p 00000000 00:00 0   [anon: Go: heap]

`)
	want := []string{
		"7f0000000000-7f0000001000 rw-s 00000000 00:01 7 /memfd:dma (deleted)",
		"7f0000200000-7f0000400000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)",
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %q", got, want)
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("%q is missing", line)
		}
	}
}
