package tcp_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// clock is the time of a poller, moved by the test.
type clock struct {
	f   *fixture
	now atomic.Int64
}

// withClock gives a fixture a poller whose time the test moves.
func withClock(t *testing.T, k *tcptest.Controller) (*fixture, *clock) {
	t.Helper()
	f := setup(t, k, nil)
	ck := &clock{f: f}
	p, err := poller.New(poller.Config{Name: "clock", Unpinned: true, Idle: poller.Adaptive, Spin: -1, Clock: ck.now.Load})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.close()
		p.Close()
	})
	f.p.Close()
	f.p = p
	return f, ck
}

// advance moves the time and waits until all that is due has happened, and all
// admin commands that this led to were answered.
func (ck *clock) advance(d time.Duration) {
	ck.f.t.Helper()
	ck.now.Add(int64(d))
	ck.f.onCore(func() {}) // in this pass or before, timers fired
	ck.f.onCore(func() {})
	if ck.f.c.State() == nvme.StateLive {
		if err := vendor(ck.f.c, 0); err != nil && !errors.Is(err, nvme.StatusInvalidOpcode) {
			ck.f.t.Log("after", d, err)
		}
	}
}

// aliveCounter counts keep alive commands, and holds them back while told to.
type aliveCounter struct {
	n    atomic.Int32
	hold atomic.Bool
}

func (a *aliveCounter) override(r *tcptest.Request) bool {
	if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminKeepAlive {
		return false
	}
	a.n.Add(1)
	return a.hold.Load()
}

// Keep alive commands go out every half of the timeout that is in force, and
// only then.
func TestKeepAliveInterval(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		asked time.Duration
		kas   uint16
		given time.Duration // that the controller rounds it to
		kato  time.Duration // in Connect
		every int           // seconds; 0 none
	}{
		{"as asked for", 10 * time.Second, 1, 10 * time.Second, 10 * time.Second, 5},
		{"default", 0, 1, 5 * time.Second, 5 * time.Second, 3}, // 2.5 s, looked at every second
		{"rounded up by the controller", 10 * time.Second, 20, 12 * time.Second, 10 * time.Second, 6},
		{"not supported", 10 * time.Second, 0, 0, 10 * time.Second, 0},
		{"off", -1, 1, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, _ := disk(64)
			var count aliveCounter
			k.Identify = func(id *nvme.IdentifyController) { id.KAS = tt.kas }
			k.Override = func(r *tcptest.Request) bool {
				if r.Queue == 0 && r.Cmd.Opcode == nvme.AdminGetFeatures && nvme.FeatureID(r.Cmd.CDW10) == nvme.FeatKeepAliveTimer {
					r.Complete(nvme.StatusSuccess, uint64(tt.given/time.Millisecond))
					return true
				}
				return count.override(r)
			}
			f, ck := withClock(t, k)
			if err := f.connect(func(cfg *nvme.Config) { cfg.KeepAlive = tt.asked }); err != nil {
				t.Fatal(err)
			}
			if got := k.KeepAliveTimeout(); got != tt.kato {
				t.Errorf("Connect with a timeout of %v, want %v", got, tt.kato)
			}
			for s := 1; s <= 30; s++ {
				ck.advance(time.Second)
				want := 0
				if tt.every > 0 {
					want = s / tt.every
				}
				if got := int(count.n.Load()); got != want {
					t.Fatalf("%d commands after %d s, want %d", got, s, want)
				}
			}
			if f.c.State() != nvme.StateLive {
				t.Error(f.c.State())
			}
		})
	}
}

