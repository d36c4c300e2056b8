package poller

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/tsc"
)

// sleeper returns a poller that sleeps whenever it may.
func sleeper(t testing.TB, cfg Config) *Poller {
	t.Helper()
	cfg.Idle, cfg.Spin = Adaptive, -1
	return startPoller(t, cfg)
}

func waitAsleep(t testing.TB, p *Poller) {
	t.Helper()
	eventually(t, "the poller's sleep", func() bool { return p.asleep.Load() == sleeping })
}

// sleeps returns how often a poller has slept so far.
func sleeps(t testing.TB, p *Poller) (n uint64) {
	t.Helper()
	onCore(t, p, func() { n = p.Stats().Sleeps })
	return n
}

func eventFD(t testing.TB) int {
	t.Helper()
	fd, err := sys.EventFD()
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close(fd)) })
	return fd
}

func TestPostWakes(t *testing.T) {
	p := sleeper(t, Config{})
	for range 100 {
		waitAsleep(t, p)
		ran := make(chan bool, 1)
		must(t, p.Post(func() { ran <- true }))
		receive(t, "the posted function", ran)
	}
	waitAsleep(t, p)
	// A post may still come before the thread is in the kernel: no sleep then.
	if s := p.Stats(); s.Tasks != 100 || s.Sleeps < 10 || s.Wakeups < 10 {
		t.Errorf("%d tasks, %d sleeps, %d wake-ups", s.Tasks, s.Sleeps, s.Wakeups)
	}
}

func TestDescriptorWakes(t *testing.T) {
	p := sleeper(t, Config{})
	fd := eventFD(t)
	drained := make(chan uint64, 1)
	s := &source{
		poll: func(int64) int {
			n, err := sys.EventDrain(fd)
			if err != 0 {
				return 0
			}
			drained <- n
			return 1
		},
		arm: func(int64) (int, int16, int64, bool) { return fd, unix.POLLIN, 0, true },
	}
	onCore(t, p, func() { p.Add(s) })
	for range 100 {
		waitAsleep(t, p)
		sys.EventSignal(fd)
		if n := receive(t, "the source", drained); n != 1 {
			t.Errorf("drained %d, want 1", n)
		}
	}
	onCore(t, p, func() { p.Remove(s) })
	waitAsleep(t, p)
	sys.EventSignal(fd)
	before := sleeps(t, p)
	waitAsleep(t, p)
	if after := sleeps(t, p); after > before+4 {
		t.Errorf("a source that was removed ended %d sleeps", after-before)
	}
}

func TestTimerWakes(t *testing.T) {
	p := sleeper(t, Config{})
	waitAsleep(t, p)
	fired := make(chan bool, 1)
	for range 20 {
		var due int64
		onCore(t, p, func() {
			due = p.Now() + int64(time.Millisecond)
			p.AfterFunc(time.Millisecond, func() { fired <- p.Now() >= due })
		})
		if !receive(t, "the timer", fired) {
			t.Error("the timer fired too early")
		}
	}
	if sleeps(t, p) == 0 {
		t.Error("the poller did not sleep")
	}
}

func TestDeadlineWakes(t *testing.T) {
	p := sleeper(t, Config{})
	var deadline int64
	reached := make(chan bool, 1)
	s := &source{
		poll: func(now int64) int {
			if deadline != 0 && now >= deadline {
				deadline = 0
				reached <- true
				return 1
			}
			return 0
		},
		arm: func(int64) (int, int16, int64, bool) { return -1, 0, deadline, true },
	}
	onCore(t, p, func() { p.Add(s) })
	for _, d := range []time.Duration{time.Millisecond, 1, -time.Second} {
		waitAsleep(t, p)
		onCore(t, p, func() { deadline = p.Now() + int64(d) })
		receive(t, "the deadline", reached)
	}
}

