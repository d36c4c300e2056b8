package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serving runs "bench target" and returns what it says to give to -target, and
// a function that ends it and returns the rest of its output and its status.
func serving(t *testing.T, args ...string) (address string, end func() (string, int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	var errs strings.Builder
	if !slices.Contains(args, "-vfio-user") {
		args = append([]string{"-listen", "127.0.0.1:0"}, args...)
	}
	go func() {
		c := run(ctx, append([]string{"target", "-adaptive", "-size", "1m"}, args...), w, &errs)
		_ = w.Close()
		code <- c
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	end = func() (string, int) {
		cancel()
		rest, err := io.ReadAll(out)
		if err != nil {
			t.Error(err)
		}
		return string(rest) + errs.String(), <-code
	}
	address, ok := strings.CutPrefix(strings.TrimSpace(line), `-target "`)
	if err != nil || !ok {
		rest, _ := end()
		t.Fatalf("first line %q, %v, then %s", line, err, rest)
	}
	return strings.TrimSuffix(address, `"`), end
}

func TestServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "disk")
	for _, tt := range []struct {
		args, bench []string
	}{
		{nil, nil},
		{[]string{"-block", "4096", "-backend", "null"}, nil},
		{[]string{"-in-capsule", "0", "-hdgst", "require", "-ddgst", "require"}, []string{"-hdgst", "-ddgst"}},
		{[]string{"-backend", "file", "-file", file, "-size", "64k"}, []string{"-bs", "512"}},
		{[]string{"-nqn", "nqn.2014-08.org.example:mine", "-hosts", "nqn.2014-08.org.example:a,nqn.2014-08.org.example:b"}, []string{"-range", "8k"}},
	} {
		address, end := serving(t, tt.args...)
		if strings.Contains(address, "mine") {
			address += " hostnqn:nqn.2014-08.org.example:b"
		}
		core := (&coreList{firstCore(t)}).String()
		d, _ := measureJSON(t, append([]string{"-target", address, "-rw", "randrw", "-depth", "2", "-warmup", "1ms", "-cores", core}, tt.bench...)...)
		checkDocument(t, &d)
		rest, code := end()
		if code != exitOK || !strings.Contains(rest, " 0 errors") || strings.Contains(rest, "served 0 ") {
			t.Errorf("%q: exit status %d, %s", tt.args, code, rest)
		}
	}
}

func TestServeErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel() // what serves against expectation ends at once
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"-listen " + taken.Addr().String(), exitFailed, []string{"-listen"}},
		{"-listen 192.0.2.1:4420", exitFailed, []string{"-listen"}},
		{"-backend file -file " + filepath.Join(t.TempDir(), "none", "disk"), exitFailed, []string{"-file"}},
		{"-backend file", exitUsage, []string{"-file"}},
		{"-file x", exitUsage, []string{"-backend file"}},
		{"-size 0", exitUsage, []string{"-size"}},
		{"-size 1000", exitUsage, []string{"-size", "-block"}},
		{"-block 1000", exitUsage, []string{"-block"}},
		{"-in-capsule 100", exitUsage, []string{"-in-capsule"}},
		{"-nqn mine", exitUsage, []string{"nqn."}},
		{"-hosts mine", exitUsage, []string{"nqn."}},
		{"-hdgst maybe", exitUsage, []string{"allow, require or decline"}},
		{"-cores 65535", exitUsage, []string{"-cores", "choose from"}},
		{"-listen here:4420", exitUsage, []string{"-listen", ":4420"}},
	} {
		var out, errs strings.Builder
		code := run(ended, append([]string{"target"}, strings.Fields(tt.args)...), &out, &errs)
		if code != tt.code {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, tt.code)
		}
		checkLine(t, errs.String(), tt.want)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"target", "-h"}, &out, &errs); code != exitOK || !strings.Contains(out.String(), "-in-capsule") {
		t.Errorf("exit status %d, %s", code, &out)
	}
}

func TestAddresses(t *testing.T) {
	var a addresses
	if err := a.Set("127.0.0.1:4420,[::1]:0,:8009"); err != nil || a.String() != "127.0.0.1:4420,[::1]:0,0.0.0.0:8009" {
		t.Errorf("%v, %v", &a, err)
	}
}
