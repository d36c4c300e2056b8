//go:build guest

package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/kmod"
)

// TestGuest boots one guest and tries all that it offers.
func TestGuest(t *testing.T) {
	extra := filepath.Join(t.TempDir(), "hello.sh")
	if err := os.WriteFile(extra, []byte("#!/bin/sh\necho hello from a file\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g := Boot(t, Config{Modules: []string{"null_blk nr_devices=0"}, Files: map[string]string{"/opt/hello": extra}, NICs: 2})
	t.Logf("kernel %s, up after %s s in the guest, %v outside", g.Release(), g.BootTime(), time.Since(began))
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Guest)
	}{
		{"Run", testRun}, {"ExitCode", testExitCode}, {"Binary", testBinary}, {"Stdin", testStdin},
		{"Signal", testSignal}, {"Cancel", testCancel}, {"Held", testHeld}, {"Concurrent", testConcurrent},
		{"Files", testFiles}, {"Upload", testUpload}, {"Modules", testModules}, {"Network", testNetwork},
		{"Forward", testForward}, {"Link", testLink}, {"StaticProgram", testStaticProgram},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, g) })
	}
}

func testRun(t *testing.T, g *Guest) {
	if got := g.Shell(t, "/opt/hello; uname -r; cat /proc/sys/kernel/hostname"); got != "hello from a file\n"+g.Release()+"\nguest" {
		t.Errorf("got %q", got)
	}
	res, err := g.RunCommand(t.Context(), Command{
		Argv: []string{"sh", "-c", "echo $COLOUR; pwd; echo problem >&2"}, Env: []string{"COLOUR=blue"}, Dir: "/proc",
	})
	if err != nil || string(res.Stdout) != "blue\n/proc\n" || string(res.Stderr) != "problem\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := g.Run(t.Context(), "no-such-command"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a command that does not exist: %v", err)
	}
}

func testExitCode(t *testing.T, g *Guest) {
	res, err := g.Run(t.Context(), "sh", "-c", "echo out; echo sorry >&2; exit 7")
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || exit.Signal != 0 || string(exit.Stderr) != "sorry\n" {
		t.Fatalf("got %v", err)
	}
	if string(res.Stdout) != "out\n" {
		t.Errorf("output %q", res.Stdout)
	}
}

// pattern is n bytes in which every value occurs, and no period of a power of two.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	return b
}

func testBinary(t *testing.T, g *Guest) {
	want := pattern(3<<20 + 11)
	res, err := g.RunCommand(t.Context(), Command{Argv: []string{"cat"}, Stdin: bytes.NewReader(want)})
	if err != nil || !bytes.Equal(res.Stdout, want) {
		t.Errorf("%d bytes of %d came back, %v", len(res.Stdout), len(want), err)
	}
}

func testStdin(t *testing.T, g *Guest) {
	// A command that does not read all of its input.
	res, err := g.RunCommand(t.Context(), Command{Argv: []string{"head", "-c", "5"}, Stdin: bytes.NewReader(pattern(1 << 20))})
	if err != nil || len(res.Stdout) != 5 {
		t.Errorf("got %d bytes, %v", len(res.Stdout), err)
	}
	// No input is empty input.
	if res, err := g.Run(t.Context(), "cat"); err != nil || len(res.Stdout) != 0 {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
	// A dialogue with a command that goes on.
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p, err := g.Start(t.Context(), Command{Argv: []string{"sh", "-c", "while read x; do echo got $x; done"}, Stdin: inR, Stdout: outW})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	for _, w := range []string{"one", "two"} {
		if _, err := io.WriteString(inW, w+"\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("got \n")+len(w))
		if _, err := io.ReadFull(outR, got); err != nil || string(got) != "got "+w+"\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// startWaiting starts a script that prints one line and then does not end.
func startWaiting(ctx context.Context, t *testing.T, g *Guest, script string) *Process {
	t.Helper()
	started := make(chan struct{})
	p, err := g.Start(ctx, Command{Argv: []string{"sh", "-c", script}, Stdout: closeOnWrite{new(sync.Once), started}})
	if err != nil {
		t.Fatal(err)
	}
	go p.Wait() // passes the output on
	<-started
	return p
}

type closeOnWrite struct {
	once *sync.Once
	ch   chan struct{}
}

func (c closeOnWrite) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.ch) })
	return len(b), nil
}

func testSignal(t *testing.T, g *Guest) {
	p := startWaiting(t.Context(), t, g, "trap 'exit 3' USR1; echo ready; while :; do sleep 0.05; done")
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var exit *ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("trapped signal: %v", err)
	}
	p = startWaiting(t.Context(), t, g, "echo ready; sleep 1000")
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != -1 || exit.Signal != syscall.SIGKILL {
		t.Errorf("killed: %v", err)
	}
}

