package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// io is an I/O as a caller knows it.
type io struct {
	ticket policy.Ticket
	slot   int
	bytes  uint32
	lives  bool // still on the counters of its path
}

// ledger is the accounting done the simple way, beside that of the Set.
type ledger struct {
	set   *policy.Set
	now   int64
	known [policy.MaxPaths]bool
	ios   []*io
}

func (l *ledger) check(t *rapid.T) {
	var total uint64
	for slot := range policy.MaxPaths {
		var want policy.Load
		for _, i := range l.ios {
			if i.lives && i.slot == slot {
				want.Bytes += uint64(i.bytes)
				want.Count++
			}
		}
		total += want.Count
		if got := l.set.InFlight(slot); got != want {
			t.Fatalf("path %d has %+v in flight, want %+v", slot, got, want)
		}
	}
	if l.set.Total() != total {
		t.Fatalf("%d in flight, want %d", l.set.Total(), total)
	}
}

// forget is what a reset or removal does to the I/Os of a path.
func (l *ledger) forget(slot int) {
	for _, i := range l.ios {
		if i.slot == slot {
			i.lives = false
		}
	}
}

func (l *ledger) put(t *rapid.T) {
	slot := rapid.IntRange(0, 4).Draw(t, "slot")
	p := policy.Path{
		State:  rapid.SampledFrom([]nvme.ANAState{nvme.ANAOptimized, nvme.ANANonOptimized, nvme.ANAInaccessible, nvme.ANAChange}).Draw(t, "state"),
		Usable: rapid.Bool().Draw(t, "usable"),
		Weight: rapid.IntRange(0, policy.MaxWeight).Draw(t, "weight"),
	}
	if err := l.set.Put(slot, p); err != nil {
		t.Fatal(err)
	}
	l.known[slot] = true
}

func (l *ledger) dispatch(t *rapid.T) {
	bytes := rapid.Uint32Range(0, 1<<20).Draw(t, "bytes")
	dir := policy.Dir(rapid.IntRange(0, int(policy.Dirs)).Draw(t, "dir"))
	slot := l.set.Select(l.now, bytes, dir)
	if slot == -1 {
		return
	}
	if p, ok := l.set.Path(slot); !ok || !p.Usable || !p.State.Accessible() {
		t.Fatalf("chose path %d: %+v", slot, p)
	}
	i := &io{slot: slot, bytes: bytes, lives: true}
	l.set.Dispatch(&i.ticket, slot, l.now, bytes, dir)
	l.ios = append(l.ios, i)
}

// end is completion, abort and failover; the last goes on with another path.
func (l *ledger) end(t *rapid.T) {
	if len(l.ios) == 0 {
		return
	}
	i := rapid.SampledFrom(l.ios).Draw(t, "io")
	held := i.ticket.Held()
	var released bool
	if rapid.Bool().Draw(t, "ok") {
		released = l.set.Complete(&i.ticket, l.now, true)
	} else {
		released = l.set.Release(&i.ticket, l.now)
	}
	if released != held || i.ticket.Held() {
		t.Fatalf("ticket held %v, released %v, held %v after that", held, released, i.ticket.Held())
	}
	i.lives = false
	if slot := l.set.Select(l.now, i.bytes, policy.Read); slot >= 0 && rapid.Bool().Draw(t, "retry") {
		i.slot, i.lives = slot, true
		l.set.Dispatch(&i.ticket, slot, l.now, i.bytes, policy.Read)
	}
}

// Any order of events leaves nothing in flight once all tickets are back, never
// anything that was not dispatched, and nothing negative.
func TestAccounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := policy.NewGroup(1, policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		l := &ledger{set: g.Set(0)}
		t.Repeat(map[string]func(*rapid.T){
			"":         l.check,
			"put":      l.put,
			"dispatch": l.dispatch,
			"end":      l.end,
			"policy": func(t *rapid.T) {
				if err := l.set.Use(rapid.SampledFrom(builtin).Draw(t, "name")); err != nil {
					t.Fatal(err)
				}
			},
			"reset": func(t *rapid.T) {
				slot := rapid.IntRange(0, 4).Draw(t, "slot")
				l.set.Reset(slot)
				l.forget(slot)
			},
			"remove": func(t *rapid.T) {
				slot := rapid.IntRange(0, 4).Draw(t, "slot")
				l.set.Remove(slot)
				l.forget(slot)
			},
			"time": func(t *rapid.T) {
				l.now += rapid.Int64Range(0, 1e9).Draw(t, "ns")
				l.set.Tick(l.now)
			},
		})
		for _, i := range l.ios {
			l.set.Release(&i.ticket, l.now)
			i.lives = false
		}
		l.check(t)
		l.set.Idle(l.now)
		for slot := range policy.MaxPaths {
			if got := g.InFlight(slot); got != (policy.Load{}) {
				t.Fatalf("path %d: %+v published when all is done", slot, got)
			}
		}
	})
}

// A ticket gives back once, whatever happens to it.
func TestTicket(t *testing.T) {
	s := newSet(t, policy.QueueDepth, optimized, optimized)
	var ticket policy.Ticket
	if s.Complete(&ticket, 0, true) {
		t.Error("a ticket that holds nothing was given back")
	}
	s.Dispatch(&ticket, 0, 0, 4096, policy.Read)
	s.Dispatch(&ticket, 1, 0, 512, policy.Write)
	if s.InFlight(0).Count != 0 || s.InFlight(1) != (policy.Load{Bytes: 512, Count: 1}) {
		t.Errorf("in flight after a second dispatch: %+v, %+v", s.InFlight(0), s.InFlight(1))
	}
	if ticket.Slot() != 1 || ticket.Bytes() != 512 || ticket.Dir() != policy.Write {
		t.Errorf("ticket of path %d, %d bytes, %v", ticket.Slot(), ticket.Bytes(), ticket.Dir())
	}
	for i, want := range []bool{true, false} {
		if got := s.Complete(&ticket, 1, true); got != want {
			t.Errorf("completion %d: %v, want %v", i, got, want)
		}
	}
	for _, slot := range []int{-1, 2, policy.MaxPaths} {
		if s.Dispatch(&ticket, slot, 0, 4096, policy.Read); ticket.Held() {
			t.Errorf("a ticket for path %d, which is not there", slot)
		}
	}
	if s.Total() != 0 {
		t.Errorf("%d in flight", s.Total())
	}
	want := policy.PathStats{Dispatched: 1, Completed: 1, Bytes: 512}
	if got := s.Stats(1); got != want {
		t.Errorf("statistics %+v, want %+v", got, want)
	}
}

// A completion that comes after a reset of its path takes nothing from what was
// dispatched since.
func TestLateCompletion(t *testing.T) {
	s := newSet(t, policy.ServiceTime, optimized, optimized)
	var before, after policy.Ticket
	s.Dispatch(&before, 0, 0, 4096, policy.Read)
	s.Reset(0)
	s.Dispatch(&after, 0, 1, 512, policy.Read)
	if !s.Complete(&before, 2, true) {
		t.Error("the ticket from before was not taken")
	}
	if got, want := s.InFlight(0), (policy.Load{Bytes: 512, Count: 1}); got != want {
		t.Errorf("in flight %+v, want %+v", got, want)
	}
	s.Complete(&after, 3, true)
	if got := s.Stats(0); got.Forgotten != 1 || got.Completed != 1 || s.Total() != 0 {
		t.Errorf("statistics %+v, %d in flight", got, s.Total())
	}
}
