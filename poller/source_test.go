package poller

import (
	"fmt"
	"slices"
	"testing"
)

func TestAddTwice(t *testing.T) {
	p := newPoller(t, Config{})
	s := &source{}
	p.Add(s)
	p.Add(s)
	p.Add(nil)
	p.Poll(0)
	if s.polls != 1 {
		t.Errorf("polled %d times in a pass, want once", s.polls)
	}
	p.Remove(s)
	p.Remove(s)
	p.Remove(nil)
	p.Poll(1)
	if s.polls != 1 {
		t.Errorf("polled after it was removed")
	}
	p.Add(s)
	p.Poll(2)
	if s.polls != 2 {
		t.Errorf("not polled after it was added again")
	}
}

// uncomparable cannot be found by comparison, and must not make it panic.
type uncomparable struct{ polls []int }

func (u uncomparable) Poll(int64) int { u.polls[0]++; return 0 }

func TestUncomparableSource(t *testing.T) {
	p := newPoller(t, Config{})
	u := uncomparable{make([]int, 1)}
	s := &source{}
	p.Add(u)
	p.Add(s)
	p.Remove(u)
	p.Remove(s)
	p.Poll(0)
	if u.polls[0] != 1 || s.polls != 0 {
		t.Errorf("polled %d and %d times, want 1 and 0", u.polls[0], s.polls)
	}
}

// Each case has sources 0, 1 and 2, and in the first pass source 1 does
// something; then there is another pass.
func TestChangesDuringAPass(t *testing.T) {
	for _, c := range []struct {
		name          string
		act           func(p *Poller, s []*source)
		first, second []int // who is polled
	}{
		{"nothing", func(p *Poller, s []*source) {}, []int{0, 1, 2}, []int{0, 1, 2}},
		{"removes itself", func(p *Poller, s []*source) { p.Remove(s[1]) }, []int{0, 1, 2}, []int{0, 2}},
		{"removes the one before", func(p *Poller, s []*source) { p.Remove(s[0]) }, []int{0, 1, 2}, []int{1, 2}},
		{"removes the next", func(p *Poller, s []*source) { p.Remove(s[2]) }, []int{0, 1}, []int{0, 1}},
		{"removes all", func(p *Poller, s []*source) {
			for _, s := range s[:3] {
				p.Remove(s)
			}
		}, []int{0, 1}, nil},
		{"adds one", func(p *Poller, s []*source) { p.Add(s[3]) }, []int{0, 1, 2}, []int{0, 1, 2, 3}},
		{"adds many", func(p *Poller, s []*source) {
			for _, s := range s[3:] {
				p.Add(s)
			}
			p.Remove(s[2])
		}, []int{0, 1}, []int{0, 1, 3, 4, 5, 6, 7, 8, 9}},
		{"adds and removes one", func(p *Poller, s []*source) { p.Add(s[3]); p.Remove(s[3]) }, []int{0, 1, 2}, []int{0, 1, 2}},
		{"removes and adds the next", func(p *Poller, s []*source) { p.Remove(s[2]); p.Add(s[2]) }, []int{0, 1}, []int{0, 1, 2}},
		{"replaces itself", func(p *Poller, s []*source) { p.Remove(s[1]); p.Add(s[3]) }, []int{0, 1, 2}, []int{0, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPoller(t, Config{})
			var polled []int
			sources := make([]*source, 10)
			for i := range sources {
				sources[i] = &source{}
				sources[i].poll = func(now int64) int {
					polled = append(polled, i)
					if i == 1 && now == 1 {
						c.act(p, sources)
					}
					return 0
				}
			}
			for _, s := range sources[:3] {
				p.Add(s)
			}
			for pass, want := range [][]int{c.first, c.second, c.second} {
				polled = nil
				p.Poll(int64(pass) + 1)
				if !slices.Equal(polled, want) {
					t.Errorf("pass %d polled %v, want %v", pass, polled, want)
				}
			}
		})
	}
}

// What a task or timer adds has its turn in the same pass.
func TestAddBeforeSources(t *testing.T) {
	p := newPoller(t, Config{})
	fromTask, fromTimer := &source{}, &source{}
	must(t, p.Post(func() { p.Add(fromTask) }))
	p.AfterFunc(0, func() { p.Add(fromTimer) })
	p.Poll(0)
	if got := fmt.Sprint(fromTask.polls, fromTimer.polls); got != "1 1" {
		t.Errorf("polled %s times, want 1 1", got)
	}
	must(t, p.Post(func() { p.Remove(fromTask) }))
	p.AfterFunc(0, func() { p.Remove(fromTimer) })
	p.Poll(1)
	if got := fmt.Sprint(fromTask.polls, fromTimer.polls); got != "1 1" {
		t.Errorf("polled %s times after they were removed, want 1 1", got)
	}
}
