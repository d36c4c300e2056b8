package nvme

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// eventDisk answers Get Log Page, and keeps Asynchronous Event Requests until
// the test sends an event.
func eventDisk() *fakeDisk {
	d := newFakeDisk(512, 64)
	d.id.AERL, d.id.OAES = 3, AsyncConfigNamespaceAttribute|AsyncConfigFirmwareActivation
	return d
}

// requests returns the event requests that the controller has. On the core.
func (q *fakeQueue) requests() (n int) {
	for _, r := range q.silent {
		if r.Cmd.Opcode == AdminAsyncEvent {
			n++
		}
	}
	return n
}

// answer answers the withheld commands with an opcode after all. On the core.
func (q *fakeQueue) answer(o Opcode) {
	var keep []*Request
	for _, r := range q.silent {
		if r.Cmd.Opcode == o {
			q.posted = append(q.posted, r)
		} else {
			keep = append(keep, r)
		}
	}
	q.silent = keep
}

// event completes an event request. On the core.
func (q *fakeQueue) event(e AsyncEvent) bool {
	for i, r := range q.silent {
		if r.Cmd.Opcode == AdminAsyncEvent {
			q.silent = append(q.silent[:i:i], q.silent[i+1:]...)
			q.qp.Complete(r, &Completion{CID: r.Cmd.CID, Result: uint64(e)})
			return true
		}
	}
	return false
}

var firmwareEvent = AsyncEvent(uint32(AsyncNotice) | 1<<8 | uint32(LogFirmwareSlot)<<16)

// An event that is dealt with after a reconnect does not add a request to
// those of the new connection.
func TestEventRequestsAfterReconnect(t *testing.T) {
	d := eventDisk()
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	var reading atomic.Bool
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminGetLogPage {
			return 0, reading.Load()
		}
		return 0, true
	}
	aq := d.queue(0)
	for round := range 5 {
		reading.Store(false)
		r.on(func() {
			if n := aq.requests(); n != 4 {
				t.Errorf("round %d: %d requests", round, n)
			}
			for range 3 {
				if !aq.event(firmwareEvent) {
					t.Error("no request")
				}
			}
		})
		if err := r.c.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		reading.Store(true)
		r.on(func() { aq.answer(AdminGetLogPage) })
		eventually(t, "the events are dealt with", func() bool { return len(r.c.async.pending) == 0 })
		r.on(func() {})
		// One more round trip, so that the last of them is done with, too.
		if err := r.c.LogPage(context.Background(), LogFirmwareSlot, make([]byte, 512), LogOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "as many requests as at first", func() (ok bool) {
		r.on(func() { ok = aq.requests() == 4 })
		return ok
	})
}

// A request that found no tracker is posted when there is one again.
func TestEventRequestWithoutTracker(t *testing.T) {
	d := eventDisk()
	r := newRig(t, d, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var muted atomic.Bool
	muted.Store(true)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		return 0, rq.Cmd.Opcode != AdminKeepAlive || !muted.Load()
	}
	var calls []chan error
	for range 40 { // more than there are trackers
		calls = append(calls, outcome(func() error {
			_, err := r.c.admin.DoInternal(ctx, &Command{Opcode: AdminKeepAlive}, nil)
			return err
		}))
	}
	aq := d.queue(0)
	eventually(t, "the queue is full", func() (full bool) {
		r.on(func() { full = r.c.admin.InFlight() == r.c.admin.Size()-1 })
		return full
	})
	r.on(func() {
		if !aq.event(AsyncEvent(AsyncVendor)) || r.c.admin.Room() != 0 {
			t.Error("no request, or room")
		}
	}) // its tracker goes to one of those that wait
	time.Sleep(20 * time.Millisecond)
	cancel()
	for _, ch := range calls {
		_ = await(t, ch)
	}
	muted.Store(false)
	r.on(func() { aq.answer(AdminKeepAlive) })
	eventually(t, "the request is posted again", func() (ok bool) {
		r.on(func() { ok = aq.requests() == 4 && r.c.admin.InFlight() == 4 })
		return ok
	})
}

// A controller that reports events without end fills no memory while the
// listener is slow, and can be closed.
func TestEventStorm(t *testing.T) {
	d := eventDisk()
	block := make(chan struct{})
	var heard atomic.Int32
	r := newRig(t, d, &Config{Events: &Events{Async: func(*Controller, AsyncEvent) {
		heard.Add(1)
		<-block
	}}})
	var sent atomic.Int32
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminAsyncEvent {
			sent.Add(1)
			fq.cpl = Completion{CID: rq.Cmd.CID, Result: uint64(AsyncVendor)}
			fq.qp.Complete(rq, &fq.cpl)
			return 0, false
		}
		return 0, true
	}
	r.on(func() {
		for d.queue(0).event(AsyncEvent(AsyncVendor)) {
		}
	})
	last := int32(-1)
	eventually(t, "the storm is held back", func() bool {
		time.Sleep(20 * time.Millisecond)
		n := sent.Load()
		same := n == last && heard.Load() == 1
		last = n
		return same || n > 1<<16
	})
	if last > 1000 {
		t.Fatalf("%d events were taken", last)
	}
	if err := await(t, outcome(func() error { return r.c.Close(context.Background()) })); err != nil {
		t.Fatal(err)
	}
	close(block)
}
