//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/qpoll/qpoll/internal/guest/wire"
)

// dial returns the host's end of a session with a server.
func dial(t *testing.T, s *server) *yamux.Session {
	t.Helper()
	host, guest := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.serve(guest) }()
	sess, err := yamux.Client(host, wire.SessionConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sess.Close()
		if err := <-done; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("serve: %v", err)
		}
	})
	return sess
}

// frame is a frame to send.
type frame struct {
	k wire.Kind
	b string
}

// request sends a request and then frames, and returns the data, the standard
// error and the result that come back.
func request(t *testing.T, sess *yamux.Session, req any, send ...frame) (data, stderr string, res *wire.Result) {
	t.Helper()
	st, err := sess.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := wire.WriteJSON(st, wire.KindRequest, req); err != nil {
		t.Fatal(err)
	}
	for _, f := range send {
		if err := wire.WriteFrame(st, f.k, []byte(f.b)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		k, b, err := wire.ReadFrame(st, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case k == wire.KindData:
			data += string(b)
		case k == wire.KindStderr:
			stderr += string(b)
		default:
			if res, err = wire.DecodeResult(b); err != nil {
				t.Fatal(err)
			}
			return data, stderr, res
		}
	}
}

func shell(script string) *wire.Request {
	return &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{Argv: []string{"sh", "-c", script}, Env: []string{"X=y"}, Dir: "/"}}
}

func TestExec(t *testing.T) {
	sess := dial(t, &server{})
	out, errOut, res := request(t, sess, shell("pwd; echo $X; echo e >&2; cat; exit 3"), frame{wire.KindData, "in\x00put"}, frame{wire.KindEOF, ""})
	if out != "/\ny\nin\x00put" || errOut != "e\n" || res.Err != nil || res.Exit == nil || *res.Exit != (wire.Exit{Code: 3}) {
		t.Errorf("got %q, %q, %+v", out, errOut, res)
	}
	_, _, res = request(t, sess, shell("sleep 1000"), frame{wire.KindSignal, string(rune(syscall.SIGTERM))})
	if res.Exit == nil || *res.Exit != (wire.Exit{Code: -1, Signal: int(syscall.SIGTERM)}) {
		t.Errorf("got %+v", res)
	}
	_, _, res = request(t, sess, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{Argv: []string{"no-such-command"}}})
	if err := res.Err.Unpack(); err == nil || res.Exit != nil {
		t.Errorf("got %+v", res)
	}
}

// TestExecCancelled closes a stream while its command runs.
func TestExecCancelled(t *testing.T) {
	sess := dial(t, &server{})
	st, err := sess.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(t.TempDir(), "fifo")
	if out, err := exec.Command("mkfifo", marker).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	// The command's child holds the pipe open; it has to go too.
	if err := wire.WriteJSON(st, wire.KindRequest, shell("exec 3>"+marker+"; sleep 1000 & sleep 1000")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(marker) // returns when the command has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st.Close()
	if b, err := io.ReadAll(f); len(b) > 0 || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestBadRequests(t *testing.T) {
	sess := dial(t, &server{setupErr: errors.New("the module is broken")})
	for want, req := range map[string]any{
		"the module is broken": &wire.Request{Op: wire.OpHello},
		"unknown operation":    map[string]string{"op": "dance"},
		"without a path":       map[string]string{"op": "fetch"},
		"unknown step":         &wire.Request{Op: wire.OpSteps, Steps: []wire.Step{{Kind: "hop", Path: "/"}}},
		"wire: request":        []int{1},
	} {
		if _, _, res := request(t, sess, req); res.Err == nil || !strings.Contains(res.Err.Msg, want) {
			t.Errorf("%s: got %+v", want, res)
		}
	}
	st, err := sess.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := wire.WriteFrame(st, wire.KindEOF, nil); err != nil {
		t.Fatal(err)
	}
	if k, b, err := wire.ReadFrame(st, nil); k != wire.KindResult || !bytes.Contains(b, []byte("first frame")) {
		t.Errorf("got %d, %q, %v", k, b, err)
	}
}

func TestSteps(t *testing.T) {
	sess := dial(t, &server{})
	d := t.TempDir()
	_, _, res := request(t, sess, &wire.Request{Op: wire.OpSteps, Steps: []wire.Step{
		{Kind: wire.StepMkdir, Path: d + "/a", Mode: 0o700},
		{Kind: wire.StepWrite, Path: d + "/a/f", Data: []byte("x\x00y"), Mode: 0o600},
		{Kind: wire.StepSymlink, Path: d + "/a/l", Data: []byte("f")},
		{Kind: wire.StepList, Path: d + "/a"},
		{Kind: wire.StepRead, Path: d + "/a/l"},
		{Kind: wire.StepReadlink, Path: d + "/a/l"},
		{Kind: wire.StepGlob, Path: d + "/a/*"},
		{Kind: wire.StepRemoveAll, Path: d + "/a"},
		{Kind: wire.StepTransact, Path: "/dev/null", Data: []byte("x")},
	}})
	if res.Err != nil || len(res.Replies) != 9 {
		t.Fatalf("got %+v", res)
	}
	r := res.Replies
	if strings.Join(r[3].Names, " ") != "f l" || string(r[4].Data) != "x\x00y" || string(r[5].Data) != "f" ||
		r[6].Files[d+"/a/l"].Link != "f" || string(r[6].Files[d+"/a/f"].Data) != "x\x00y" {
		t.Errorf("got %+v", r)
	}
	_, _, res = request(t, sess, &wire.Request{Op: wire.OpSteps, Steps: []wire.Step{
		{Kind: wire.StepMkdirAll, Path: d + "/b/c"},
		{Kind: wire.StepRemove, Path: d + "/b"},
		{Kind: wire.StepRemove, Path: d + "/b/c"},
	}})
	if err := res.Err.Unpack(); !errors.Is(err, syscall.ENOTEMPTY) || len(res.Replies) != 1 {
		t.Errorf("got %v, %+v", err, res)
	}
	_, _, res = request(t, sess, &wire.Request{Op: wire.OpSteps, Steps: []wire.Step{
		{Kind: wire.StepSymlink, Path: d + "/b", Data: []byte("x")},
	}})
	var pe *fs.PathError
	if err := res.Err.Unpack(); !errors.As(err, &pe) || pe.Path != d+"/b" || !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
}

func TestUploadAndFetch(t *testing.T) {
	sess := dial(t, &server{})
	path := filepath.Join(t.TempDir(), "new", "file")
	_, _, res := request(t, sess, &wire.Request{Op: wire.OpUpload, Path: path, Mode: 0o600},
		frame{wire.KindData, "one "}, frame{wire.KindData, "two"}, frame{wire.KindEOF, ""})
	if res.Err != nil {
		t.Fatalf("got %+v", res)
	}
	data, _, res := request(t, sess, &wire.Request{Op: wire.OpFetch, Path: path})
	if res.Err != nil || data != "one two" {
		t.Errorf("got %q, %+v", data, res)
	}
	_, _, res = request(t, sess, &wire.Request{Op: wire.OpUpload, Path: path}, frame{wire.KindSignal, "x"})
	if res.Err == nil {
		t.Error("a signal in an upload is no error")
	}
}
