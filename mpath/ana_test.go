package mpath

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
)

// I/O follows the ANA states of the ports, and waits while none is accessible.
func TestANAFlips(t *testing.T) {
	r := newRig(t, 2)
	cfg := quick()
	cfg.Policy = "round-robin"
	h := r.open(cfg)
	c := r.channel(h)
	state := func(port int) nvme.ANAState {
		s, group := r.path(h, port).ANA()
		if group != 1 {
			t.Errorf("ANA group %d", group)
		}
		return s
	}
	set := func(port int, s nvme.ANAState) {
		must(t, r.ports[port].SetANA(1, s))
		eventually(t, s.String(), func() bool { return state(port) == s })
		r.on(func() {}) // the view has been posted
	}
	read := func() *op {
		return r.submit("read", func(o *op) error { return c.Read(make([]byte, 512), 0, 1, opDone, o) })
	}
	// on returns how many of eight reads each port got.
	on := func() (n [2]uint64) {
		t.Helper()
		var before [2]uint64
		stats := func(port int) (v uint64) {
			slot := r.path(h, port).slot
			r.on(func() { v = c.set.Stats(slot).Dispatched })
			return v
		}
		for i := range before {
			before[i] = stats(i)
		}
		for range 8 {
			if st := read().wait(); !st.OK() {
				t.Fatal(st)
			}
		}
		for i := range before {
			n[i] = stats(i) - before[i]
		}
		return n
	}
	if n := on(); n != [2]uint64{4, 4} {
		t.Error("both optimized:", n)
	}
	set(1, nvme.ANANonOptimized)
	if n := on(); n != [2]uint64{8, 0} {
		t.Error("one optimized:", n)
	}
	set(0, nvme.ANAInaccessible)
	if n := on(); n != [2]uint64{0, 8} {
		t.Error("none optimized:", n)
	}
	set(1, nvme.ANAInaccessible)
	o := read()
	eventually(t, "waiting I/O", func() bool { return c.Stats().Waiting == 1 })
	if o.ended() {
		t.Error("read without a path")
	}
	set(0, nvme.ANAOptimized)
	if st := o.wait(); !st.OK() {
		t.Error(st)
	}
	r.idle(c)
}

// When there is persistent loss everywhere, nothing is waited for.
func TestPersistentLoss(t *testing.T) {
	w := newWorld(t, 2, nil, func(_ int, k *fakeController) { k.withANA(10) })
	for i, k := range w.k {
		k.setANA(1, nvme.ANAPersistentLoss, true)
		eventually(t, "loss", func() bool { s, _ := w.pathOf(i).ANA(); return s == nvme.ANAPersistentLoss })
	}
	w.on(func() {
		if err := w.ch.Read(make([]byte, 512), 0, 1, opDone, nil); !errors.Is(err, ErrNoPath) || !errors.Is(err, nvme.StatusHostPathError) {
			t.Error(err)
		}
	})
	if _, err := w.h.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrNoPath) || !contains(err.Error(), "persistent-loss") {
		t.Error(err)
	}
}

// An ANA error has the log read again, after which I/O goes where that says,
// without an event.
func TestANAErrorReadsLog(t *testing.T) {
	for _, st := range []nvme.Status{nvme.StatusANAInaccessible, nvme.StatusANAPersistentLoss, nvme.StatusANATransition} {
		t.Run(st.Name(), func(t *testing.T) {
			cfg := quick()
			cfg.Policy = "numa"
			w := newWorld(t, 2, cfg, func(i int, k *fakeController) { k.withANA(10) })
			if st := w.write(1, 1).wait(); !st.OK() {
				t.Fatal(st)
			}
			used := 0
			if w.dispatched(1) > 0 {
				used = 1
			}
			before := w.k[used].logsRead()
			w.k[used].setANA(1, nvme.ANAInaccessible, false)
			w.on(func() { w.k[used].hook = func(*nvme.Request) (nvme.Status, bool) { return st, true } })
			if st := w.write(1, 2).wait(); !st.OK() || w.media.at(1) != 2 {
				t.Fatal(st)
			}
			eventually(t, "reading of the log", func() bool { return w.k[used].logsRead() > before })
			eventually(t, "state", func() bool { s, _ := w.pathOf(used).ANA(); return s == nvme.ANAInaccessible })
			eventually(t, "count of failovers", func() bool { return w.pathOf(used).Stats().Failovers == 1 })
			w.idle(w.ch)
		})
	}
}

