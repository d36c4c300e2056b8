package nvme

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to a controller, in any order: each accepted I/O completes
// once, with a plausible status, after its submission has returned; what reads
// bring is what was there, and what writes report is there; commands go out in
// order, and never to another namespace; and in the end all is accounted for.
func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.tearDown()
		t.Repeat(map[string]func(*rapid.T){
			"submit":    w.submit,
			"submit2":   w.submit,
			"submit3":   w.submit,
			"complete":  w.complete,
			"complete2": w.complete,
			"spurious":  w.spurious,
			"cut":       w.cut,
			"refuse":    w.refuse,
			"time":      w.time,
			"reset":     w.reset,
			"open":      w.open,
			"close":     w.closeQueue,
			"namespace": w.changeNamespace,
			"event":     w.event,
			"bind":      w.bind,
			"blocking":  w.blocking,
			"cancel":    w.cancel,
			"admin":     w.admin,
			"end":       w.end,
			"":          w.check,
		})
	})
}

func (w *world) pick(t *rapid.T) *NamespaceQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queues) == 0 {
		return nil
	}
	return w.queues[rapid.IntRange(0, len(w.queues)-1).Draw(t, "queue")]
}

func (w *world) submit(t *rapid.T) {
	q := w.pick(t)
	if q == nil {
		return
	}
	x := &transfer{
		op: rapid.SampledFrom([]Opcode{OpRead, OpRead, OpWrite, OpWrite, OpCompare, OpWriteZeroes, OpVerify, OpDatasetManagement, OpFlush, 0}).Draw(t, "op"),
		n:  rapid.IntRange(1, 40).Draw(t, "blocks"),
	}
	x.lba = rapid.IntRange(0, worldBlocks-x.n).Draw(t, "lba")
	x.chain = rapid.IntRange(0, 4).Draw(t, "chain") == 0
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		x.n = min(x.n, 8)
	case 1:
		if x.op == OpRead || x.op == OpWrite {
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 2000), 1, 5).Draw(t, "vector") {
				x.vec = append(x.vec, make([]byte, n))
			}
		}
	case 2:
		if x.op == OpWrite {
			x.fused, x.n = true, min(x.n, 8)
		}
	}
	q.qp.p.CallAnyway(func() { w.submitOn(q, x) })
}

func (w *world) complete(t *rapid.T) {
	st := rapid.SampledFrom([]Status{0, 0, 0, 0, StatusUnrecoveredReadError, StatusNamespaceNotReady}).Draw(t, "status")
	at, many := rapid.IntRange(0, 1000).Draw(t, "at"), rapid.IntRange(1, 5).Draw(t, "many")
	w.on(t, func(q *fakeQueue) {
		for range many {
			if len(q.silent) > 0 {
				w.answerAt(q, at%len(q.silent), st)
			}
		}
	})
}

// spurious looks for commands that are not there.
func (w *world) spurious(t *rapid.T) {
	cid := uint16(rapid.IntRange(0, 0xffff).Draw(t, "cid"))
	w.on(t, func(q *fakeQueue) {
		r := q.qp.Find(cid)
		if r != nil && !slices.Contains(q.silent, r) && !slices.Contains(q.posted, r) && q.up {
			w.problem("command %#x found, the disk does not have it", cid)
		}
		if r == nil {
			q.qp.Spurious()
		}
	})
}

func (w *world) cut(t *rapid.T) {
	some := rapid.Bool().Draw(t, "executed")
	f := func(q *fakeQueue) {
		if some && q.up { // executed, and the completions lost
			for _, r := range q.silent {
				if r.Cmd.Flags&FlagFuseMask == 0 && q.qp.ID() != 0 {
					q.execute(r)
				}
			}
		}
		q.cutHere(errCut)
	}
	if rapid.Bool().Draw(t, "admin") {
		q := w.d.queue(0)
		q.qp.p.CallAnyway(func() { f(q) })
		return
	}
	w.on(t, f)
}

func (w *world) refuse(t *rapid.T) {
	left := int32(rapid.IntRange(0, 6).Draw(t, "refusals"))
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	var n atomic.Int32
	n.Store(left)
	w.d.refuse = func(qid uint16) error {
		if n.Add(-1) >= 0 {
			return errRefused
		}
		return nil
	}
}

func (w *world) time(t *rapid.T) {
	w.k.add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
	for _, p := range w.pollers {
		p.CallAnyway(func() {})
	}
}

