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

	"github.com/qpoll/qpoll/poller"
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

// clock is a time that a test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) add(d time.Duration) { c.now.Add(int64(d)) }

// steppedRig is a rig whose poller has the test's clock.
func steppedRig(t *testing.T, d *fakeDisk, cfg Config) (*rig, *clock) {
	k := &clock{}
	k.now.Store(1)
	p, err := poller.New(poller.Config{Unpinned: true, Clock: k.now.Load})
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Poller = p
	c, err := NewController(context.Background(), d, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close(context.Background())
		p.Close()
	})
	ns, err := c.Namespace(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, p, c, ns}, k
}

// settle returns after a whole pass at the present time: the one under way may
// have read the clock before, and runs what is posted before its timers.
func (r *rig) settle() {
	for range 3 {
		r.on(func() {})
	}
}

// An overdue command is aborted; if that does not help, the controller is
// reset and the command sent again.
func TestTimeoutEscalation(t *testing.T) {
	for _, abortWorks := range []bool{true, false} {
		t.Run(fmt.Sprint(abortWorks), func(t *testing.T) {
			d := newFakeDisk(512, 64)
			actions := make(chan string, 10)
			r, k := steppedRig(t, d, Config{IOTimeout: time.Second, ReconnectDelay: time.Millisecond, Events: &Events{
				Timeout: func(_ *Controller, _, _ uint16, _ time.Duration, action string) { actions <- action },
			}})
			q := r.queue(16)
			var silent, aborts atomic.Int32
			d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
				if fq.qp.ID() == 0 && rq.Cmd.Opcode == AdminAbort {
					aborts.Add(1)
					if !abortWorks {
						return StatusAbortRequested, true
					}
				}
				return 0, fq.qp.ID() == 0 || silent.Add(1) > 1
			}
			c := newCollect()
			r.on(func() { q.Read(make([]byte, 512), 0, 1, collectDone, c) })
			r.settle()
			k.add(999 * time.Millisecond)
			r.settle()
			if len(actions) != 0 {
				t.Fatal("too early")
			}
			for range 8 { // the watch may be anywhere in its interval
				k.add(125 * time.Millisecond)
				r.settle()
			}
			if a := <-actions; a != "abort" {
				t.Fatal(a)
			}
			if abortWorks {
				if st := c.wait(t); st.Code() != StatusAbortRequested || aborts.Load() != 1 {
					t.Fatal(st, aborts.Load())
				}
				return
			}
			for range 8 {
				k.add(125 * time.Millisecond)
				r.settle()
			}
			if a := <-actions; a != "reset" {
				t.Fatal(a)
			}
			if st := c.wait(t); st != 0 {
				t.Fatal(st)
			}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.KAS = 10
	lost := make(chan error, 1)
	r, k := steppedRig(t, d, Config{KeepAlive: 4 * time.Second, Events: &Events{State: func(_ *Controller, _, to State, err error) {
		if to == StateResetting {
			lost <- err
		}
	}}})
	var sent atomic.Int32
	answer := atomic.Bool{}
	answer.Store(true)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminKeepAlive {
			sent.Add(1)
			return 0, answer.Load()
		}
		return 0, true
	}
	for i := range 5 {
		if n := sent.Load(); n != int32(i) {
			t.Fatal(i, n)
		}
		for range 4 {
			k.add(500 * time.Millisecond)
			r.settle()
		}
	}
	answer.Store(false)
	for range 12 {
		k.add(500 * time.Millisecond)
		r.settle()
	}
	if err := <-lost; !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
}

// Rejected features do not keep a controller from coming up.
func TestRejectedFeatures(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.KAS, d.id.OAES = 10, 1<<8
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		switch rq.Cmd.Opcode {
		case AdminGetFeatures, AdminSetFeatures:
			return StatusInvalidField | 1<<14, true
		}
		return 0, true
	}
	r := newRig(t, d, nil)
	if r.c.IOQueues() != 1 {
		t.Fatal(r.c.IOQueues())
	}
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); err != nil {
		t.Fatal(err)
	}
}

func TestEnableFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(d *fakeDisk)
		want    error
	}{
		"MPSMIN":    {func(d *fakeDisk) { d.capp = CAPFields{MQES: 127, MPSMIN: 1, CSS: 1}.CAP() }, ErrUnsupported},
		"MQES 0":    {func(d *fakeDisk) { d.capp = CAPFields{MQES: 0, CSS: 1}.CAP() }, ErrProtocol},
		"CFS":       {func(d *fakeDisk) { d.hook = nil; d.csts = 2 }, ErrFatal},
		"never RDY": {func(d *fakeDisk) { d.capp = CAPFields{MQES: 127, CSS: 1}.CAP() }, ErrTimeout},
		"gone":      {func(d *fakeDisk) {}, ErrFatal},
	} {
		t.Run(name, func(t *testing.T) {
			d := &stuckDisk{fakeDisk: newFakeDisk(512, 64)}
			tc.prepare(d.fakeDisk)
			switch name {
			case "CFS":
				d.csts = 2
			case "gone":
				d.csts = 0xffffffff
			}
			start := time.Now()
			_, err := NewController(context.Background(), d, &Config{})
			if !errors.Is(err, tc.want) {
				t.Fatal(err)
			}
			var oe *OpError
			if !errors.As(err, &oe) || oe.Op != "enable" {
				t.Fatal(err)
			}
			if time.Since(start) > 20*time.Second {
				t.Fatal("not bounded")
			}
		})
	}
}

// stuckDisk never changes CSTS.
type stuckDisk struct{ *fakeDisk }

func (d *stuckDisk) SetProperty(context.Context, uint32, int, uint64) error { return nil }

func TestSmallestQueue(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.capp = CAPFields{MQES: 1, CSS: 1}.CAP()
	r := newRig(t, d, nil)
	q := r.queue(256)
	if q.qp.Size() != 2 {
		t.Fatal(q.qp.Size())
	}
	for i := range 10 {
		if _, err := r.ns.WriteAt(make([]byte, 512), int64(i)*512); err != nil {
			t.Fatal(err)
		}
	}
	if r.c.IOQueues() < 2 {
		t.Fatal(r.c.IOQueues())
	}
}

// Events: the changed namespace list is read, requests are posted again, and
// the listener may use the controller.
func TestNamespaceEvents(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.AERL, d.id.OAES = 3, 1<<8
	changed := make(chan []uint32, 4)
	logs := atomic.Int32{}
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		switch rq.Cmd.Opcode {
		case AdminAsyncEvent:
			return 0, false
		case AdminGetLogPage:
			if LogID(rq.Cmd.CDW10) == LogChangedNamespaces {
				logs.Add(1)
				clear(rq.Data.Buf)
				rq.Data.Buf[0] = 1
				return 0x7fff, true
			}
		}
		return 0, true
	}
	// 7fffh stands for "success, answered by the hook".
	base := d.hook
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		st, ok := base(fq, rq)
		if st == 0x7fff {
			fq.cpl.StatusPhase = 0
			fq.qp.Complete(rq, &fq.cpl)
			return 0, false
		}
		return st, ok
	}
	r := newRig(t, d, &Config{Events: &Events{NamespacesChanged: func(c *Controller, list []uint32) {
		if _, err := c.Admin(context.Background(), &Command{Opcode: AdminKeepAlive}, nil); err != nil {
			t.Error(err)
		}
		changed <- list
	}}})
	for round := range 3 {
		d.mu.Lock()
		d.ns.NSZE = uint64(100 + round)
		d.mu.Unlock()
		r.on(func() {
			aq := d.queues[0]
			var rq *Request
			for i, x := range aq.silent {
				if x.Cmd.Opcode == AdminAsyncEvent {
					rq = x
					aq.silent = append(aq.silent[:i], aq.silent[i+1:]...)
					break
				}
			}
			if rq == nil {
				t.Error("no event request posted")
				return
			}
			aq.qp.Complete(rq, &Completion{CID: rq.Cmd.CID, Result: 2 | uint64(LogChangedNamespaces)<<16})
		})
		select {
		case list := <-changed:
			if len(list) != 1 || list[0] != 1 {
				t.Fatal(list)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no event")
		}
		if n := logs.Load(); n != int32(round+1) {
			t.Fatal(n)
		}
		if r.ns.Blocks() != uint64(100+round) {
			t.Fatal(r.ns.Blocks())
		}
	}
}

func TestClose(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	q := r.queue(16)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 }
	c := newCollect()
	r.on(func() {
		for i := range 5 {
			q.Read(make([]byte, 512), uint64(i), 1, collectDone, c)
		}
	})
	if err := r.c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if st := c.wait(t); st.Code() != StatusCommandAbortedByHost {
			t.Fatal(st)
		}
	}
	if CC(d.cc).SHN() != CCSHNNormal {
		t.Fatal("no shutdown notification")
	}
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	if err := r.c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	c.none(t)
}

// Queues come and go; identifiers are used again.
func TestQueueIdentifiers(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{IOQueues: 2})
	ctx := context.Background()
	a, b := r.queue(8), r.queue(8)
	if a.qp.ID() != 1 || b.qp.ID() != 2 {
		t.Fatal(a.qp.ID(), b.qp.ID())
	}
	if _, err := r.ns.Queue(ctx, r.p, QueueConfig{}); !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if c := r.queue(8); c.qp.ID() != 1 {
		t.Fatal(c.qp.ID())
	}
}