// A source that cannot sleep now keeps the poller awake, and the sources after
// it are not asked.
func TestSourceForbidsSleep(t *testing.T) {
	p := sleeper(t, Config{})
	asked := make(chan bool, 1)
	forbidding := &source{arm: func(int64) (int, int16, int64, bool) {
		select {
		case asked <- true:
		default:
		}
		return -1, 0, 0, false
	}}
	armed := 0
	next := &source{arm: func(int64) (int, int16, int64, bool) { armed++; return -1, 0, 0, true }}
	var before uint64
	onCore(t, p, func() {
		p.Add(forbidding)
		p.Add(next)
		before = p.Stats().Sleeps
	})
	for range 3 {
		receive(t, "the question", asked)
	}
	onCore(t, p, func() {
		if after := p.Stats().Sleeps; after != before || armed != 0 {
			t.Errorf("slept %d times, and asked the other source %d times", after-before, armed)
		}
		p.Remove(forbidding)
	})
	waitAsleep(t, p)
}

// What Arm changes is seen to before the poller sleeps.
func TestArmChangesThings(t *testing.T) {
	p := sleeper(t, Config{})
	fired := make(chan bool, 1)
	added := &source{}
	s := &source{}
	s.arm = func(int64) (int, int16, int64, bool) {
		p.Remove(s)
		p.Add(added)
		p.AfterFunc(time.Microsecond, func() { fired <- true })
		return -1, 0, 0, true
	}
	onCore(t, p, func() { p.Add(s) })
	receive(t, "the timer", fired)
	waitAsleep(t, p)
	onCore(t, p, func() {
		if added.polls == 0 || len(p.sources) != 1 {
			t.Errorf("the new source was polled %d times, there are %d", added.polls, len(p.sources))
		}
	})
}

func TestSleepless(t *testing.T) {
	var log bytes.Buffer
	told := make(chan Source, 10)
	r := &restless{}
	p := sleeper(t, Config{
		Name:   "awake",
		Logger: textLogger(&log),
		Events: &Events{Sleepless: func(_ *Poller, s Source) { told <- s }},
	})
	onCore(t, p, func() {
		p.Add(&source{})
		p.Add(r)
	})
	if s := receive(t, "the event", told); s != r {
		t.Errorf("told of %v, want the source that is no Waiter", s)
	}
	for range 2 { // several passes, all of them idle
		before := 0
		onCore(t, p, func() { before = r.polls })
		eventually(t, "more passes", func() (more bool) {
			onCore(t, p, func() { more = r.polls > before })
			return more
		})
	}
	onCore(t, p, func() { p.Remove(r) })
	waitAsleep(t, p)
	onCore(t, p, func() { p.Add(r) })
	must(t, p.Close())
	if len(told) != 0 {
		t.Errorf("told %d times more", len(told))
	}
	for _, want := range []string{"cannot sleep", "awake", "*poller.restless"} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("the log says %q %d times, want once: %s", want, n, log.String())
		}
	}
}

// A poller that sleeps for ever, again and again, and posters that hit every
// moment of falling asleep: a wake-up that is lost leaves a poster waiting.
func TestNoWakeupIsLost(t *testing.T) {
	p := sleeper(t, Config{Mailbox: 16})
	var posters sync.WaitGroup
	for i := range 3 {
		posters.Go(func() {
			ran := make(chan bool, 1)
			tell := func() { ran <- true }
			timeout := time.NewTimer(patient)
			defer timeout.Stop()
			for n := range 500 {
				for range (n * (i + 1)) % 200 { // before, while and after it falls asleep
					tsc.Pause()
				}
				if err := p.Post(tell); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-ran:
				case <-timeout.C:
					t.Errorf("poster %d: function %d did not run; asleep is %d", i, n, p.asleep.Load())
					return
				}
				if n%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	posters.Wait()
	if sleeps(t, p) == 0 {
		t.Error("the poller did not sleep")
	}
}

// Closing wakes, at any moment of falling asleep.
func TestCloseWakes(t *testing.T) {
	for n := range 200 {
		p := sleeper(t, Config{})
		if n%2 == 0 {
			waitAsleep(t, p)
		}
		for range n {
			tsc.Pause()
		}
		must(t, p.Close())
	}
}
