package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const size = 4 << 20

// start serves backends for the time of a test.
func start(t *testing.T, backends ...backend.Backend) *target.Target {
	t.Helper()
	tgt, stop, err := serve(backends...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return tgt
}

// contents reads a namespace, after writing to it if b is given.
func contents(t *testing.T, tgt *target.Target, nsid uint32, b []byte) string {
	t.Helper()
	ctx := t.Context()
	ctrl, err := nvme.Open(ctx, tgt.Address(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ctrl.Close(context.WithoutCancel(ctx))
	ns, err := ctrl.Namespace(ctx, nsid)
	if err != nil {
		t.Fatal(err)
	}
	if b != nil {
		if _, err := ns.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, ns.Size())
	if _, err := ns.ReadAt(got, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(got)
}

func pattern() []byte { return []byte(strings.Repeat("0123456789abcdef", size/16)) }

func TestClone(t *testing.T) {
	tgt := start(t, backend.NewHeap(size), backend.NewHeap(size))
	want := contents(t, tgt, 1, pattern())
	if err := clone(t.Context(), tgt.Address(""), nil, 1, 2, io.Discard); err != nil {
		t.Fatal(err)
	}
	if contents(t, tgt, 2, nil) != want {
		t.Error("the copy differs")
	}
}

// A medium that fails is reported, with where it failed.
func TestBadMedium(t *testing.T) {
	bad := backend.NewFail(backend.NewHeap(size), backend.Fault{
		Status: nvme.StatusUnrecoveredReadError, Kinds: []backend.Kind{backend.Read}, Offset: 3 << 20, Length: 512,
	})
	tgt := start(t, bad, backend.NewHeap(size))
	err := clone(t.Context(), tgt.Address(""), nil, 1, 2, io.Discard)
	if !errors.Is(err, nvme.StatusUnrecoveredReadError) || !strings.Contains(err.Error(), "read at 3145728") {
		t.Errorf("error %v", err)
	}
}

// A target that goes away for a moment costs time, and nothing else.
func TestTargetRestarts(t *testing.T) {
	tgt := start(t, backend.NewHeap(size), backend.NewHeap(size))
	want := contents(t, tgt, 1, pattern())
	restart := &restarter{t: t, tgt: tgt}
	cfg := &nvme.Config{ReconnectDelay: time.Millisecond}
	if err := clone(t.Context(), tgt.Address(""), cfg, 1, 2, restart); err != nil {
		t.Fatal(err)
	}
	if restart.lines != size>>20 {
		t.Errorf("%d lines", restart.lines)
	}
	if contents(t, tgt, 2, nil) != want {
		t.Error("the copy differs")
	}
}

// restarter takes the target away at the second line of output.
type restarter struct {
	t     *testing.T
	tgt   *target.Target
	lines int
}

func (r *restarter) Write(b []byte) (int, error) {
	if r.lines++; r.lines == 2 {
		if err := errors.Join(r.tgt.Stop(), r.tgt.Restart()); err != nil {
			r.t.Error(err)
		}
	}
	return len(b), nil
}

func TestTooSmall(t *testing.T) {
	tgt := start(t, backend.NewHeap(size), backend.NewHeap(size/2))
	if err := clone(t.Context(), tgt.Address(""), nil, 1, 2, io.Discard); err == nil {
		t.Error("no error")
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil || !strings.HasSuffix(out.String(), "copied 8388608 of 8388608 bytes\n") {
		t.Errorf("%v, %s", err, &out)
	}
	tgt := start(t, backend.NewHeap(size), backend.NewHeap(size))
	if err := run([]string{tgt.Address(""), "1", "2"}, &out); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"x"}, {tgt.Address(""), "one", "2"}, {tgt.Address(""), "1", "3"}, {"x", "1", "2"}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
