package pcietest

import (
	"encoding/binary"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// serveIdeal completes the Read, Write and Flush commands at the head of a
// queue without looking at them. It stops at any other command, and returns 0
// where it has nothing to go by.
func (c *Controller) serveIdeal(q *subQueue, tail uint32) (n int) {
	cq := q.cq
	if q.mem == nil || cq.mem == nil || !c.room(cq) {
		return 0
	}
	space := int(cq.head) - int(cq.tail) - 1
	if space < 0 {
		space += int(cq.size)
	}
	head, at, phase, w := q.head, cq.tail, uint64(cq.phase), cq.win
	for head != tail && n < space {
		first := binary.LittleEndian.Uint32(q.mem[uint64(head)*nvme.CommandSize:])
		if op := nvme.Opcode(first); op > nvme.OpRead {
			break
		}
		if head++; head == q.size {
			head = 0
		}
		high := uint64(head) | uint64(q.id)<<16 | uint64(first>>16)<<32 | phase<<48
		off := uint64(at) * nvme.CompletionSize
		_ = w.Write64(off, 0)
		mmio.StoreFence()
		_ = w.Write64(off+8, high)
		if at++; at == cq.size {
			at, phase = 0, phase^1
		}
		n++
	}
	q.head, cq.tail, cq.phase = head, at, uint16(phase)
	cq.signal = cq.signal || cq.enabled && n > 0
	c.posted = c.posted || cq.signal
	c.stats.Others += uint64(n)
	c.stats.Completions += uint64(n)
	return n
}
