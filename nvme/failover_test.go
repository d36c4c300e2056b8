package nvme

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// A queue pair opened for failover holds nothing back: what is in flight at a
// loss comes back, and nothing is taken until it is live again, of which its owner
// hears on the core.
func TestFailoverQueue(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	var live []bool // on the core
	qp, err := r.c.OpenQueue(context.Background(), r.p, QueueConfig{
		Size: 8, Failover: true, Notify: func(_ *QueuePair, is bool) { live = append(live, is) },
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := qp.Bind(r.ns)
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	d.mu.Lock()
	d.connecting = func(context.Context, *QueuePair) error { <-hold; return nil }
	d.mu.Unlock()
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp != qp }
	c := newCollect()
	var association uint64
	r.on(func() {
		association = qp.Association()
		if err := q.Write(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	if r.c.Quiet(association) {
		t.Error("quiet while live")
	}
	d.queue(qp.ID()).cut(errCut)
	if st := c.wait(t); st.Code() != StatusCommandAbortedByHost {
		t.Error(st)
	}
	r.on(func() {
		err := q.Read(make([]byte, 512), 0, 1, collectDone, c)
		if !errors.Is(err, ErrNotLive) || !errors.Is(err, StatusHostPathError) {
			t.Error(err)
		}
		if qp.Association() != association {
			t.Error("another association before it is live")
		}
	})
	eventually(t, "quiet", func() bool { return r.c.Quiet(association) })
	close(hold)
	eventually(t, "live", func() (is bool) { r.on(func() { is = qp.Live() }); return is })
	r.on(func() {
		if qp.Association() <= association || !slices.Equal(live, []bool{true, false, true}) {
			t.Error(association, qp.Association(), live)
		}
	})
	if err := qp.Close(context.Background()); err != nil {
		t.Error(err)
	}
	r.on(func() {
		if !slices.Equal(live, []bool{true, false, true, false}) {
			t.Error(live)
		}
	})
	c.none(t)
}

// An association is quiet when its time has passed, or the controller was shut
// down; the listener hears of it.
func TestQuiet(t *testing.T) {
	for name, cqt := range map[string]uint16{"reported": 50, "not reported": 0, "long": 60_000} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var heard []uint64
			d := newFakeDisk(512, 64)
			d.id.CQT = cqt
			r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond, Events: &Events{Quiet: func(_ *Controller, n uint64) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, n)
			}}})
			first := r.c.Association()
			d.queue(0).cut(errCut)
			if name == "long" {
				eventually(t, "loss", func() bool { return r.c.State() == StateConnecting })
				if r.c.Quiet(first) {
					t.Error("quiet at once")
				}
				return
			}
			eventually(t, "quiet", func() bool { return r.c.Quiet(first) })
			eventually(t, "live", func() bool { return r.c.State() == StateLive })
			second := r.c.Association()
			if err := r.c.Close(context.Background()); err != nil {
				t.Error(err)
			}
			eventually(t, "second", func() bool { return r.c.Quiet(second) })
			eventually(t, "events", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Equal(heard, []uint64{first, second})
			})
		})
	}
}

func TestQuietTime(t *testing.T) {
	const kato = 5 * time.Second
	for _, c := range []struct {
		name     string
		cqt      uint16
		assumed  time.Duration
		cause    error
		disabled bool
		want     time.Duration
	}{
		{"not reported", 0, 0, errCut, false, 0},
		{"not reported, silent", 0, 0, ErrTimeout, false, kato},
		{"known", 0, time.Second, errCut, false, time.Second},
		{"known, silent", 0, time.Second, ErrTimeout, false, kato + time.Second},
		{"reported", 1500, time.Second, errCut, false, 1500 * time.Millisecond},
		{"disabled", 1500, time.Second, ErrTimeout, true, 0},
	} {
		k := &Controller{cfg: Config{QuiesceTime: c.assumed}}
		k.id.Store(&IdentifyController{CQT: c.cqt})
		k.alive.timeout = kato
		if got := k.quietTime(c.cause, c.disabled); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// That the fate of one piece is unknown is not hidden by another's path error.
func TestUnknownFateWins(t *testing.T) {
	for _, c := range []struct{ first, second, want Status }{
		{StatusANAInaccessible, StatusCommandAbortedByHost, StatusCommandAbortedByHost},
		{StatusCommandAbortedByHost, StatusHostPathError, StatusCommandAbortedByHost},
		{StatusWriteFault, StatusCommandAbortedByHost, StatusWriteFault},
	} {
		o := &op{}
		o.fail(c.first)
		o.fail(c.second)
		if o.status != c.want {
			t.Errorf("%v, then %v: %v", c.first, c.second, o.status)
		}
	}
}
