package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
)

func TestSoftware(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-rw", "write", "-bs", "512", "-queues", "2"},
		{"-rw", "randrw", "-mix", "70", "-bs", "128k"},
		{"-rw", "randwrite", "-depth", "1500", "-bs", "512"}, // more than the queue takes
		{"-backend", "null", "-size", "1g", "-rw", "rw", "-depth", "1"},
		{"-bs", "1m", "-rw", "randread"},
		{"-adaptive"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			d, human := measureJSON(t, small(t, append([]string{"-target", software}, args...)...)...)
			checkDocument(t, &d)
			if d.Config.Target != software || d.Config.Backend == "" || d.Config.Adaptive != slices.Contains(args, "-adaptive") {
				t.Errorf("configuration %+v", d.Config)
			}
			for _, want := range []string{"software controller on core", "namespace of kind " + d.Config.Backend, "pcie pcietest", "p99.99"} {
				if !strings.Contains(human, want) {
					t.Errorf("no %q in %s", want, human)
				}
			}
			if long := d.Config.Depth > d.Config.QueueSize; long != strings.Contains(human, "wait their turn") {
				t.Errorf("queue of %d, %s", d.Config.QueueSize, human)
			}
		})
	}
}

func TestSoftwareIdeal(t *testing.T) {
	d, human := measureJSON(t, small(t, "-target", softwareIdeal, "-rw", "randrw", "-bs", "512")...)
	checkDocument(t, &d)
	if d.Config.Target != softwareIdeal || d.Config.Backend != "" || !strings.Contains(human, "moves no data") {
		t.Errorf("configuration %+v\n%s", d.Config, human)
	}
}

// With the defaults there is a core for each, if the machine has them.
func TestSoftwareLayout(t *testing.T) {
	d, _ := measureJSON(t, "-target", software, "-size", "1m", "-warmup", "0")
	checkDocument(t, &d)
	if d.Config.Depth != 128 || len(d.Pollers) != 1 {
		t.Errorf("defaults %+v", d.Config)
	}
}

// What is written through the load's buffers is what the controller gets.
func TestSoftwareData(t *testing.T) {
	file := filepath.Join(t.TempDir(), "disk")
	dir := filepath.Join(t.TempDir(), "socket")
	_, end := serving(t, "-vfio-user", dir, "-backend", "file", "-file", file, "-size", "64k")
	d, _ := measureJSON(t, local(t, socketPrefix+dir, "-rw", "write", "-bs", "4k")...)
	checkDocument(t, &d)
	if rest, code := end(); code != exitOK {
		t.Errorf("exit status %d, %s", code, rest)
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 64<<10 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	// load fills its buffers with bytes other than 0; one turn of the namespace
	// may not have come to its end.
	if n := len(b) - len(strings.TrimRight(string(b), "\x00")); n == len(b) || n%4096 != 0 {
		t.Errorf("%d of %d bytes are zeros", n, len(b))
	}
}

// local are flags for a run against a local controller of the test.
func local(t *testing.T, target string, args ...string) []string {
	return append([]string{"-target", target, "-cores", (&coreList{firstCore(t)}).String(), "-warmup", "1ms", "-depth", "4", "-adaptive"}, args...)
}

func TestServeSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "socket")
	for _, tt := range []struct {
		args, bench []string
		target      string // empty: as it is printed
	}{
		{nil, nil, ""},
		{[]string{"-block", "4096", "-backend", "null"}, []string{"-bs", "8k"}, socketPrefix + dir},
		{[]string{"-backend", "ideal"}, []string{"-rw", "randread"}, socketPrefix + filepath.Join(dir, socketName)},
		{[]string{"-nqn", "nqn.2014-08.org.example:mine"}, nil, "trtype:VFIOUSER,traddr:" + dir + ",subnqn:nqn.2014-08.org.example:mine"},
	} {
		address, end := serving(t, append([]string{"-vfio-user", dir}, tt.args...)...)
		if want := "trtype:vfiouser traddr:" + dir; address != want {
			t.Errorf("address %q, want %q", address, want)
		}
		if tt.target != "" {
			address = tt.target
		}
		for range 2 { // one driver after the other
			d, human := measureJSON(t, append(local(t, address, "-rw", "randrw"), tt.bench...)...)
			checkDocument(t, &d)
			if d.Config.Backend != "" || !strings.Contains(human, filepath.Join(dir, socketName)) {
				t.Errorf("configuration %+v\n%s", d.Config, human)
			}
		}
		rest, code := end()
		if code != exitOK || !strings.Contains(rest, " 0 errors") || strings.Contains(rest, "served 0 ") {
			t.Errorf("%q: exit status %d, %s", tt.args, code, rest)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the directory was left: %v", err)
		}
	}
}

