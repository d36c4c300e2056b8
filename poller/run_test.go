package poller

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
)

func TestRunsOnItsCore(t *testing.T) {
	cores, err := AllowedCores()
	must(t, err)
	for _, core := range cores {
		p := newPoller(t, Config{Core: core, Idle: Adaptive})
		must(t, p.Start())
		for range 3 {
			onCore(t, p, func() {
				if !p.OnCore() {
					t.Error("not on core")
				}
				if got, err := sys.GetAffinity(); err != nil || !slices.Equal(got, []int{core}) {
					t.Errorf("the thread may run on %v, %v; want %d", got, err, core)
				}
			})
		}
		if p.OnCore() {
			t.Error("the test is on core")
		}
		must(t, p.Close())
	}
}

func TestUnpinnedKeepsAffinity(t *testing.T) {
	want, err := sys.GetAffinity()
	must(t, err)
	p := newPoller(t, Config{Unpinned: true, Idle: Adaptive})
	must(t, p.Start())
	onCore(t, p, func() {
		if got, err := sys.GetAffinity(); err != nil || !slices.Equal(got, want) {
			t.Errorf("the thread may run on %v, %v; want %v", got, err, want)
		}
	})
}

// A thread that was pinned must not be left to other goroutines.
func TestThreadEndsWithPoller(t *testing.T) {
	p := startPoller(t, Config{Idle: Adaptive})
	var tid int
	onCore(t, p, func() { tid = sys.Gettid() })
	must(t, p.Close())
	if tid == os.Getpid() {
		return // the runtime parks the process's first thread for good
	}
	task := "/proc/self/task/" + strconv.Itoa(tid)
	eventually(t, "the end of the thread", func() bool {
		_, err := os.Stat(task)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestStartErrors(t *testing.T) {
	p := newPoller(t, Config{Core: maxCore})
	for range 2 { // a poller that did not start may be tried again
		if err := p.Start(); !errors.Is(err, ErrCoreNotAllowed) {
			t.Errorf("%v, want ErrCoreNotAllowed", err)
		}
	}
	if work := p.Poll(0); work != 0 || p.Stats().Passes != 1 {
		t.Errorf("work %d, %d passes; a poller that did not start can be stepped", work, p.Stats().Passes)
	}
	if p.Started() {
		t.Error("a poller that is stepped was started")
	}

	p = startPoller(t, Config{Idle: Adaptive})
	if !p.Started() {
		t.Error("not started")
	}
	if err := p.Start(); !errors.Is(err, ErrStarted) {
		t.Errorf("%v, want ErrStarted", err)
	}
	if work := p.Poll(0); work != 0 {
		t.Errorf("a running poller was stepped: %d", work)
	}
	onCore(t, p, func() {
		if err := p.Start(); !errors.Is(err, ErrOnCore) {
			t.Errorf("%v, want ErrOnCore", err)
		}
		if err := p.Close(); !errors.Is(err, ErrOnCore) {
			t.Errorf("%v, want ErrOnCore", err)
		}
	})
	must(t, p.Close())
	if p.Started() {
		t.Error("started, though closed")
	}
	if err := p.Start(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// The kernel's refusal must be told like the list's.
func TestPinRefused(t *testing.T) {
	saved := allowed.cores
	allowed.cores = append(slices.Clone(saved), maxCore)
	defer func() { allowed.cores = saved }()
	p := newPoller(t, Config{Core: maxCore})
	if err := p.Start(); !errors.Is(err, ErrCoreNotAllowed) {
		t.Errorf("%v, want ErrCoreNotAllowed", err)
	}
}

func TestCloseRunsWhatWasAccepted(t *testing.T) {
	for name, start := range map[string]bool{"running": true, "stepped": false} {
		t.Run(name, func(t *testing.T) {
			p := newPoller(t, Config{Core: anyCore(t)})
			polled := &source{}
			p.Add(polled)
			ran := 0
			for range 10 {
				must(t, p.Post(func() {
					if ran++; !p.OnCore() {
						t.Error("ran off core")
					}
				}))
			}
			p.AfterFunc(time.Hour, func() { t.Error("a timer fired") })
			if start {
				must(t, p.Start())
			}
			must(t, p.Close())
			if ran != 10 {
				t.Errorf("%d ran, want 10", ran)
			}
			if s := p.Stats(); s.Tasks != 10 {
				t.Errorf("Stats has %d tasks, want 10", s.Tasks)
			}
			polls := polled.polls
			if p.Poll(1) != 0 || polled.polls != polls {
				t.Error("polled after Close")
			}
			if err := p.Post(func() {}); !errors.Is(err, ErrClosed) {
				t.Errorf("Post: %v, want ErrClosed", err)
			}
			if err := p.Call(patience(t), func() {}); !errors.Is(err, ErrClosed) {
				t.Errorf("Call: %v, want ErrClosed", err)
			}
			if p.OnCore() {
				t.Error("on the core of a closed poller")
			}
		})
	}
}

func TestCloseTwiceAtOnce(t *testing.T) {
	for _, idle := range []IdleMode{Busy, Adaptive} {
		p := startPoller(t, Config{Idle: idle, Spin: -1})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if err := p.Post(func() {}); !errors.Is(err, ErrClosed) {
					t.Errorf("%v, want ErrClosed", err)
				}
			})
		}
		wg.Wait()
	}
}

func TestStartAndStopEvents(t *testing.T) {
	var got []string
	on := func(what string) func(*Poller) {
		return func(p *Poller) {
			if !p.OnCore() {
				t.Errorf("%s off core", what)
			}
			got = append(got, what)
		}
	}
	p := newPoller(t, Config{
		Core:   anyCore(t),
		Events: &Events{Start: on("start"), Stop: on("stop")},
	})
	must(t, p.Post(func() { on("task")(p) }))
	must(t, p.Start())
	must(t, p.Close())
	if want := []string{"start", "task", "stop"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGoexitEndsPoller(t *testing.T) {
	p := startPoller(t, Config{Idle: Adaptive})
	if err := p.Call(patience(t), runtime.Goexit); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if err := p.Post(func() {}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}

	p = newPoller(t, Config{Core: anyCore(t), Events: &Events{Start: func(*Poller) { runtime.Goexit() }}})
	if err := p.Start(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestProfileLabels(t *testing.T) {
	p := startPoller(t, Config{Name: "labelled", Idle: Adaptive})
	var profile bytes.Buffer
	onCore(t, p, func() {
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{`"poller":"labelled"`, `"core":"` + strconv.Itoa(p.Core()) + `"`} {
		if !strings.Contains(profile.String(), want) {
			t.Errorf("the profile has no label %s", want)
		}
	}
}

func TestConfiguredClock(t *testing.T) {
	var now int64 = 1000
	p := startPoller(t, Config{Clock: func() int64 { now += 10; return now }})
	fired := make(chan int64, 1)
	onCore(t, p, func() {
		due := p.Now() + 500
		p.AfterFunc(500, func() { fired <- p.Now() - due })
	})
	if late := receive(t, "the timer", fired); late < 0 || late >= 10 {
		t.Errorf("the timer fired %d after it was due, of a clock that goes by 10", late)
	}
}

func TestStartStops(t *testing.T) {
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	for range 20 {
		p := newPoller(t, Config{Core: anyCore(t), Idle: Adaptive, Spin: -1})
		must(t, p.Start())
		must(t, p.Call(ctx, func() {}))
		must(t, p.Close())
	}
}
