package nvme

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

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
			err := await(t, outcome(func() error {
				_, err := NewController(context.Background(), d, &Config{})
				return err
			}))
			if !errors.Is(err, tc.want) {
				t.Fatal(err)
			}
			var oe *OpError
			if !errors.As(err, &oe) || oe.Op != "enable" {
				t.Fatal(err)
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