// A socket that a server left behind is taken over, one that is served is not,
// and a directory that was there stays.
func TestServeSocketTaken(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"target", "-vfio-user", dir, "-size", "1m"}, &out, &errs); code != exitFailed {
		t.Errorf("exit status %d", code)
	}
	checkLine(t, errs.String(), []string{"another program serves there", "-vfio-user"})
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, end := serving(t, "-vfio-user", dir)
	if rest, code := end(); code != exitOK || !strings.Contains(rest, "served 0 admin commands") {
		t.Errorf("exit status %d, %s", code, rest)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestServeSocketErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"-listen :0", exitUsage, []string{"-listen", "-vfio-user"}},
		{"-hdgst require", exitUsage, []string{"-hdgst", "-vfio-user"}},
		{"-block 8192", exitUsage, []string{"-block", "512 or 4096"}},
		{"-backend file", exitUsage, []string{"-file"}},
		{"-backend file -file " + filepath.Join(dir, "none", "disk"), exitFailed, []string{"-file"}},
		{"-backend file -file " + file, exitFailed, []string{"is empty", "-size"}},
		{"-backend file -file " + file + " -vfio-user " + filepath.Join(dir, "a", "b") + " -size 1m", exitFailed, []string{"-vfio-user", "can be made"}},
		{"-vfio-user " + filepath.Join(dir, strings.Repeat("x", 120)), exitFailed, []string{"too long", "-vfio-user"}},
		{"-vfio-user " + file, exitFailed, []string{"-vfio-user"}},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"target", "-vfio-user", filepath.Join(dir, "s")}, strings.Fields(tt.args)...), &out, &errs)
		if code != tt.code {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, tt.code)
		}
		checkLine(t, errs.String(), tt.want)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"target", "-backend", "ideal"}, &out, &errs); code != exitUsage {
		t.Errorf("exit status %d", code)
	}
	checkLine(t, errs.String(), []string{"-backend ideal", "-vfio-user"})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// serveDevice serves a controller of the test through a socket.
func serveDevice(t *testing.T, cfg pcietest.Config) (d *device, target string) {
	t.Helper()
	dir := t.TempDir()
	d, err := startDevice(cfg, firstCore(t), poller.Config{Name: "test", Idle: poller.Adaptive, Spin: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(d.Controller)
	}()
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return d, socketPrefix + dir
}

// What a controller refuses gets one line.
func TestLocalRefusals(t *testing.T) {
	_, target := serveDevice(t, pcietest.Config{IOQueues: 2, Namespaces: []pcietest.NamespaceConfig{{NSID: 3, BlockSize: 4096, Size: 1 << 20}}})
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"-nsid 1", []string{"namespace 1", "-nsid 3"}},
		{"-nsid 3 -bs 512", []string{"512", "4096", "multiple"}},
		{"-nsid 3 -bs 2m", []string{"1048576", "2097152", "-bs"}},
		{"-nsid 3 -queues 5 -depth 1", []string{"grants 2 I/O queues", "-queues"}},
	} {
		var out, errs strings.Builder
		args := local(t, target, append([]string{"-time", "1ms"}, strings.Fields(tt.args)...)...)
		if code := run(t.Context(), args, &out, &errs); code != exitFailed {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, exitFailed)
		}
		checkLine(t, errs.String(), tt.want)
		if out.Len() != 0 {
			t.Errorf("output %q", &out)
		}
	}
}

// I/Os that fail are counted by status.
func TestLocalFailingIO(t *testing.T) {
	d, target := serveDevice(t, pcietest.Config{})
	d.Inject(pcietest.Rule{Action: pcietest.Fail, Status: nvme.StatusUnrecoveredReadError, Match: pcietest.Opcode(nvme.OpRead, false)})
	for length := 50 * time.Millisecond; ; length *= 2 {
		var out, errs strings.Builder
		code := run(t.Context(), local(t, target, "-json", "-", "-time", length.String()), &out, &errs)
		var doc document
		if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
			t.Fatalf("%v in %s", err, &out)
		}
		if doc.Errors == 0 && length < time.Minute {
			continue // nothing has happened
		}
		if code != exitFailed || doc.IOs != 0 || len(doc.Statuses) != 1 || doc.Lost != 0 || !strings.Contains(errs.String(), "Unrecovered Read Error") {
			t.Errorf("exit status %d, %s\n%s", code, &out, &errs)
		}
		return
	}
}

// A controller that goes is reported with what was lost, over the socket and in
// the hand of a server that ends.
func TestLocalGoes(t *testing.T) {
	d, target := serveDevice(t, pcietest.Config{})
	go func() {
		for d.Stats().Reads == 0 {
			time.Sleep(time.Millisecond)
		}
		d.Remove()
	}()
	var out, errs strings.Builder
	code := run(t.Context(), local(t, target, "-time", "1h", "-warmup", "0", "-json", "-"), &out, &errs)
	var doc document
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
		t.Fatalf("%v in %s\n%s", err, &out, &errs)
	}
	if code != exitFailed || doc.Failure == "" || doc.Elapsed >= 3600 || doc.Outstanding != 0 || doc.Lost > 4 || doc.Errors != doc.Lost {
		t.Errorf("exit status %d, %s", code, &out)
	}
	if !strings.Contains(errs.String(), "the controller was lost after") {
		t.Errorf("output %s", &errs)
	}
}