func testCancel(t *testing.T, g *Guest) {
	why := errors.New("the test has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := startWaiting(ctx, t, g, "echo ready; sleep 4242 & sleep 4242")
	cancel(why)
	if err := p.Wait(); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	// The whole process group goes.
	err := g.Until(t.Context(), "end of the processes", func() (bool, error) {
		res, err := g.Run(t.Context(), "ps", "-o", "args")
		return err == nil && !strings.Contains(string(res.Stdout), "sleep 4242"), err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := g.Run(ctx, "true"); !errors.Is(err, why) {
		t.Errorf("a request after that: %v", err)
	}
}

func testHeld(t *testing.T, g *Guest) {
	p := startWaiting(t.Context(), t, g, "echo ready; sleep 4343 & exit 0")
	if err := p.Wait(); !errors.Is(err, ErrOutputHeld) {
		t.Errorf("got %v", err)
	}
	g.Shell(t, "kill $(ps -o pid,args | awk '/[s]leep 4343/{print $1}')")
}

func testConcurrent(t *testing.T, g *Guest) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			n := (i + 1) * 40000
			res, err := g.RunCommand(t.Context(), Command{Argv: []string{"sh", "-c", "cat; exit " + strconv.Itoa(i)}, Stdin: bytes.NewReader(pattern(n))})
			var exit *ExitError
			if (i > 0 && (!errors.As(err, &exit) || exit.Code != i)) || (i == 0 && err != nil) {
				t.Errorf("command %d: %v", i, err)
			} else if !bytes.Equal(res.Stdout, pattern(n)) {
				t.Errorf("command %d: wrong output", i)
			}
		})
	}
	wg.Wait()
}

func testFiles(t *testing.T, g *Guest) {
	ctx := t.Context()
	var b Batch
	b.MkdirAll("/tmp/a/b")
	b.Write("/tmp/a/b/x", "x file")
	b.Symlink("b/x", "/tmp/a/link")
	if err := g.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if s, err := g.ReadFile(ctx, "/tmp/a/link"); s != "x file" || err != nil {
		t.Errorf("read %q, %v", s, err)
	}
	if s, err := g.Readlink(ctx, "/tmp/a/link"); s != "b/x" || err != nil {
		t.Errorf("link %q, %v", s, err)
	}
	if n, err := g.List(ctx, "/tmp/a"); strings.Join(n, " ") != "b link" || err != nil {
		t.Errorf("list %q, %v", n, err)
	}
	files, err := g.Glob(ctx, "/tmp/a/*", "/tmp/a/b/*")
	if err != nil || len(files) != 3 || files["/tmp/a/b/x"].Data != "x file" || files["/tmp/a/link"].Link != "b/x" {
		t.Errorf("glob %v, %v", files, err)
	}
	testFileErrors(t, g)
}

func testFileErrors(t *testing.T, g *Guest) {
	ctx := t.Context()
	var b Batch
	b.Write("/tmp/before", "1")
	b.Mkdir("/tmp/no/such/parent")
	b.Write("/tmp/after", "1")
	var pe *fs.PathError
	if err := g.Apply(ctx, &b); !errors.Is(err, syscall.ENOENT) || !errors.As(err, &pe) || pe.Path != "/tmp/no/such/parent" {
		t.Errorf("got %v", err)
	}
	for path, want := range map[string]bool{"/tmp/before": true, "/tmp/after": false} {
		if ok, err := g.Exists(ctx, path); ok != want || err != nil {
			t.Errorf("%s exists: %v, %v", path, ok, err)
		}
	}
	if err := g.WriteFile(ctx, "/proc/version", "x"); err == nil {
		t.Error("a read-only file could be written")
	}
	if _, err := g.ReadFile(ctx, "/proc/kcore"); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a huge file: %v", err)
	}
	if err := g.Upload(ctx, strings.NewReader("x"), "/proc/version/x", 0o644); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("upload to a bad place: %v", err)
	}
	if err := g.Fetch(ctx, "/nothing", io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("fetch of nothing: %v", err)
	}
}

func testUpload(t *testing.T, g *Guest) {
	want := pattern(5<<20 + 3)
	if err := g.Upload(t.Context(), bytes.NewReader(want), "/tmp/new/dir/file", 0o640); err != nil {
		t.Fatal(err)
	}
	if got := g.Shell(t, "stat -c '%a %s' /tmp/new/dir/file"); got != "640 "+strconv.Itoa(len(want)) {
		t.Errorf("stat: %q", got)
	}
	var got bytes.Buffer
	if err := g.Fetch(t.Context(), "/tmp/new/dir/file", &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d of %d bytes came back, %v", got.Len(), len(want), err)
	}
}

