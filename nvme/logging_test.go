package nvme

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// with returns the lines that hold all of the texts.
func (l *lines) with(texts ...string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		list = append(list, line)
	}
	return list
}

// A lost connection and an attempt that failed are warnings; what goes well, or
// was asked for, is not.
func TestLogLevels(t *testing.T) {
	var log lines
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := r.c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if list := log.with("level=WARN"); len(list) != 0 {
		t.Errorf("warnings of a reset that was asked for: %q", list)
	}
	fails := 2
	d.mu.Lock()
	d.connecting = func(_ context.Context, qp *QueuePair) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if fails--; fails >= 0 {
			return errCut
		}
		return nil
	}
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	eventually(t, "the end of the recovery", func() bool { return len(log.with("to=live")) == 3 })
	for want, texts := range map[int][]string{
		1: {"level=WARN", "controller state", "from=live", "to=resetting", errCut.Error()},
		2: {"level=WARN", "msg=reconnect", "attempt", errCut.Error()},
		0: {"level=WARN", "to=live"},
	} {
		if list := log.with(texts...); len(list) != want {
			t.Errorf("%d lines with %q, want %d: %q", len(list), texts, want, list)
		}
	}
	if err := r.c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if list := log.with("level=WARN", "to=deleting"); len(list) != 0 {
		t.Errorf("a warning of a close: %q", list)
	}
}
