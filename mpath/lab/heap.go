package lab

// event is something due in virtual time. Events of one time happen in the
// order in which they were scheduled.
type event struct {
	at   int64
	seq  uint64
	what int32 // index of an I/O, or of a change
	kind kind
}

type kind uint8

const (
	enterLink kind = iota
	enterServer
	completed
	arrival
	change
)

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// agenda is a heap of events, four children to a node: it is shallower than one
// of two, and the children share a cache line or two.
type agenda struct {
	events []event
	seq    uint64
}

func (a *agenda) push(at int64, k kind, what int32) {
	a.seq++
	e := event{at: at, seq: a.seq, what: what, kind: k}
	i := len(a.events)
	a.events = append(a.events, e)
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.events[up]) {
			break
		}
		a.events[i] = a.events[up]
		i = up
	}
	a.events[i] = e
}

func (a *agenda) pop() event {
	top := a.events[0]
	n := len(a.events) - 1
	e := a.events[n]
	a.events = a.events[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if a.events[c].before(&a.events[least]) {
				least = c
			}
		}
		if !a.events[least].before(&e) {
			break
		}
		a.events[i] = a.events[least]
		i = least
	}
	a.events[i] = e
	return top
}
