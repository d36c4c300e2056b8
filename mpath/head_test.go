package mpath

import (
	"bytes"
	"strings"
	"testing"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// Two ports of one subsystem are two paths of one head, and both carry I/O.
func TestOpen(t *testing.T) {
	r := newRig(t, 2)
	cfg := quick()
	cfg.Policy = "round-robin"
	h := r.open(cfg)
	if len(h.Paths()) != 2 || h.BlockSize() != 512 || h.Blocks() != testBlocks || !h.Shared() {
		t.Fatal(h.Paths(), h.BlockSize(), h.Blocks(), h.Shared())
	}
	c := r.channel(h)
	for i := range uint64(8) {
		w := fill(make([]byte, 512), byte(i+1))
		if st := r.submit("write", func(o *op) error { return c.Write(w, i, 1, opDone, o) }).wait(); !st.OK() {
			t.Fatal(st)
		}
		got := make([]byte, 512)
		if st := r.submit("read", func(o *op) error { return c.Read(got, i, 1, opDone, o) }).wait(); !st.OK() || !bytes.Equal(got, w) {
			t.Fatal(st, "or wrong data")
		}
	}
	r.idle(c)
	must(t, c.Close(within(t)))
	buf := make([]byte, 1024)
	if n, err := h.ReadAt(buf, 512); n != 1024 || err != nil || buf[0] != 2 || buf[512] != 3 {
		t.Fatal(n, err, buf[0], buf[512])
	}
	if _, err := h.WriteAt(fill(buf, 9), 0); err != nil {
		t.Fatal(err)
	}
	must(t, h.Flush(within(t)))
}

// A path that goes is replaced by the other one, and used again when it is back.
func TestFailover(t *testing.T) {
	r := newRig(t, 2)
	cfg := quick()
	cfg.Policy = "round-robin"
	h := r.open(cfg)
	c := r.channel(h)
	for round := range 6 {
		lost := r.path(h, round%2)
		r.ports[round%2].Pause()
		var ops []*op
		for i := range uint64(16) {
			w := fill(make([]byte, 512), byte(round)<<4|byte(i))
			ops = append(ops, r.submit("write", func(o *op) error { return c.Write(w, i, 1, opDone, o) }))
		}
		for _, o := range ops {
			if st := o.wait(); !st.OK() {
				t.Fatal(round, st)
			}
		}
		for i := range uint64(16) {
			got := make([]byte, 512)
			if st := r.submit("read", func(o *op) error { return c.Read(got, i, 1, opDone, o) }).wait(); !st.OK() || got[0] != byte(round)<<4|byte(i) {
				t.Fatal(round, st, got[0])
			}
		}
		must(t, r.ports[round%2].Resume())
		eventually(t, "return of the path", lost.Usable)
		before := lost.Stats().Dispatched
		eventually(t, "I/O on the path", func() bool {
			r.submit("read", func(o *op) error { return c.Read(make([]byte, 512), 0, 1, opDone, o) }).wait()
			return lost.Stats().Dispatched > before
		})
	}
	r.idle(c)
}
