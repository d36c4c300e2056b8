package pcietest

import (
	"cmp"
	"slices"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// subQueue is a submission queue.
type subQueue struct {
	id       uint16
	priority uint8
	base     uint64
	size     uint32
	head     uint32
	tail     uint32 // as last read
	refused  uint32 // a doorbell value that was refused, plus one
	reg      mmio.Register32
	mem      []byte // the whole of it; nil until it was looked for
	cq       *comQueue
	gone     bool // deleted, or the controller was reset
}

// comQueue is a completion queue.
type comQueue struct {
	id      uint16
	base    uint64
	size    uint32
	head    uint32 // as last read
	tail    uint32
	phase   uint16
	refused uint32
	reg     mmio.Register32
	mem     []byte
	win     mmio.Window
	vector  uint16
	enabled bool // interrupts
	signal  bool // an interrupt is due
	users   int  // submission queues
	pending []nvme.Completion
}

// Doorbells (PCIe 3.1.2): one after the other, SQ and CQ in turn.

func (c *Controller) stride() uint64 { return 4 << c.cfg.DoorbellStride }

func (c *Controller) sqDoorbell(qid uint16) uint64 { return 2 * uint64(qid) * c.stride() }

func (c *Controller) cqDoorbell(qid uint16) uint64 { return c.sqDoorbell(qid) + c.stride() }

const hostPage = 4096

// barOf returns the size of BAR 0: a power of two that has room for registers
// and doorbells. All that comes after the registers can be mapped.
func barOf(cfg *Config) uint64 {
	return powerOfTwo(nvme.RegDoorbells + 2*uint64(cfg.IOQueues+1)*(4<<cfg.DoorbellStride))
}

// clearDoorbells sets all doorbells to 0.
func (c *Controller) clearDoorbells() {
	for i := range 2 * uint64(c.cfg.IOQueues+1) {
		_ = c.doorbells.w.Write32(i*c.stride(), 0)
	}
}

// doorbell returns a doorbell, at 0.
func (c *Controller) doorbell(off uint64) mmio.Register32 {
	r, err := c.doorbells.w.Register32(off)
	if err != nil {
		return mmio.Register32{} // cannot be: they were sized for all queues
	}
	r.Store(0)
	return r
}

func (c *Controller) newCQ(id uint16, base uint64, size uint32) *comQueue {
	q := &comQueue{id: id, base: base, size: size, phase: 1, reg: c.doorbell(c.cqDoorbell(id))}
	c.cqs[id] = q
	return q
}

func (c *Controller) newSQ(id uint16, base uint64, size uint32, cq *comQueue) *subQueue {
	q := &subQueue{id: id, base: base, size: size, cq: cq, reg: c.doorbell(c.sqDoorbell(id))}
	c.sqs[id] = q
	cq.users++
	c.active = append(c.active, q)
	return q
}

// arbitrate orders the queues: the admin queue, then by priority.
func (c *Controller) arbitrate() {
	slices.SortStableFunc(c.active, func(a, b *subQueue) int {
		if a.id == 0 || b.id == 0 {
			return cmp.Compare(a.id, b.id)
		}
		return cmp.Compare(a.priority, b.priority)
	})
}

func (c *Controller) dropSQ(q *subQueue) {
	q.gone = true
	q.cq.users--
	c.sqs[q.id] = nil
	c.active = slices.DeleteFunc(c.active, func(o *subQueue) bool { return o == q })
}

// dropQueues forgets all queues.
func (c *Controller) dropQueues() {
	for _, q := range c.active {
		q.gone = true
	}
	clear(c.sqs)
	clear(c.cqs)
	c.active = c.active[:0]
}

// forget has everything that refers to memory of the driver looked up again.
func (c *Controller) forget() {
	for _, q := range c.active {
		q.mem, q.cq.mem = nil, nil
	}
	for _, q := range c.cqs {
		if q != nil {
			q.mem = nil
		}
	}
	c.shadow.forget()
	c.segs = c.segs[:0]
}

// burst is how many commands of a queue are executed in a pass. With weighted
// round robin it is by priority (Base Specification 3.4.4).
const burst = 128

func (c *Controller) burst(q *subQueue) int {
	if c.regs.cc.AMS() != nvme.CCAMSWeightedRoundRobin || q.id == 0 || q.priority == nvme.PriorityUrgent {
		return burst
	}
	return max(1, int(c.features.weights[q.priority])+1)
}

// serve executes commands of a queue, and returns how many.
func (c *Controller) serve(q *subQueue) (n int) {
	tail := c.tail(q)
	if tail == q.head {
		return 0
	}
	mmio.LoadFence()
	if c.cfg.Ideal && q.id != 0 && len(c.rules) == 0 {
		if n = c.serveIdeal(q, tail); n > 0 || tail == q.head {
			return n
		}
	}
	for limit := c.burst(q); q.head != tail && n < limit && c.room(q.cq); n++ {
		if !c.fetch(q) {
			return n
		}
		c.begin(q)
		if q.gone || c.fatal() {
			return n + 1
		}
	}
	return n
}

// fetch takes the next entry of a queue. If the queue cannot be read, that is
// fatal.
func (c *Controller) fetch(q *subQueue) bool {
	c.cur.qid, c.cur.cid = q.id, 0
	off := uint64(q.head) * nvme.CommandSize
	b := q.mem
	if b == nil {
		var s nvme.Status
		if b, s = c.queueMemory(q.base, off, uint64(q.size)*nvme.CommandSize, nvme.CommandSize, useSQ, &q.mem); s != 0 {
			c.regs.csts.CFS = true
			return false
		}
	}
	if q.mem != nil {
		b = q.mem[off : off+nvme.CommandSize]
	}
	copy(commandBytes(&c.cmd)[:], b)
	c.cur.cid = c.cmd.CID
	if q.head++; q.head == q.size {
		q.head = 0
	}
	return true
}

// queueMemory returns one entry of a queue, and keeps the memory of the whole
// queue where it is in one piece.
func (c *Controller) queueMemory(base, off, size, entry uint64, u use, keep *[]byte) ([]byte, nvme.Status) {
	b, s := c.memory(base, size, u)
	if s == 0 && uint64(len(b)) == size {
		*keep = b
		return nil, 0
	}
	if s != 0 {
		return nil, s
	}
	return c.whole(base+off, entry, u)
}

// room reports whether a completion can be written.
func (c *Controller) room(q *comQueue) bool {
	next := q.tail + 1
	if next == q.size {
		next = 0
	}
	if next == q.head {
		q.head = c.head(q)
	}
	return next != q.head && len(q.pending) == 0
}

// post writes a completion, or keeps it until there is room.
func (c *Controller) post(q *comQueue, cpl nvme.Completion) {
	if !c.room(q) {
		q.pending, c.posted = append(q.pending, cpl), true
		return
	}
	c.write(q, cpl, false)
}

// drain writes completions for which there was no room.
func (c *Controller) drain(q *comQueue) (n int) {
	list := q.pending
	q.pending = nil
	for n < len(list) && c.room(q) {
		c.write(q, list[n], false)
		n++
	}
	q.pending = append(q.pending, list[n:]...)
	return n
}

// write writes a completion queue entry; its second half, with the phase tag,
// last and in one piece. stuck leaves the phase tag as it was.
func (c *Controller) write(q *comQueue, cpl nvme.Completion, stuck bool) {
	off := uint64(q.tail) * nvme.CompletionSize
	w := q.win
	if q.mem == nil {
		b, s := c.queueMemory(q.base, off, uint64(q.size)*nvme.CompletionSize, nvme.CompletionSize, useCQ, &q.mem)
		if s != 0 {
			c.regs.csts.CFS = true
			return
		}
		if q.mem != nil {
			b = q.mem
		} else {
			off = 0
		}
		w = mmio.NewWindow(b)
		q.win = w
	}
	phase := q.phase
	if stuck {
		phase ^= 1
	}
	high := uint64(cpl.SQHead) | uint64(cpl.SQID)<<16 | uint64(cpl.CID)<<32 | uint64(cpl.StatusPhase&^1|phase)<<48
	_ = w.Write64(off, cpl.Result)
	mmio.StoreFence()
	_ = w.Write64(off+8, high)
	if q.tail++; q.tail == q.size {
		q.tail, q.phase = 0, q.phase^1
	}
	q.signal = q.signal || q.enabled
	c.posted = c.posted || q.signal
	c.stats.Completions++
	if cpl.StatusPhase>>1 != 0 {
		c.stats.Errors++
	}
}

// complete ends the command with an identifier.
func (c *Controller) complete(q *subQueue, cid uint16, s nvme.Status, result uint64) {
	c.post(q.cq, nvme.Completion{Result: result, SQHead: uint16(q.head), SQID: q.id, CID: cid, StatusPhase: uint16(s) << 1})
}
