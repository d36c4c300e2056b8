package mpath

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// I/O that waits for a path goes out in the order of submission, and behind it
// what was submitted later.
func TestRequeueOrder(t *testing.T) {
	w := newWorld(t, 2, nil)
	var got []uint64
	record := func(r *nvme.Request) (nvme.Status, bool) {
		got = append(got, uint64(r.Cmd.CDW10))
		return 0, true
	}
	w.hold(0, true)
	w.hold(1, true)
	var ops []*op
	for lba := range uint64(10) {
		ops = append(ops, w.write(lba, 1))
	}
	eventually(t, "writes", func() bool { return w.held(0)+w.held(1) == 10 })
	for i, k := range w.k {
		k.setRefuse(errCut)
		k.cut(errCut)
		eventually(t, "loss", func() bool { return w.c[i].State() != nvme.StateLive })
	}
	eventually(t, "requeue", func() bool { s := w.ch.Stats(); return s.Waiting == 10 })
	for lba := uint64(10); lba < 20; lba++ {
		ops = append(ops, w.write(lba, 1))
	}
	w.on(func() { w.k[0].hook, w.k[1].hook = record, record })
	w.k[1].setRefuse(nil)
	for _, o := range ops {
		if st := o.wait(); !st.OK() {
			t.Fatal(o.name, st)
		}
	}
	w.on(func() {
		for i, lba := range got {
			if lba != uint64(i) {
				t.Fatal("order", got)
			}
		}
	})
	w.idle(w.ch)
}

// Without any path I/O waits for FastIOFailTimeout, and then fails until there is
// one.
func TestFastIOFail(t *testing.T) {
	cfg := quick()
	cfg.FastIOFailTimeout = 50 * time.Millisecond
	w := newWorld(t, 1, cfg)
	w.k[0].setRefuse(errCut)
	w.k[0].cut(errCut)
	eventually(t, "loss", func() bool { return w.c[0].State() == nvme.StateConnecting })
	eventually(t, "failing", func() bool {
		_, err := w.h.ReadAt(make([]byte, 512), 0)
		if !errors.Is(err, ErrNoPath) || !contains(err.Error(), "nvme0c0n1") {
			t.Fatal(err)
		}
		var refused bool
		w.on(func() {
			err := w.ch.Read(make([]byte, 512), 0, 1, func(any, nvme.Status) {}, nil)
			refused = errors.Is(err, ErrNoPath)
		})
		return refused
	})
	w.k[0].setRefuse(nil)
	eventually(t, "path", func() bool { return w.pathOf(0).Usable() })
	if _, err := w.h.ReadAt(make([]byte, 512), 0); err != nil {
		t.Error(err)
	}
	w.idle(w.ch)
}

// After the last path has gone for good, I/O waits for another one as long as
// DelayedRemoval says.
func TestDelayedRemoval(t *testing.T) {
	w := newWorld(t, 1, nil)
	must(t, w.h.SetDelayedRemoval(time.Hour))
	must(t, w.s.Remove(within(t), w.c[0]))
	o := w.write(4, 4)
	eventually(t, "waiting", func() bool { return w.ch.Stats().Waiting == 1 })
	k := newController(7, w.media)
	c, err := w.s.AddTransport(within(t), k)
	must(t, err)
	if st := o.wait(); !st.OK() || w.media.at(4) != 4 {
		t.Fatal(st)
	}
	if n := len(w.s.Heads()); n != 1 {
		t.Errorf("%d heads", n)
	}
	must(t, w.s.Remove(within(t), c))
	o = w.write(4, 5)
	must(t, w.h.SetDelayedRemoval(time.Millisecond))
	if st := o.wait(); st.Code() != nvme.StatusHostPathError || w.media.at(4) != 4 {
		t.Error(st)
	}
	must(t, w.h.SetDelayedRemoval(0))
	w.on(func() {
		if err := w.ch.Flush(nil, nil); !errors.Is(err, ErrNoPath) {
			t.Error(err)
		}
	})
	if err := w.h.SetDelayedRemoval(-1); !errors.Is(err, ErrAttribute) {
		t.Error(err)
	}
	w.idle(w.ch)
}

// What waits for a path is checked when it is submitted.
func TestChecksWithoutPath(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.k[0].setRefuse(errCut)
	w.k[0].cut(errCut)
	eventually(t, "loss", func() bool { return w.c[0].State() == nvme.StateConnecting })
	b := make([]byte, 512)
	w.on(func() {
		for _, c := range []struct {
			err  error
			want error
		}{
			{w.ch.Read(b, 0, 2, opDone, nil), nvme.ErrLength},
			{w.ch.Read(b, 0, 0, opDone, nil), nvme.ErrLength},
			{w.ch.Write(b, testBlocks, 1, opDone, nil), nvme.ErrOutOfRange},
			{w.ch.WriteZeroes(testBlocks-1, 2, opDone, nil), nvme.ErrOutOfRange},
			{w.ch.WriteZeroes(1<<63, 1<<63, opDone, nil), nvme.ErrOutOfRange},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%v, want %v", c.err, c.want)
			}
		}
	})
	w.idle(w.ch)
}

