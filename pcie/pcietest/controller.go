package pcietest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
)

// Controller is an NVMe controller. All methods may be called from any
// goroutine.
type Controller struct {
	cfg Config

	// mu guards everything below but the atomics. The goroutine of Start holds
	// it for as long as it finds work; waiting counts those who want it.
	mu      sync.Mutex
	waiting atomic.Int32
	gone    atomic.Bool
	closed  bool

	now    int64 // of the last Poll
	regs   registers
	page   uint32 // CC.MPS in bytes
	ready  bool   // commands are executed
	master bool   // bus mastering is on

	doorbells *shared
	cmb       *shared
	dma       dmaTable
	faults    []Fault

	sqs    []*subQueue // by identifier, nil where there is none
	cqs    []*comQueue
	active []*subQueue // those that there are, in the order of arbitration
	posted bool        // there may be completions to write or interrupts to signal
	shadow shadow
	cur    struct{ qid, cid uint16 } // command that is executed
	cmd    nvme.Command              // that command
	segs   [][]byte                  // its data
	bucket []byte                    // where data goes that a bit bucket takes
	bounce []byte                    // for data of other commands

	spaces   []*namespace // by rising NSID
	features features
	events   events
	errors   errorLog
	ana      anaStates
	alive    int64 // when the host was last heard of, for the keep alive timer

	held  []*heldCommand
	rules []*Injection

	vectors []int  // eventfds of interrupt vectors; -1 none
	others  [2]int // those of the interrupts that have a line of their own, -1 none: see otherIRQs
	intx    int    // that of the interrupt pin
	config  configSpace
	onGone  []func()
	client  attachment // who has the device

	stats Stats
	run   runner
	srv   servers
}

// Stats counts what the controller has done since it was made.
type Stats struct {
	// Commands by where they came from: Admin, and reads, writes and others of
	// I/O queues, whatever their status.
	Admin, Reads, Writes, Others uint64

	// Completions that were written, and those among them with an error.
	Completions, Errors uint64

	// Resets of the controller (CC.EN to 0, function level reset).
	Resets uint64

	// Interrupts that were signalled.
	Interrupts uint64

	// Faults are accesses to memory that was not mapped; see Controller.Faults.
	Faults uint64

	// BadDoorbells are values of doorbells that lie beyond their queue.
	BadDoorbells uint64
}

// New returns a controller that is disabled. Close it.
func New(cfg Config) (*Controller, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Controller{cfg: cfg, bucket: make([]byte, 64<<10)}
	if err := c.allocate(); err != nil {
		return nil, errors.Join(fmt.Errorf("pcietest: %w", err), c.free())
	}
	c.config.init(&c.cfg)
	c.resetAll()
	return c, nil
}

// allocate makes what is not on Go's heap.
func (c *Controller) allocate() (err error) {
	n := int64(barOf(&c.cfg)) - nvme.RegDoorbells
	if c.doorbells, err = newShared("pcietest-doorbells", nvme.RegDoorbells, n); err != nil {
		return err
	}
	if c.cfg.CMB.Size > 0 {
		if c.cmb, err = newShared("pcietest-cmb", 0, c.cfg.CMB.Size); err != nil {
			return err
		}
	}
	c.sqs = make([]*subQueue, c.cfg.IOQueues+1)
	c.cqs = make([]*comQueue, c.cfg.IOQueues+1)
	c.vectors = make([]int, max(0, c.cfg.Interrupts))
	for i := range c.vectors {
		c.vectors[i] = -1
	}
	c.intx, c.others = -1, [2]int{-1, -1}
	for _, n := range c.cfg.Namespaces {
		if _, err := c.addNamespace(n, false); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) free() error {
	var errs []error
	for _, n := range c.spaces {
		errs = append(errs, n.close())
	}
	c.spaces = nil
	errs = append(errs, c.doorbells.close(), c.cmb.close())
	c.cmb = nil
	return errors.Join(errs...)
}

// Close ends the controller: servers and the goroutine of Start come to their
// end, devices of it are gone, and the memory of its namespaces is given back.
func (c *Controller) Close() error {
	c.Remove()
	c.srv.wg.Wait()
	c.stop()
	c.lock()
	defer c.unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.unmapAll()
	if c.client.who == nil {
		err = errors.Join(err, c.free())
	}
	return err
}

// lock takes the controller from whoever has it.
func (c *Controller) lock() {
	c.waiting.Add(1)
	c.mu.Lock()
	c.waiting.Add(-1)
}

func (c *Controller) unlock() { c.mu.Unlock() }

// Stats returns what the controller has done.
func (c *Controller) Stats() Stats {
	c.lock()
	defer c.unlock()
	return c.stats
}

// Poll does what there is to do at the time now, in nanoseconds on any clock
// that does not go back, and returns how much that was. It is for controllers
// that were not started.
func (c *Controller) Poll(now int64) int {
	c.lock()
	defer c.unlock()
	return c.guarded(now, 1)
}

// pass is one pass over everything.
func (c *Controller) pass(now int64) (n int) {
	c.now = max(c.now, now)
	if c.closed {
		return 0
	}
	n = c.timers()
	if c.ready && !c.fatal() {
		n += c.queues()
	}
	return n
}

func (c *Controller) fatal() bool { return c.regs.csts.CFS || c.regs.vanished || c.gone.Load() }

// timers does what is due.
func (c *Controller) timers() int {
	n := c.regsDue()
	if len(c.held) > 0 {
		n += c.heldDue()
	}
	if c.features.keepAlive > 0 && c.ready && c.now-c.alive > c.features.keepAlive {
		c.expireKeepAlive()
		n++
	}
	return n
}

// queues executes what is in the submission queues, up to a burst of each, and
// then signals interrupts.
func (c *Controller) queues() int {
	n := 0
	for i := 0; i < len(c.active); i++ {
		n += c.serve(c.active[i])
		if !c.ready || c.fatal() {
			return n
		}
	}
	if c.events.due {
		c.events.due = false
		c.deliver()
	}
	if !c.posted {
		return n
	}
	c.posted = false
	for _, q := range c.cqs {
		if q == nil {
			continue
		}
		if len(q.pending) > 0 {
			c.posted = true
			n += c.drain(q)
		}
		if q.signal {
			c.interrupt(q)
		}
	}
	return n
}
