package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// notes is a slog.Handler that keeps what the library has to say, for people.
type notes struct {
	mu    sync.Mutex
	lines []string
}

// Enabled implements slog.Handler.
func (n *notes) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (n *notes) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, oneLine(b.String()))
	return nil
}

// WithAttrs implements slog.Handler. The library logs without.
func (n *notes) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n *notes) WithGroup(string) slog.Handler { return n }

// take returns what was said since it was called last.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}
