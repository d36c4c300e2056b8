package poller

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/invariants"
)

func TestPassOrder(t *testing.T) {
	p := newPoller(t, Config{})
	var got recorder
	p.Add(&source{poll: func(int64) int { got.add("first source")(); return 3 }})
	p.Add(&source{poll: func(int64) int { got.add("second source")(); return 4 }})
	p.AfterFunc(0, got.add("timer"))
	must(t, p.Post(got.add("task")))
	if work := p.Poll(5); work != 1+1+3+4 {
		t.Errorf("work is %d, want 9", work)
	}
	if want := []string{"task", "timer", "first source", "second source"}; !slices.Equal(got, want) {
		t.Errorf("order is %q, want %q", got, want)
	}
}

func TestClockOfAPass(t *testing.T) {
	p := newPoller(t, Config{})
	if p.Now() != 0 {
		t.Errorf("before the first pass it is %d", p.Now())
	}
	var polled []int64
	p.Add(&source{poll: func(now int64) int {
		if now != p.Now() {
			t.Errorf("polled at %d, Now is %d", now, p.Now())
		}
		polled = append(polled, now)
		return 0
	}})
	for _, now := range []int64{100, 250, 240, 260} {
		p.Poll(now)
	}
	if want := []int64{100, 250, 250, 260}; !slices.Equal(polled, want) {
		t.Errorf("polled at %v, want %v: a clock never goes back", polled, want)
	}
}

func TestClockNearItsEnds(t *testing.T) {
	for _, c := range []struct{ now, d, want int64 }{
		{0, 5, 5},
		{7, -5, 7},
		{-7, 5, -2},
		{10, math.MaxInt64, math.MaxInt64 - 1},
		{math.MaxInt64 - 2, 5, math.MaxInt64 - 1},
		{math.MaxInt64, 5, math.MaxInt64 - 1},
		{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1},
	} {
		if got := later(c.now, c.d); got != c.want {
			t.Errorf("later(%d, %d) = %d, want %d", c.now, c.d, got, c.want)
		}
	}
}

func TestOnCoreWhenStepped(t *testing.T) {
	p := newPoller(t, Config{})
	other := newPoller(t, Config{})
	if p.OnCore() {
		t.Error("on core outside of Poll")
	}
	must(t, p.Post(func() {
		if !p.OnCore() {
			t.Error("off core within Poll")
		}
		if other.OnCore() {
			t.Error("on the core of another poller")
		}
		elsewhere := make(chan bool)
		go func() { elsewhere <- p.OnCore() }()
		if <-elsewhere {
			t.Error("another goroutine is on core")
		}
	}))
	if p.Poll(0) != 1 {
		t.Error("the task did not run")
	}
}

func TestPollWithinPoll(t *testing.T) {
	p := newPoller(t, Config{})
	s := &source{}
	s.poll = func(now int64) int {
		if work := p.Poll(now + 1); work != 0 {
			t.Errorf("a pass within a pass did %d", work)
		}
		return 1
	}
	p.Add(s)
	if work := p.Poll(1); work != 1 || s.polls != 1 {
		t.Errorf("work %d in %d polls, want 1 and 1", work, s.polls)
	}
}

func TestPanicIsNotSwallowed(t *testing.T) {
	p, err := New(Config{})
	must(t, err)
	p.Add(&source{poll: func(int64) int { panic("of a source") }})
	defer func() {
		if v := recover(); v != "of a source" {
			t.Errorf("recovered %v", v)
		}
	}()
	p.Poll(0)
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string // Name, or "" for an error
		core int
	}{
		{"zero", Config{}, "core 0", 0},
		{"another core", Config{Core: 3}, "core 3", 3},
		{"named", Config{Name: "io", Core: 3}, "io", 3},
		{"unpinned", Config{Unpinned: true, Core: 3}, "unpinned", -1},
		{"negative core", Config{Core: -1}, "", 0},
		{"high core", Config{Core: maxCore + 1}, "", 0},
		{"idle mode", Config{Idle: Adaptive + 1}, "", 0},
		{"negative mailbox", Config{Mailbox: -1}, "", 0},
		{"large mailbox", Config{Mailbox: maxMailbox + 1}, "", 0},
		{"negative interval", Config{PublishInterval: -1}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := New(c.cfg)
			if c.want == "" {
				if !errors.Is(err, ErrConfig) {
					t.Fatalf("%v, want ErrConfig", err)
				}
				return
			}
			must(t, err)
			defer p.Close()
			if p.Name() != c.want || p.Core() != c.core {
				t.Errorf("%q on core %d, want %q on %d", p.Name(), p.Core(), c.want, c.core)
			}
		})
	}
}

func TestMailboxSize(t *testing.T) {
	for size, want := range map[int]int{0: 1024, 1: 2, 2: 2, 3: 4, 1000: 1024, 1025: 2048} {
		p := newPoller(t, Config{Mailbox: size})
		n := 0
		for p.Post(func() {}) == nil {
			n++
		}
		if n != want {
			t.Errorf("mailbox of %d takes %d, want %d", size, n, want)
		}
	}
}

func TestIdleModeString(t *testing.T) {
	for mode, want := range map[IdleMode]string{Busy: "busy", Adaptive: "adaptive", 7: "unknown"} {
		if got := mode.String(); got != want {
			t.Errorf("mode %d is %q, want %q", mode, got, want)
		}
	}
}

// Where invariants are checked, what belongs to the core must not be touched
// from elsewhere; where they are not, the same calls cost nothing more.
func TestOwnershipIsChecked(t *testing.T) {
	p := newPoller(t, Config{})
	timer := p.AfterFunc(time.Hour, func() {})
	for name, touch := range map[string]func(){
		"Add":        func() { p.Add(&source{}) },
		"Remove":     func() { p.Remove(&source{}) },
		"AfterFunc":  func() { p.AfterFunc(0, func() {}) },
		"Timer.Stop": func() { timer.Stop() },
		"ResetGaps":  func() { p.ResetGaps() },
		"Poll":       func() { p.Poll(0) },
	} {
		var caught any
		must(t, p.Post(func() {
			done := make(chan struct{})
			go func() { // while this one is on core
				defer close(done)
				defer func() { caught = recover() }()
				if invariants.Enabled {
					touch()
				}
			}()
			<-done
		}))
		p.Poll(0)
		msg, _ := caught.(string)
		if invariants.Enabled != strings.Contains(msg, name+" called off the core") {
			t.Errorf("%s off core: %v", name, caught)
		}
	}
}