// A controller that answers no keep alive command for the timeout is lost, and
// is reconnected to.
func TestKeepAliveLost(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var count aliveCounter
	k.Override = count.override
	f, ck := withClock(t, k)
	lost := make(chan error, 4)
	live := make(chan struct{}, 4)
	err := f.connect(quickReconnect, func(cfg *nvme.Config) {
		cfg.KeepAlive = 10 * time.Second
		cfg.Events = &nvme.Events{State: func(_ *nvme.Controller, _, to nvme.State, err error) {
			switch to {
			case nvme.StateResetting:
				lost <- err
			case nvme.StateLive:
				live <- struct{}{}
			}
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-live
	q := f.queue(nvme.QueueConfig{})
	for range 3 {
		count.hold.Store(true)
		before := count.n.Load()
		for count.n.Load() == before {
			ck.advance(time.Second)
		}
		for s := 1; s < 10; s++ {
			ck.advance(time.Second)
			select {
			case err := <-lost:
				t.Fatalf("lost %d s after the command was sent: %v", s, err)
			default:
			}
		}
		for s := 10; s <= 15 && f.c.State() == nvme.StateLive && len(lost) == 0; s++ { // at the latest half the timeout later
			ck.advance(time.Second)
		}
		err := <-lost
		if !errors.Is(err, nvme.ErrTimeout) || !strings.Contains(err.Error(), "Keep Alive") {
			t.Errorf("lost with %v, want ErrTimeout about Keep Alive", err)
		}
		count.hold.Store(false)
		<-live
		o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
		if st := o.wait(t); !st.OK() {
			t.Error(st)
		}
	}
}

// A controller that says that its timer has expired, or that it knows none, has
// lost the association.
func TestKeepAliveRejected(t *testing.T) {
	t.Parallel()
	for _, st := range []nvme.Status{nvme.StatusKeepAliveExpired, nvme.StatusKeepAliveInvalid | nvme.StatusDNR, nvme.StatusInvalidOpcode} {
		k, _ := disk(64)
		var once atomic.Bool
		k.Override = func(r *tcptest.Request) bool {
			if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminKeepAlive || !once.CompareAndSwap(false, true) {
				return false
			}
			r.Complete(st, 0)
			return true
		}
		f, ck := withClock(t, k)
		lost := make(chan error, 4)
		err := f.connect(quickReconnect, func(cfg *nvme.Config) {
			cfg.KeepAlive = 10 * time.Second
			cfg.Events = &nvme.Events{State: func(_ *nvme.Controller, _, to nvme.State, err error) {
				if to == nvme.StateResetting {
					lost <- err
				}
			}}
		})
		if err != nil {
			t.Fatal(err)
		}
		for !once.Load() {
			ck.advance(time.Second)
		}
		if err := <-lost; !errors.Is(err, st.Code()) {
			t.Errorf("lost with %v, want %v", err, st)
		}
		eventually(t, "the reconnect", func() bool { return f.c.State() == nvme.StateLive })
		f.close()
	}
}

// A command that is overdue is aborted by its identifiers; one that stays
// overdue has the controller reset, and is sent again.
func TestTimeoutAbortThenReset(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	type abort struct{ sqid, cid uint16 }
	aborts := make(chan abort, 4)
	held := make(chan *tcptest.Request, 4)
	var hold atomic.Bool
	hold.Store(true)
	k.Override = func(r *tcptest.Request) bool {
		switch {
		case r.Queue != 0 && r.Cmd.Opcode == nvme.OpRead && hold.Load():
			held <- r
			return true
		case r.Queue == 0 && r.Cmd.Opcode == nvme.AdminAbort:
			aborts <- abort{uint16(r.Cmd.CDW10), uint16(r.Cmd.CDW10 >> 16)}
		}
		return false
	}
	f, ck := withClock(t, k)
	if err := f.connect(quickReconnect, func(cfg *nvme.Config) { cfg.IOTimeout = 30 * time.Second }); err != nil {
		t.Fatal(err)
	}
	q := f.queue(nvme.QueueConfig{})
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 3, 1, opDone, o) })
	r := <-held
	for range 29 {
		ck.advance(time.Second)
	}
	if len(aborts) != 0 {
		t.Fatal("aborted before it was overdue")
	}
	for range 3 {
		ck.advance(time.Second)
	}
	if got, want := <-aborts, (abort{r.Queue, r.Cmd.CID}); got != want {
		t.Errorf("abort of %+v, want %+v", got, want)
	}
	// The controller obeys, with the command's own completion.
	r.Complete(nvme.StatusAbortRequested, 0)
	if st := o.wait(t); st != nvme.StatusAbortRequested {
		t.Errorf("completed with %v", st)
	}
	// The next one does not care.
	o = f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 4, 1, opDone, o) })
	<-held
	for len(aborts) == 0 {
		ck.advance(time.Second)
	}
	<-aborts
	hold.Store(false)
	accepted := f.srv.Accepted()
	for range 40 {
		ck.advance(time.Second)
	}
	if st := o.wait(t); !st.OK() {
		t.Errorf("completed with %v", st)
	}
	if f.srv.Accepted() == accepted {
		t.Error("the controller was not reset")
	}
}