func (w *world) reset(t *rapid.T) {
	w.call("reset", func() error { return w.c.Reset(context.Background()) })
}

func (w *world) open(t *rapid.T) {
	p := w.pollers[rapid.IntRange(0, 1).Draw(t, "poller")]
	size := rapid.IntRange(2, 9).Draw(t, "size")
	w.call("open", func() error {
		ctx := context.Background()
		ns, err := w.c.Namespace(ctx, 1)
		if err != nil {
			return err
		}
		q, err := ns.Queue(ctx, p, QueueConfig{Size: size})
		if err == nil {
			w.mu.Lock()
			w.queues = append(w.queues, q)
			w.mu.Unlock()
		}
		return err
	})
}

func (w *world) closeQueue(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
		return
	}
	q := w.pick(t)
	if q == nil {
		return
	}
	n := rapid.IntRange(1, 2).Draw(t, "times")
	for range n {
		w.call("queue close", func() error { return q.Close(context.Background()) })
	}
}

func (w *world) changeNamespace(t *rapid.T) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		w.d.uuid[0]++
	case 1:
		w.d.removed = !w.d.removed
	default:
		w.d.ns.NSZE = uint64(rapid.IntRange(worldBlocks-20, worldBlocks).Draw(t, "size"))
	}
}

func (w *world) event(t *rapid.T) {
	e := AsyncEvent(uint32(AsyncNotice) | uint32(LogChangedNamespaces)<<16)
	if rapid.Bool().Draw(t, "other") {
		e = firmwareEvent
	}
	q := w.d.queue(0)
	q.qp.p.CallAnyway(func() { q.event(e) })
}

// bind gives the queues the namespace as it is now.
func (w *world) bind(t *rapid.T) {
	w.call("bind", func() error {
		ns, err := w.c.Namespace(context.Background(), 1)
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, q := range w.queues {
			if n, err := q.qp.Bind(ns); err == nil {
				w.queues[i] = n
			}
		}
		return nil
	})
}

func (w *world) blocking(t *rapid.T) {
	op := rapid.IntRange(0, 5).Draw(t, "op")
	n := rapid.IntRange(1, 40).Draw(t, "blocks")
	lba := rapid.IntRange(0, worldBlocks-n).Draw(t, "lba")
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels = append(w.cancels, cancel)
	w.now++
	begun := w.now
	w.calls = append(w.calls, pendingCall{"blocking", outcome(func() error {
		ns, err := w.c.Namespace(ctx, 1)
		if err != nil {
			return err
		}
		off, size := int64(lba)*512, int64(n)*512
		x := &transfer{w: w, lba: lba, n: n, begun: begun, buf: make([]byte, size)}
		switch op {
		case 0:
			x.op = OpRead
			_, err = ns.ReadAtContext(ctx, x.buf, off)
		case 1:
			x.op, x.value = OpWrite, begun
			fill(x.buf, begun)
			_, err = ns.WriteAtContext(ctx, x.buf, off)
		case 2:
			err = ns.Flush(ctx)
		case 3:
			x.op = OpDatasetManagement
			err = ns.Deallocate(ctx, off, size)
		case 4:
			x.op = OpWriteZeroes
			err = ns.WriteZeroes(ctx, off, size)
		case 5:
			_, err = ns.Passthrough(ctx, &Command{Opcode: OpFlush}, nil)
		}
		if err == nil {
			w.mu.Lock()
			x.verify()
			w.mu.Unlock()
		}
		return err
	})})
}

func (w *world) cancel(t *rapid.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.cancels {
		c()
	}
	w.cancels = nil
}

func (w *world) admin(t *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.cancels = append(w.cancels, cancel)
	w.mu.Unlock()
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		w.call("admin", func() error { _, err := w.c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); return err })
	case 1:
		w.call("property", func() error { _, err := w.c.Property(ctx, RegCSTS, 4); return err })
	case 2:
		w.call("list", func() error { _, err := w.c.ActiveNamespaces(ctx); return err })
	}
}

// end closes the controller, rarely.
func (w *world) end(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") != 0 {
		return
	}
	w.call("controller close", func() error { return w.c.Close(context.Background()) })
}

// check fails on what was noticed, and on calls that returned nonsense.
func (w *world) check(t *rapid.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var left []pendingCall
	for _, c := range w.calls {
		select {
		case err := <-c.done:
			w.judge(c.name, err)
		default:
			left = append(left, c)
		}
	}
	w.calls = left
	if len(w.problems) > 0 {
		t.Fatal(w.problems)
	}
}
