package nvme

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// Errors of the blocking calls name what was attempted, and where, and keep
// their cause.
func TestBlockingErrors(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	block := make([]byte, 512)
	ctx := context.Background()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	late, done := context.WithDeadline(ctx, time.Unix(1, 0))
	defer done()
	check := func(err, kind error, parts ...string) {
		t.Helper()
		var op *OpError
		if !errors.Is(err, kind) || !errors.As(err, &op) || op.Controller != "fake disk" {
			t.Errorf("%v is not an *OpError on the controller that wraps %v", err, kind)
			return
		}
		for _, p := range parts {
			if strings.Count(err.Error(), p) != 1 {
				t.Errorf("%v, want %q in it once", err, p)
			}
		}
	}
	read := func(ctx context.Context, b []byte, off int64) error {
		_, err := r.ns.ReadAtContext(ctx, b, off)
		return err
	}
	check(read(gone, block, 1024), context.Canceled, "read of 512 bytes at 1024, namespace 1")
	check(read(late, block, 0), ErrTimeout, "read of 512 bytes at 0")
	if err := read(ctx, block, 1<<20); err != io.EOF {
		t.Errorf("%v, want io.EOF itself", err)
	}
	_, err := r.ns.WriteAt(block, 64*512)
	check(err, ErrOutOfRange, "write of 512 bytes at 32768", "namespace 1")
	var misaligned *AlignmentError
	if _, err = r.ns.WriteAt(block[:100], 0); !errors.As(err, &misaligned) {
		t.Errorf("%v is no *AlignmentError", err)
	}
	different := make([]byte, 512)
	different[0] = 1
	check(r.ns.CompareAt(ctx, different, 0), StatusCompareFailure, "compare of 512 bytes at 0", "queue 1")
	check(r.ns.Flush(gone), context.Canceled, "flush of namespace 1")
	check(r.ns.Deallocate(gone, 512, 1024), context.Canceled, "deallocate of 1024 bytes at 512")
	check(r.ns.WriteZeroes(gone, 0, 512), context.Canceled, "write zeroes of 512 bytes at 0")

	_, err = r.ns.Passthrough(gone, &Command{Opcode: OpRead}, nil)
	check(err, context.Canceled, "command 0x2, namespace 1")
	_, err = r.c.Admin(gone, &Command{Opcode: AdminIdentify}, block)
	check(err, context.Canceled, "admin command 0x6", "queue 0")
	_, err = r.c.GetFeature(gone, FeatNumberOfQueues, 0, 0, 0, nil)
	check(err, context.Canceled, "get feature 0x7")
	if strings.Contains(err.Error(), "admin command") {
		t.Errorf("%v says what was attempted twice", err)
	}

	if err := r.c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	check(read(ctx, block, 0), ErrClosed, "read of 512 bytes at 0", "fake disk")
	_, err = r.c.OpenQueue(ctx, r.p, QueueConfig{})
	check(err, ErrClosed, "open I/O queue")
}

// What fails because the controller is away says so once.
func TestNotLiveOnce(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{FastIOFailTimeout: time.Nanosecond, ReconnectDelay: time.Hour, CtrlLossTimeout: Forever})
	d.mu.Lock()
	d.connecting = func(ctx context.Context, qp *QueuePair) error { return errCut }
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	var err error
	eventually(t, "a read that fails", func() bool {
		_, err = r.ns.ReadAt(make([]byte, 512), 0)
		return errors.Is(err, ErrNotLive)
	})
	if !errors.Is(err, StatusHostPathError) || strings.Count(err.Error(), ErrNotLive.Error()) != 1 {
		t.Errorf("%v, want its status, and ErrNotLive once", err)
	}
}
