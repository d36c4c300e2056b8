package pcietest

import (
	"slices"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Action is what goes wrong with a command.
type Action uint8

// The actions. Unless it says otherwise, the command is executed.
const (
	// Fail completes the command with Rule.Status and does not execute it.
	Fail Action = iota

	// Drop loses the command: it is neither executed nor completed.
	Drop

	// Hold keeps the command until Injection.Release, an Abort, or a reset.
	// Then it is executed and completed.
	Hold

	// Delay is Hold until Rule.Delay has passed on the clock of Poll.
	Delay

	// Mute executes the command and never completes it.
	Mute

	// Duplicate writes the completion twice.
	Duplicate

	// WrongCID completes the command under the identifier Rule.Value.
	WrongCID

	// WrongSQID completes the command with Rule.Value as the submission queue.
	WrongSQID

	// StuckPhase writes the completion with the phase tag that the entry had
	// before, so that the driver does not see it.
	StuckPhase

	// Reorder holds the command back until the one after it has completed.
	Reorder

	// Die has the controller fail with CSTS.CFS when the command arrives.
	Die

	// Leave has the controller vanish (see Controller.Vanish) when the command
	// arrives.
	Leave
)

// Rule says what goes wrong with which commands.
type Rule struct {
	// Match chooses the commands; nil is all I/O commands. It is called by the
	// controller, must not call its methods, nor keep the command.
	Match func(qid uint16, cmd *nvme.Command) bool

	// Skip lets so many matching commands pass first. Count is how many are
	// struck then; 0 is all.
	Skip, Count int

	Action Action
	Status nvme.Status   // of Fail
	Delay  time.Duration // of Delay
	Value  uint16        // of WrongCID and WrongSQID
}

// Opcode returns a Match for commands with an opcode of I/O queues, or, if
// admin is set, of the admin queue.
func Opcode(op nvme.Opcode, admin bool) func(uint16, *nvme.Command) bool {
	return func(qid uint16, cmd *nvme.Command) bool { return cmd.Opcode == op && (qid == 0) == admin }
}

// Injection is a rule at work.
type Injection struct {
	c    *Controller
	rule Rule
	seen int
	hits int
}

// Inject puts a rule to work, behind those that there are: of several that
// match a command, the first strikes.
func (c *Controller) Inject(r Rule) *Injection {
	c.lock()
	defer c.unlock()
	i := &Injection{c: c, rule: r}
	c.rules = append(slices.Clip(c.rules), i)
	return i
}

// Hits returns how many commands the rule has struck.
func (i *Injection) Hits() int {
	i.c.lock()
	defer i.c.unlock()
	return i.hits
}

// Remove ends the rule. What it holds stays held until Release.
func (i *Injection) Remove() {
	i.c.lock()
	defer i.c.unlock()
	i.c.rules = slices.DeleteFunc(slices.Clone(i.c.rules), func(o *Injection) bool { return o == i })
}

// Release executes and completes what the rule holds, the latest first, and
// returns how many that were.
func (i *Injection) Release() int {
	c := i.c
	c.lock()
	defer c.unlock()
	n := 0
	c.touch(func() {
		for at := len(c.held) - 1; at >= 0; at-- {
			if at < len(c.held) && c.held[at].by == i {
				c.release(at)
				n++
			}
		}
		c.interrupts()
	})
	return n
}

// heldCommand is a command that waits.
type heldCommand struct {
	q     *subQueue
	cmd   nvme.Command
	by    *Injection
	due   int64
	after uint64 // completions of the controller that it waits for; 0 none
}

// strike returns the rule that a command is struck by.
func (c *Controller) strike(q *subQueue) *Injection {
	for _, i := range c.rules {
		match := i.rule.Match
		if match == nil && q.id == 0 || match != nil && !match(q.id, &c.cmd) {
			continue
		}
		if i.seen++; i.seen <= i.rule.Skip || i.rule.Count > 0 && i.hits >= i.rule.Count {
			continue
		}
		i.hits++
		return i
	}
	return nil
}

// apply does to the command what a rule says.
func (c *Controller) apply(q *subQueue, i *Injection) {
	r := &i.rule
	switch r.Action {
	case Fail:
		c.complete(q, c.cmd.CID, r.Status, 0)
	case Drop:
	case Hold:
		c.hold(q, i, never, 0)
	case Delay:
		c.hold(q, i, c.now+int64(r.Delay), 0)
	case Reorder:
		c.hold(q, i, never, c.stats.Completions+1)
	case Die:
		c.regs.csts.CFS = true
	case Leave:
		c.regs.vanished = true
	default:
		c.distort(q, r)
	}
}

// distort executes the command and completes it wrongly.
func (c *Controller) distort(q *subQueue, r *Rule) {
	s, result, done := c.execute(q)
	if !done || q.gone {
		return
	}
	cpl := nvme.Completion{Result: result, SQHead: uint16(q.head), SQID: q.id, CID: c.cmd.CID, StatusPhase: uint16(s) << 1}
	switch r.Action {
	case Duplicate:
		c.post(q.cq, cpl)
	case WrongCID:
		cpl.CID = r.Value
	case WrongSQID:
		cpl.SQID = r.Value
	case StuckPhase:
		if c.room(q.cq) {
			c.write(q.cq, cpl, true)
		}
		return
	case Mute:
		return
	}
	c.post(q.cq, cpl)
}

func (c *Controller) hold(q *subQueue, i *Injection, due int64, after uint64) {
	c.held = append(c.held, &heldCommand{q: q, cmd: c.cmd, by: i, due: due, after: after})
}

// heldDue releases what is due.
func (c *Controller) heldDue() (n int) {
	for at := 0; at < len(c.held); {
		h := c.held[at]
		if c.now < h.due && (h.after == 0 || c.stats.Completions < h.after) {
			at++
			continue
		}
		c.release(at)
		n++
	}
	if n > 0 {
		c.interrupts()
	}
	return n
}

// release executes and completes a held command.
func (c *Controller) release(at int) {
	h := c.held[at]
	c.held = slices.Delete(c.held, at, at+1)
	if h.q.gone || !c.ready || c.fatal() {
		return
	}
	c.cmd, c.cur.qid, c.cur.cid = h.cmd, h.q.id, h.cmd.CID
	c.conclude(h.q)
}

// dropHeld forgets held commands, of all queues.
func (c *Controller) dropHeld() { c.held = c.held[:0] }
