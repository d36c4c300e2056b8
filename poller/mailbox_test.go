package poller

import (
	"errors"
	"runtime"
	"sync"
	"testing"
)

func TestPostOrder(t *testing.T) {
	p := newPoller(t, Config{Mailbox: 4})
	var got []int
	next := 0
	// Many laps, with every number of functions waiting.
	for round := range 50 {
		for range round % 5 {
			n := next
			must(t, p.Post(func() { got = append(got, n) }))
			next++
		}
		p.Poll(int64(round))
	}
	for i, n := range got {
		if i != n {
			t.Fatalf("function %d ran as number %d", n, i)
		}
	}
	if len(got) != next {
		t.Errorf("%d of %d ran", len(got), next)
	}
}

func TestPostFull(t *testing.T) {
	p := newPoller(t, Config{Mailbox: 4})
	ran := 0
	for range 4 {
		must(t, p.Post(func() { ran++ }))
	}
	for range 2 {
		if err := p.Post(func() { t.Error("a refused function ran") }); !errors.Is(err, ErrMailboxFull) {
			t.Errorf("%v, want ErrMailboxFull", err)
		}
	}
	p.Poll(0)
	if ran != 4 {
		t.Errorf("%d ran, want 4", ran)
	}
	must(t, p.Post(func() { ran++ }))
	p.Poll(1)
	if ran != 5 {
		t.Errorf("%d ran, want 5", ran)
	}
}

func TestPostNil(t *testing.T) {
	p := newPoller(t, Config{})
	if err := p.Post(nil); !errors.Is(err, ErrNilFunc) {
		t.Errorf("%v, want ErrNilFunc", err)
	}
	if err := p.Call(t.Context(), nil); !errors.Is(err, ErrNilFunc) {
		t.Errorf("%v, want ErrNilFunc", err)
	}
}

// A function that posts itself has its turn once per pass, and not at the cost
// of the pass.
func TestPostFromTask(t *testing.T) {
	p := newPoller(t, Config{Mailbox: 2})
	ran := 0
	var again func()
	again = func() {
		ran++
		if err := p.Post(again); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	must(t, p.Post(again))
	for pass := range 5 {
		if work := p.Poll(int64(pass)); work != 1 || ran != pass+1 {
			t.Fatalf("pass %d: work %d, %d runs in all", pass, work, ran)
		}
	}
	must(t, p.Close()) // what was accepted runs, and is refused for the next time
	if ran != 6 {
		t.Errorf("%d runs in all, want 6", ran)
	}
}

// A producer that has reserved a slot and not filled it holds up what is
// behind it, and the pass goes on without.
func TestUnfilledSlot(t *testing.T) {
	p := newPoller(t, Config{Mailbox: 4})
	pos := p.mailbox.tail.Add(1) - 1
	ran := 0
	must(t, p.Post(func() { ran++ }))
	if work := p.Poll(0); work != 0 || ran != 0 {
		t.Errorf("work %d, %d ran", work, ran)
	}
	if p.mailbox.empty() {
		t.Error("a mailbox with something on its way is empty")
	}
	s := p.mailbox.at(pos)
	s.fn = func() { ran += 10 }
	s.seq.Store(pos + 1)
	if work := p.Poll(1); work != 2 || ran != 11 {
		t.Errorf("work %d, ran %d", work, ran)
	}
}

// Many goroutines post to a poller that is closed in the middle: what was
// accepted runs exactly once, in each poster's order, and nothing else does.
func TestPostStress(t *testing.T) {
	for _, idle := range []IdleMode{Busy, Adaptive} {
		t.Run(idle.String(), func(t *testing.T) {
			const posters, each = 4, 1000
			p := startPoller(t, Config{Idle: idle, Spin: -1, Mailbox: 64})
			var ran [posters]int
			var accepted [posters]int
			var wg sync.WaitGroup
			for i := range posters {
				wg.Go(func() {
					for accepted[i] < each {
						n := accepted[i]
						err := p.Post(func() {
							if ran[i] != n {
								t.Errorf("poster %d: function %d ran as number %d", i, n, ran[i])
							}
							ran[i]++
						})
						switch {
						case err == nil:
							accepted[i]++
						case errors.Is(err, ErrMailboxFull):
							runtime.Gosched()
						case errors.Is(err, ErrClosed):
							return
						default:
							t.Error(err)
							return
						}
						if i == 0 && n == each/2 {
							go p.Close()
						}
					}
				})
			}
			wg.Wait()
			must(t, p.Close())
			for i := range posters {
				if ran[i] != accepted[i] {
					t.Errorf("poster %d: %d ran of %d accepted", i, ran[i], accepted[i])
				}
			}
			if accepted[0] <= each/2 {
				t.Errorf("only %d were accepted", accepted[0])
			}
		})
	}
}
