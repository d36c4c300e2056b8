package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Wrong arguments get one line that says what to type instead, and status 2,
// before anything is started.
func TestUsage(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none", "file")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"frob", []string{`"frob"`, "target"}},
		{"-dept 4", []string{"-dept", "-depth"}},
		{"-nosuchflag", []string{"-nosuchflag", "bench -h"}},
		{"-rw reed", []string{"-rw", "reed", "randrw"}},
		{"-rw", []string{"-rw needs a value", "randread"}},
		{"-depth 0", []string{"-depth", "1 to 65535"}},
		{"-depth many", []string{"-depth", "many", "whole number"}},
		{"-depth 65536", []string{"-depth", "1 to 65535"}},
		{"-queues 0", []string{"-queues", "1 to 1024"}},
		{"-bs 4x", []string{"-bs", "4x", "4KiB"}},
		{"-bs 0", []string{"-bs", "4k"}},
		{"-bs 2g", []string{"-bs", "1 GiB"}},
		{"-time 0", []string{"-time", "10s"}},
		{"-time -1s", []string{"-time", "0 to 365 days"}},
		{"-time ten", []string{"-time", "ten", "200ms"}},
		{"-mix 101", []string{"-mix", "0 to 100"}},
		{"-mix 50", []string{"-mix", "randrw", "randread"}},
		{"-cores x", []string{"-cores", "0x5"}},
		{"-cores 65535", []string{"-cores", "65535", "choose from"}},
		{"-target-cores 65534", []string{"-target-cores", "65534", "choose from"}},
		{"-hdgst=maybe", []string{"-hdgst", "maybe"}},
		{"-nsid 0", []string{"-nsid", "1 to"}},
		{"-json " + nowhere, []string{"-json", nowhere, "standard output"}},
		{"-json=", []string{"-json", "nothing in it"}},
		{"-backend tape", []string{"-backend", "memory or null"}},
		{"-size 1k", []string{"-size", "1 MiB"}},
		{"-target trtype:tcp,traddr:127.0.0.1 -backend null", []string{"-backend", "embedded"}},
		{"-target trtype:tcp traddr:127.0.0.1", []string{"traddr:127.0.0.1", "quotes"}},
		{"-time 1s 2s", []string{"2s", "no flag"}},
		{"-target tcp", []string{"-target", "tcp", "write -target"}},
		{"-target trtype:tcp,tradr:127.0.0.1", []string{"tradr", "traddr", "write -target"}},
		{"-target trtype:tcp,traddr:127.0.0.1", []string{"subnqn", "write -target"}},
		{"-target trtype:tcp,traddr:127.0.0.1,subnqn:x", []string{"NQN", "nqn.", "write -target"}},
		{"-target trtype:rdma,traddr:127.0.0.1,subnqn:nqn.x", []string{"rdma", "tcp", "write -target"}},
		{"-target trtype:tcp,traddr:127.0.0.1,trsvcid:http-but-not,subnqn:nqn.x", []string{"trsvcid", "http-but-not"}},
		{"-target trtype:tcp,traddr:127.0.0.1,subnqn:nqn.x,hostnqn:me", []string{"NQN", "me", "write -target"}},
		{"target -listen nowhere", []string{"-listen", "nowhere"}},
		{"target -dept 4", []string{"-dept", "bench target -h"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs strings.Builder
			code := run(t.Context(), strings.Fields(tt.args), &out, &errs)
			if code != exitUsage {
				t.Errorf("exit status %d, want %d", code, exitUsage)
			}
			checkLine(t, errs.String(), tt.want)
			if out.Len() != 0 {
				t.Errorf("output %q", &out)
			}
		})
	}
}

// checkLine wants one line from bench that holds all of the texts.
func checkLine(t *testing.T, got string, want []string) {
	t.Helper()
	if strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "bench: ") || !strings.HasSuffix(got, "\n") {
		t.Errorf("not one line: %q", got)
	}
	for _, text := range want {
		if !strings.Contains(got, text) {
			t.Errorf("no %q in %q", text, got)
		}
	}
}
