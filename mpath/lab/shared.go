package lab

import "github.com/qpoll/qpoll/mpath/policy"

// Counter is the contender that counts I/Os as the Linux host does for
// queue-depth: in one counter per path, which all cores change and read for each
// I/O. In simulated time it costs nothing and is never stale.
const Counter = "queue-depth 1 counter"

func counter() Contender { return Contender{Label: Counter, shared: true} }

// sharedCounter is the policy of a core; all share inFlight.
type sharedCounter struct {
	policy.Base
	inFlight []int
}

func (c *sharedCounter) Select(s *policy.Set, _ int64, _ uint32, _ policy.Dir) int {
	best := -1
	for _, slot := range s.Candidates() {
		if best < 0 || c.inFlight[slot] < c.inFlight[best] {
			best = int(slot)
		}
	}
	return best
}

func (c *sharedCounter) Dispatched(_ *policy.Set, t *policy.Ticket) { c.inFlight[t.Slot()]++ }

func (c *sharedCounter) Completed(_ *policy.Set, t *policy.Ticket, _ int64, _ bool) {
	c.inFlight[t.Slot()]--
}