// Statuses that are not the path's go to the caller, as do those that forbid a
// retry.
func TestErrorsOfTheCaller(t *testing.T) {
	w := newWorld(t, 2, nil)
	for _, st := range []nvme.Status{
		nvme.StatusUnrecoveredReadError, nvme.StatusLBAOutOfRange | nvme.StatusDNR, nvme.StatusReservationConflict,
		nvme.StatusInternalPathError | nvme.StatusDNR, nvme.StatusAbortRequested,
	} {
		seen := 0
		for _, k := range w.k {
			w.on(func() {
				k.hook = func(*nvme.Request) (nvme.Status, bool) { seen++; return st, true }
			})
		}
		if got := w.write(0, 1).wait(); got != st {
			t.Errorf("%v, want %v", got, st)
		}
		w.on(func() {
			if seen != 1 {
				t.Errorf("%v: sent %d times", st, seen)
			}
		})
	}
	w.idle(w.ch)
}

// A path error on one path has the I/O sent down the other; on both, it is tried
// again for a while.
func TestPathErrors(t *testing.T) {
	w := newWorld(t, 2, nil)
	for _, st := range []nvme.Status{nvme.StatusInternalPathError, nvme.StatusControllerPathError, nvme.StatusAbortedSQDeletion} {
		for _, times := range []int{1, 2, 5} {
			left := times
			for _, k := range w.k {
				w.on(func() {
					k.hook = func(*nvme.Request) (nvme.Status, bool) {
						if left--; left >= 0 {
							return st, true
						}
						return 0, true
					}
				})
			}
			if got := w.write(9, byte(times)).wait(); !got.OK() || w.media.at(9) != byte(times) {
				t.Errorf("%v %d times: %v", st, times, got)
			}
		}
	}
	w.idle(w.ch)
}

// A raw command is sent once, whatever becomes of it.
func TestRawCommand(t *testing.T) {
	w := newWorld(t, 2, nil)
	raw := func() (*op, error) {
		o := &op{t: t, name: "raw", done: make(chan struct{})}
		var err error
		w.on(func() {
			cmd := nvme.Command{Opcode: nvme.OpFlush, NSID: 77}
			err = w.ch.Submit(&cmd, nvme.Data{}, func(arg any, cpl *nvme.Completion) { opDone(arg, cpl.Status()) }, o)
		})
		return o, err
	}
	o, err := raw()
	must(t, err)
	if st := o.wait(); !st.OK() {
		t.Error(st)
	}
	for _, k := range w.k {
		w.on(func() {
			k.hook = func(*nvme.Request) (nvme.Status, bool) { return nvme.StatusInternalPathError, true }
		})
	}
	o, err = raw()
	must(t, err)
	if st := o.wait(); st.Code() != nvme.StatusInternalPathError {
		t.Error(st)
	}
	w.idle(w.ch)
}

// Blocking calls end with their context, wherever the I/O is.
func TestCancel(t *testing.T) {
	for _, where := range []string{"waiting", "parked", "sent"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t, 1, nil, func(_ int, k *fakeController) {
				k.id.CQT = 60_000
				k.hook = func(r *nvme.Request) (nvme.Status, bool) { return 0, r.Cmd.Opcode != nvme.OpWrite }
			})
			ctx, cancel := context.WithCancel(within(t))
			b := make([]byte, 512)
			result := make(chan error, 1)
			if where != "waiting" {
				go func() { _, err := w.h.WriteAtContext(ctx, b, 0); result <- err }()
				eventually(t, "write", func() bool {
					c := w.h.blocking.Load()
					n := 0
					if c != nil {
						must(t, c.p.Call(within(t), func() { n = len(w.k[0].heldOn()) }))
					}
					return n == 1
				})
			}
			if where != "sent" {
				w.k[0].setRefuse(errCut)
				w.k[0].cut(errCut)
				eventually(t, "loss", func() bool { return w.c[0].State() == nvme.StateConnecting })
			}
			if where == "waiting" {
				go func() { _, err := w.h.ReadAtContext(ctx, b, 0); result <- err }()
				eventually(t, "waiting", func() bool {
					c := w.h.blocking.Load()
					return c != nil && c.Stats().Waiting == 1
				})
			}
			if where == "parked" {
				eventually(t, "parked", func() bool { return w.h.blocking.Load().Stats().Parked == 1 })
			}
			cancel()
			if where == "sent" { // the fake does not abort; the association goes
				w.k[0].cut(errCut)
			}
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// A verifying workload from several goroutines while paths are killed.
func TestFailoverCampaign(t *testing.T) {
	r := newRig(t, 2)
	h := r.open(quick())
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for worker := range 4 {
		wg.Go(func() {
			b, got := make([]byte, 1024), make([]byte, 1024)
			for gen := 1; ; gen++ {
				select {
				case <-stop:
					return
				default:
				}
				off := int64(worker*16+gen%8*2) * 512
				copy(b, fmt.Sprintf("worker %d generation %d", worker, gen))
				if _, err := h.WriteAt(b, off); err != nil {
					t.Error(err)
					return
				}
				if _, err := h.ReadAt(got, off); err != nil || string(got) != string(b) {
					t.Errorf("%v, %.30q instead of %.30q", err, got, b)
					return
				}
			}
		})
	}
	for i := range 20 {
		port := r.ports[i%2]
		p := r.path(h, i%2)
		switch i % 4 {
		case 0, 1:
			port.Kill()
		case 2:
			port.Pause()
			time.Sleep(5 * time.Millisecond)
			must(t, port.Resume())
		case 3:
			must(t, port.SetANA(1, nvme.ANAInaccessible))
			time.Sleep(5 * time.Millisecond)
			must(t, port.SetANA(1, nvme.ANAOptimized))
		}
		eventually(t, "path", p.Usable)
	}
	close(stop)
	wg.Wait()
}