// A path in change for longer than ANATT counts as failed.
func TestANATT(t *testing.T) {
	downs := make(chan error, 16)
	cfg := quick()
	cfg.Events = &Events{PathDown: func(_ *Head, _ *Path, err error) { downs <- err }}
	w := newWorld(t, 1, cfg, func(_ int, k *fakeController) { k.withANA(1) })
	w.k[0].setANA(1, nvme.ANAChange, true)
	eventually(t, "change", func() bool { s, _ := w.pathOf(0).ANA(); return s == nvme.ANAChange })
	if err := <-downs; errors.Is(err, ErrANATT) {
		t.Error("at once:", err)
	}
	o, _ := w.read(0) // waits, and then fails
	if st := o.wait(); st.Code() != nvme.StatusHostPathError {
		t.Error(st)
	}
	w.h.sub.mu.Lock()
	expired := w.pathOfLocked(0).expired
	w.h.sub.mu.Unlock()
	if !expired {
		t.Error("not for ANATT")
	}
	w.k[0].setANA(1, nvme.ANAOptimized, true)
	eventually(t, "path", func() bool { return w.pathOf(0).Usable() })
	eventually(t, "I/O", func() bool {
		done := make(chan nvme.Status, 1)
		w.on(func() {
			if w.ch.Flush(func(_ any, st nvme.Status) { done <- st }, nil) != nil {
				done <- nvme.StatusHostPathError
			}
		})
		return (<-done).OK()
	})
	w.idle(w.ch)
}

func (w *world) pathOfLocked(i int) *Path { return w.h.paths[i] }

// An older log than the one that is known says nothing.
func TestANAChangeCount(t *testing.T) {
	w := newWorld(t, 1, nil, func(_ int, k *fakeController) { k.withANA(1) })
	m := w.pathOf(0).member
	log := func(count uint64, s nvme.ANAState) *nvme.ANALog {
		return &nvme.ANALog{ChangeCount: count, Groups: []nvme.ANAGroup{{ID: 1, State: s, NSIDs: []uint32{1}}}}
	}
	m.take(log(50, nvme.ANANonOptimized))
	m.take(log(49, nvme.ANAInaccessible))
	if s, _ := w.pathOf(0).ANA(); s != nvme.ANANonOptimized {
		t.Error(s)
	}
	m.take(log(51, 7)) // no such state
	if s, _ := w.pathOf(0).ANA(); s != nvme.ANAInaccessible {
		t.Error(s)
	}
	m.take(&nvme.ANALog{ChangeCount: 52})
	if s, _ := w.pathOf(0).ANA(); s != nvme.ANAInaccessible {
		t.Error("in no group:", s)
	}
}

// Wire case 21: an ANA error of a controller that does not report ANA. The I/O
// ends with it, and the path is used again.
func TestWireCase21ANAErrorWithoutANA(t *testing.T) {
	for _, ana := range []bool{false, true} {
		w := newWorld(t, 2, nil, func(_ int, k *fakeController) {
			if ana { // and its log says that all is well
				k.withANA(1)
			}
		})
		var left atomic.Int32
		left.Store(1 << 20)
		for _, k := range w.k {
			w.on(func() {
				k.hook = func(*nvme.Request) (nvme.Status, bool) {
					if left.Add(-1) >= 0 {
						return nvme.StatusANAInaccessible, true
					}
					return 0, true
				}
			})
		}
		if st := w.write(3, 3).wait(); st.Code() != nvme.StatusANAInaccessible {
			t.Fatal(ana, st)
		}
		left.Store(1)
		for range 4 {
			if st := w.write(3, 4).wait(); !st.OK() {
				t.Fatal(ana, st)
			}
		}
		w.idle(w.ch)
	}
}

// The groups of namespaces differ, and so do states.
func TestANAGroups(t *testing.T) {
	var mu sync.Mutex
	var changes []nvme.ANAState
	cfg := quick()
	cfg.Events = &Events{ANAChange: func(_ *Head, _ *Path, _, to nvme.ANAState) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, to)
	}}
	r := newRig(t, 1, func(c *target.SubsystemConfig) { c.TransitionTime = time.Second })
	h := r.open(cfg)
	must(t, r.sub.Namespaces()[0].SetANAGroup(3))
	eventually(t, "group", func() bool { _, g := h.Paths()[0].ANA(); return g == 3 })
	must(t, r.ports[0].SetANA(3, nvme.ANANonOptimized))
	eventually(t, "state", func() bool { s, _ := h.Paths()[0].ANA(); return s == nvme.ANANonOptimized })
	eventually(t, "events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(changes) >= 2 && changes[0] == nvme.ANAOptimized && changes[len(changes)-1] == nvme.ANANonOptimized
	})
}
