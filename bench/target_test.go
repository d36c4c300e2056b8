package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// serveTest starts a target with one namespace of 1 MiB.
func serveTest(t *testing.T, change func(*target.Config)) *server {
	t.Helper()
	cfg := target.Config{Subsystems: []target.SubsystemConfig{{
		NQN:        "nqn.2014-08.org.example:disk",
		Namespaces: []target.NamespaceConfig{{NSID: 3, BlockSize: 4096, Backend: backend.NewHeap(1 << 20)}},
	}}}
	if change != nil {
		change(&cfg)
	}
	s, err := startServer(cfg, []int{firstCore(t)}, poller.Config{Name: "test", Idle: poller.Adaptive, Spin: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// remote are flags for a run against a target of the test.
func remote(t *testing.T, s *server, args ...string) []string {
	return append([]string{"-target", s.Address(""), "-nsid", "3", "-cores", (&coreList{firstCore(t)}).String(), "-warmup", "1ms", "-depth", "4", "-time", "20ms"}, args...)
}

// What a real target refuses gets one line, too.
func TestRefusals(t *testing.T) {
	s := serveTest(t, func(c *target.Config) {
		c.Transport.DataDigest = target.DigestDeclined
		c.Subsystems = append(c.Subsystems, target.SubsystemConfig{NQN: "nqn.2014-08.org.example:private", Hosts: []string{"nqn.2014-08.org.example:friend"}},
			target.SubsystemConfig{NQN: "nqn.2014-08.org.example:empty"})
	})
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"wrong NQN", []string{"-target", s.Address("nqn.2014-08.org.example:disc")}, []string{"no subsystem nqn.2014-08.org.example:disc", "subnqn"}},
		{"host not allowed", []string{"-target", s.Address("nqn.2014-08.org.example:private")}, []string{"may not connect", "hostnqn"}},
		{"no namespaces", []string{"-target", s.Address("nqn.2014-08.org.example:empty")}, []string{"no namespaces"}},
		{"no such namespace", []string{"-nsid", "1"}, []string{"namespace 1", "-nsid 3"}},
		{"block size", []string{"-bs", "512"}, []string{"512", "4096", "multiple"}},
		{"range", []string{"-range", "2m"}, []string{"1048576", "2097152", "-range"}},
		{"I/O size", []string{"-bs", "2m"}, []string{"1048576", "2097152", "-bs"}},
		{"range below an I/O", []string{"-bs", "8k", "-range", "4k"}, []string{"4096", "8192", "-range"}},
		{"buffers", []string{"-bs", "1g", "-depth", "5"}, []string{"-depth"}},
		{"data digest", []string{"-ddgst"}, []string{"declined the data digest", "leave out -ddgst"}},
		{"queues", []string{"-queues", "1000", "-depth", "1"}, []string{"128", "-queues"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(t.Context(), remote(t, s, tt.args...), &out, &errs); code != exitFailed {
				t.Errorf("exit status %d, want %d", code, exitFailed)
			}
			checkLine(t, errs.String(), tt.want)
			if out.Len() != 0 {
				t.Errorf("output %q", &out)
			}
		})
	}
	if _, err := parse(t); err != nil {
		t.Fatal(err)
	}
}

func TestRemote(t *testing.T) {
	s := serveTest(t, nil)
	d, human := measureJSON(t, remote(t, s, "-rw", "randrw", "-hdgst")...)
	checkDocument(t, &d)
	if d.Config.NSID != 3 || d.Config.BlockSize != 4096 || !d.Config.HDGST || d.Config.Backend != "" || strings.Contains(human, "embedded") {
		t.Errorf("configuration %+v\n%s", d.Config, human)
	}
	if st := s.Subsystem("nqn.2014-08.org.example:disk").Stats(); st.Reads == 0 || st.Writes == 0 || st.Errors != 0 {
		t.Errorf("the target has seen %+v", st)
	}
}

// I/Os that fail are counted by status, shown, and make the run fail.
func TestFailingIO(t *testing.T) {
	s := serveTest(t, func(c *target.Config) { c.Subsystems[0].Namespaces[0].ReadOnly = true })
	for length := 50 * time.Millisecond; ; length *= 2 {
		var out, errs strings.Builder
		code := run(t.Context(), remote(t, s, "-rw", "randwrite", "-json", "-", "-time", length.String()), &out, &errs)
		var d document
		if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
			t.Fatalf("%v in %s", err, &out)
		}
		if d.Errors == 0 && length < time.Minute {
			continue // nothing has happened
		}
		if code != exitFailed || d.IOs != 0 || d.IOPS != 0 || len(d.Statuses) != 1 || d.Lost != 0 {
			t.Errorf("exit status %d, %s", code, &out)
		}
		for _, want := range []string{"nothing was measured", "Write Protected", "LBA "} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("no %q in %s", want, &errs)
			}
		}
		return
	}
}

// A target that dies is reported with what was lost.
func TestTargetDies(t *testing.T) {
	s := serveTest(t, nil)
	stopped := make(chan error, 1)
	go func() {
		for s.Subsystem("nqn.2014-08.org.example:disk").Stats().Reads == 0 {
			time.Sleep(time.Millisecond)
		}
		stopped <- s.Stop()
	}()
	var out, errs strings.Builder
	code := run(t.Context(), remote(t, s, "-time", "1h", "-warmup", "0", "-json", "-"), &out, &errs)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if code != exitFailed || d.Failure == "" || d.Elapsed >= 3600 || d.Outstanding != 0 || d.Lost > 4 || d.Errors != d.Lost {
		t.Errorf("exit status %d, %s", code, &out)
	}
	if !strings.Contains(errs.String(), "the controller was lost after") {
		t.Errorf("output %s", &errs)
	}
}