func testModules(t *testing.T, g *Guest) {
	ctx := t.Context()
	loaded := func(name string) bool {
		t.Helper()
		s, err := g.ReadFile(ctx, "/proc/modules")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains("\n"+s, "\n"+name+" ")
	}
	for _, m := range []string{"null_blk", "configfs", "virtio_net"} {
		if !loaded(m) {
			t.Errorf("%s is not loaded", m)
		}
	}
	// With a parameter, with what it needs, twice.
	for range 2 {
		if err := g.LoadModule(ctx, "brd", "rd_nr=1 rd_size=1024"); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := g.ReadAttr(ctx, "/sys/block/ram0/size"); s != "2048" || err != nil {
		t.Errorf("size of the RAM disk: %q, %v", s, err)
	}
	if err := g.LoadModule(ctx, "nvmet-tcp", ""); err != nil || !loaded("nvmet") || !loaded("nvmet_tcp") {
		t.Errorf("nvmet-tcp: %v", err)
	}
	// Built in.
	if err := g.LoadModule(ctx, "virtio_console", ""); err != nil {
		t.Error(err)
	}
	if err := g.LoadModule(ctx, "no_such_module", ""); !errors.Is(err, kmod.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

// echoOnce accepts one connection and sends back what comes.
func echoOnce(t *testing.T) (port int) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func testNetwork(t *testing.T, g *Guest) {
	for nic := range 2 {
		port := echoOnce(t)
		got := g.Shell(t, "echo through nic | nc "+HostAddr(nic)+" "+strconv.Itoa(port))
		if got != "through nic" {
			t.Errorf("interface %d: %q", nic, got)
		}
	}
}

// guestEcho has the guest answer connections to its port with a line.
func guestEcho(t *testing.T, g *Guest, port int) {
	t.Helper()
	g.Shell(t, "nc -ll -p "+strconv.Itoa(port)+" -e echo from the guest </dev/null >/dev/null 2>&1 &")
	err := g.Until(t.Context(), "listener", func() (bool, error) {
		res, err := g.Run(t.Context(), "netstat", "-ltn")
		return err == nil && strings.Contains(string(res.Stdout), ":"+strconv.Itoa(port)+" "), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dialAndRead(t *testing.T, port int) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return strings.TrimSpace(string(b)), err
}

func testForward(t *testing.T, g *Guest) {
	ctx := t.Context()
	for nic := range 2 {
		// The same port on both sides, and the loopback interface of the guest.
		port, err := g.Forward(ctx, nic, "127.0.0.1", 0)
		if err != nil {
			t.Fatal(err)
		}
		guestEcho(t, g, port)
		if got, err := dialAndRead(t, port); got != "from the guest" || err != nil {
			t.Errorf("interface %d: got %q, %v", nic, got, err)
		}
		if err := g.Unforward(ctx, nic, port); err != nil {
			t.Fatal(err)
		}
		if _, err := dialAndRead(t, port); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end of forwarding: %v", err)
		}
		if err := g.ForwardFrom(ctx, port, nic, "127.0.0.1", port); err != nil {
			t.Fatal(err)
		}
		if got, err := dialAndRead(t, port); got != "from the guest" || err != nil {
			t.Errorf("interface %d again: got %q, %v", nic, got, err)
		}
	}
	taken := echoOnce(t)
	if err := g.ForwardFrom(ctx, taken, 0, "", 1); !errors.Is(err, ErrPortTaken) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := g.Forward(ctx, 2, "", 1); !errors.Is(err, ErrConfig) {
		t.Errorf("no such interface: %v", err)
	}
}

func testLink(t *testing.T, g *Guest) {
	carrier := func(want string) {
		t.Helper()
		err := g.Until(t.Context(), "carrier "+want, func() (bool, error) {
			s, err := g.ReadAttr(t.Context(), "/sys/class/net/eth1/carrier")
			return s == want, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, up := range []bool{false, true} {
		if err := g.SetLink(t.Context(), 1, up); err != nil {
			t.Fatal(err)
		}
		carrier(map[bool]string{true: "1", false: "0"}[up])
	}
	testNetwork(t, g)
}

func testStaticProgram(t *testing.T, g *Guest) {
	test := BuildTest(t, "github.com/qpoll/qpoll/internal/guest/wire")
	if err := g.UploadFile(t.Context(), test, "/opt/wire.test"); err != nil {
		t.Fatal(err)
	}
	if got := g.Shell(t, "/opt/wire.test -test.v"); !strings.HasSuffix(got, "PASS") || !strings.Contains(got, "--- PASS: ") {
		t.Errorf("got %q", got)
	}
}
