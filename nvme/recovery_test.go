package nvme

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var errCut = errors.New("cable pulled")

// After a loss, commands in flight are sent again in order of submission, then
// those that were submitted meanwhile; raw and fused ones in flight are not.
func TestReplayOrder(t *testing.T) {
	d := newFakeDisk(512, 64)
	block := make(chan struct{})
	var states []string
	var mu sync.Mutex
	live := make(chan struct{}, 10)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, Events: &Events{
		State: func(_ *Controller, from, to State, err error) {
			mu.Lock()
			states = append(states, to.String())
			mu.Unlock()
			if to == StateLive {
				live <- struct{}{}
			}
		},
	}})
	q := r.queue(16)
	<-live
	silent := true
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 || !silent }
	d.refuse = func(uint16) error { <-block; return nil }
	c, raw := newCollect(), newCollect()
	var fq *fakeQueue
	r.on(func() {
		fq = d.queues[q.qp.ID()]
		buf := make([]byte, 512)
		for i := range 4 {
			q.Write(buf, uint64(i), 1, collectDone, c)
		}
		q.Submit(&Command{Opcode: OpWrite, NSID: 1, CDW10: 50}, Data{Buf: buf, Len: 512, Dir: DirOut},
			func(arg any, cpl *Completion) { collectDone(arg, cpl.Status()) }, raw)
	})
	r.on(func() {
		if q.qp.InFlight() != 5 {
			t.Error(q.qp.InFlight())
		}
	})
	fq.cut(errCut)
	if st := raw.wait(t); st.Code() != StatusCommandAbortedByHost {
		t.Fatal(st)
	}
	r.on(func() {
		silent = false
		buf := make([]byte, 512)
		for i := range 4 {
			if err := q.Write(buf, uint64(10+i), 1, collectDone, c); err != nil {
				t.Error(err)
			}
		}
		if err := q.CompareAndWrite(buf, buf, 40, 1, collectDone, c); err != nil {
			t.Error(err)
		}
		if s := q.qp.Stats(); s.InFlight != 0 || s.Held != 10 {
			t.Errorf("%+v", s)
		}
	})
	c.none(t)
	close(block)
	for range 9 {
		if st := c.wait(t); st != 0 {
			t.Fatal(st)
		}
	}
	<-live
	var got []uint64
	for _, p := range d.pieces() {
		got = append(got, p[0])
	}
	if fmt.Sprint(got) != "[0 1 2 3 10 11 12 13 40 40]" {
		t.Fatal(got)
	}
	c.none(t)
	mu.Lock()
	defer mu.Unlock()
	if s := strings.Join(states, " "); s != "live resetting connecting live" {
		t.Fatal(s)
	}
}

// A command is not sent again for ever.
func TestReplayLimit(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, Retries: 3})
	q := r.queue(16)
	var tries atomic.Int32
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() == 0 {
			return 0, true
		}
		tries.Add(1)
		go fq.cut(errCut)
		return 0, false
	}
	c := newCollect()
	r.on(func() { q.Read(make([]byte, 512), 0, 1, collectDone, c) })
	if st := c.wait(t); st.Code() != StatusCommandAbortedByHost || tries.Load() != 4 {
		t.Fatal(st, tries.Load())
	}
	c.none(t)
}

func TestLossTimeout(t *testing.T) {
	d := newFakeDisk(512, 64)
	died := make(chan error, 1)
	var attempts atomic.Int32
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, CtrlLossTimeout: 20 * time.Millisecond, Events: &Events{
		State: func(c *Controller, from, to State, err error) {
			if to == StateDead && from == StateConnecting {
				died <- err
			}
		},
		Reconnect: func(*Controller, int, error) { attempts.Add(1) },
	}})
	q := r.queue(16)
	refused := errors.New("refused")
	d.mu.Lock()
	d.refuse = func(uint16) error { return refused }
	d.mu.Unlock()
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 }
	c := newCollect()
	r.on(func() { q.Read(make([]byte, 512), 0, 1, collectDone, c) })
	d.queues[0].cut(errCut)
	if err := <-died; !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if st := c.wait(t); st.Code() != StatusHostPathError {
		t.Fatal(st)
	}
	ctx := context.Background()
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrDead) {
		t.Fatal(err)
	}
	if _, err := r.c.Admin(ctx, &Command{Opcode: AdminKeepAlive}, nil); !errors.Is(err, ErrDead) {
		t.Fatal(err)
	}
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); !errors.Is(err, ErrDead) {
			t.Error(err)
		}
	})
	if attempts.Load() == 0 {
		t.Fatal("no attempt to reconnect")
	}
}

func TestFastIOFail(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, FastIOFailTimeout: 10 * time.Millisecond})
	q := r.queue(16)
	var up atomic.Bool
	refused := errors.New("refused")
	d.mu.Lock()
	d.refuse = func(uint16) error {
		if up.Load() {
			return nil
		}
		return refused
	}
	d.mu.Unlock()
	c := newCollect()
	d.queues[q.qp.ID()].cut(errCut)
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	if st := c.wait(t); st.Code() != StatusHostPathError {
		t.Fatal(st)
	}
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); !errors.Is(err, ErrNotLive) || !errors.Is(err, StatusHostPathError) {
			t.Error(err)
		}
	})
	up.Store(true)
	if err := r.c.waitLive(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); err != nil {
		t.Fatal(err)
	}
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	if st := c.wait(t); st != 0 {
		t.Fatal(st)
	}
}

// A status that says not to retry ends the reconnects.
func TestPermanentFailure(t *testing.T) {
	d := newFakeDisk(512, 64)
	dead := make(chan struct{})
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, Events: &Events{State: func(_ *Controller, _, to State, _ error) {
		if to == StateDead {
			close(dead)
		}
	}}})
	d.mu.Lock()
	d.refuse = func(uint16) error { return StatusConnectInvalidHost | 1<<14 }
	d.mu.Unlock()
	d.queues[0].cut(errCut)
	<-dead
	if err := r.c.Reset(context.Background()); !errors.Is(err, StatusConnectInvalidHost) || !errors.Is(err, ErrDead) {
		t.Fatal(err)
	}
}

// A namespace that is another one after the reconnect gets no I/O.
func TestNamespaceReplaced(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	q := r.queue(16)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 }
	c := newCollect()
	r.on(func() { q.Write(make([]byte, 512), 0, 1, collectDone, c) })
	r.on(func() { d.pieces() })
	d.mu.Lock()
	d.uuid[0] = 99
	d.mu.Unlock()
	d.queues[0].cut(errCut)
	if st := c.wait(t); st.Code() != StatusInvalidNamespace {
		t.Fatal(st)
	}
	if p := d.pieces(); len(p) != 0 {
		t.Fatal(p)
	}
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrNoNamespace) {
		t.Fatal(err)
	}
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); !errors.Is(err, ErrNoNamespace) {
			t.Error(err)
		}
	})
	ns, err := r.c.Namespace(context.Background(), 1)
	if err != nil || ns == r.ns || ns.IDs().UUID[0] != 99 {
		t.Fatal(ns, err)
	}
}

func TestReset(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	q := r.queue(16)
	hold := true
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 || !hold }
	c := newCollect()
	r.on(func() { q.Write(make([]byte, 512), 0, 1, collectDone, c) })
	r.on(func() { hold = false })
	before := d.connects
	if err := r.c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if st := c.wait(t); st != 0 {
		t.Fatal(st)
	}
	if d.connects != before+2 || r.c.State() != StateLive {
		t.Fatal(d.connects, r.c.State())
	}
	c.none(t)
}
